"""What the buttons of a page say that they do, in eleven languages.

A label is read as a whole, and only its words decide. One forbidden word is enough to ignore a button, so these are
listed in too many forms rather than too few.
"""

from __future__ import annotations

import re
from typing import Final, Literal, TypeAlias
from unicodedata import normalize

#: What a button brings: more of the same, the next part, a file; ``""``: none of these, or harm.
Says: TypeAlias = Literal["", "more", "next", "download"]

LONGEST: Final = 80  # characters of a label; a longer text is not a button

# In all: English, German, French, Spanish, Italian, Portuguese, Dutch, Polish, Russian, Chinese, Japanese. Words are
# complete; those in Chinese and Japanese, and stems with a hyphen, may continue. "_" is a blank.
_NEVER: Final = (
    "delete deletes deleting remove removes erase clear buy buying purchase- order orders ordering pay paying "
    "payment- checkout cart basket subscri- unsubscri- donat- logout logoff signout log-out sign-out signoff",
    "log_out log_off sign_out sign_off log_me_out place_order check_out",
    "lösch- entfern- abmeld- ausloggen kauf- einkauf- bestell- bezahl- zahlung- jetzt_zahlen abonn- kündig- abbestell- "
    "warenkorb spenden",
    "supprim- effac- retir- déconn- achet- command- payer payez paie- paye abonn- désabonn- désinscri- résili- panier",
    "s'abonner",
    "elimin- borr- quit- salir comprar compra compre pedir pedido- pagar pago- pague suscri- desuscri- carrito",
    "cerrar_sesión darse_de_baja cerrar_la_sesión",
    "cancell- rimuov- disconnett- esci uscire acquist- comprare ordina ordinare ordine pagare paga pagament- abbon- "
    "iscriviti disiscri- disdi- carrello",
    "excluir exclua apag- remov- sair desconect- encomend- assin- subscrev- carrinho pagament-",
    "terminar_sessão encerrar_sessão",
    "verwijder- wis wissen afmeld- uitlog- koop kopen bestel- betaal- betalen afreken- abonn- opzeg- winkelwagen-",
    "usuń usun- skasuj kasuj wylog- kup kupuj kupić zamów zamaw- zapłać płać płatnoś- subskryb- wypisz koszyk-",
    "удал- убрать стереть выйти выход купить покуп- заказ- оплат- платить плат- подпис- подпиш- отпис- отпиш- корзин-",
    "删除 刪除 移除 清空 退出 登出 注销 註銷 购买 購買 订购 訂購 下单 下單 支付 付款 订阅 訂閱 退订 退訂 购物车 購物車",
    "削除 消去 ログアウト サインアウト 購入 買う 注文 支払 購読 登録解除 カート",
)
_NEXT: Final = (
    "next older newer",
    "nächste nächster nächstes nächsten weiter",
    "suivant suivante suivants suivantes",
    "siguiente siguientes",
    "successivo successiva successivi prossimo prossima prossimi avanti",
    "próximo próxima próximos próximas próx seguinte seguintes",
    "volgende",
    "następna następne następny następnych dalej",
    "следующая следующий следующие следующую далее вперед вперёд",
    "下一页 下一頁 下页 下一个 下一個 次へ 次の 次ページ",
)
_MORE: Final = (
    "more",
    "show_all view_all see_all display_all list_all all_results",
    "mehr weitere weiteren weiterer",
    "alle_anzeigen alles_anzeigen alle_zeigen alle_ansehen zeige_alle alle_einblenden",
    "plus davantage",
    "tout_afficher tout_voir voir_tout voir_tous voir_toutes afficher_tout afficher_tous afficher_toutes tous_voir",
    "más",
    "mostrar_todo mostrar_todos mostrar_todas ver_todo ver_todos ver_todas",
    "altro altri altre più",
    "mostra_tutto mostra_tutti mostra_tutte vedi_tutto vedi_tutti vedi_tutte visualizza_tutti visualizza_tutto",
    "mais",
    "mostrar_tudo ver_tudo exibir_tudo exibir_todos exibir_todas",
    "meer",
    "toon_alle toon_alles alles_tonen alle_tonen bekijk_alle bekijk_alles alles_weergeven",
    "więcej",
    "pokaż_wszystko pokaż_wszystkie pokaż_wszystkich zobacz_wszystko zobacz_wszystkie wyświetl_wszystkie",
    "ещё еще больше",
    "показать_все показать_всё смотреть_все смотреть_всё все_результаты",
    "更多 显示全部 顯示全部 查看全部 全部显示 全部顯示 展开全部",
    "もっと さらに すべて表示 全て表示 すべてを表示 すべて見る 全件表示",
)
_DOWNLOAD: Final = (
    "download downloads export csv tsv xls xlsx xlsm ods excel geojson shapefile json xml parquet",
    "save_as save_file save_data save_table save_to",
    "herunterladen exportieren runterladen",
    "speichern_als speichern_unter datei_speichern als_datei",
    "télécharger téléchargement téléchargez exporter export exportez",
    "enregistrer_sous",
    "descargar descarga descargue exportar exporta exporte",
    "guardar_como",
    "scarica scaricare esporta esportare",
    "salva_come salva_con_nome",
    "baixar baixe descarregar transferir exporte",
    "salvar_como",
    "downloaden exporteren exporteer",
    "opslaan_als",
    "pobierz pobieranie eksportuj eksport",
    "zapisz_jako",
    "скачать экспорт экспортировать выгрузить",
    "сохранить_как",
    "下载 下載 导出 匯出 另存为 另存為 ダウンロード エクスポート 書き出し 名前を付けて保存",
)
_LOAD: Final = (  # weak: what is loaded may be a file
    "load",
    "laden nachladen",
    "charger",
    "cargar",
    "carica caricare",
    "carregar",
    "laad",
    "załaduj wczytaj",
    "загрузить подгрузить",
    "加载 加載 载入 載入 読み込む 読み込み 読込",
)
_CJK = "\u2e80"  # from here on, words are not separated by blanks


def is_harm(text: str) -> bool:
    """Whether a text contains a word of what must never be clicked."""
    return _RE_NEVER.search(_plain(text)) is not None


def says(label: str) -> Says:
    """Return what a button with a label brings.

    Examples
    --------
    >>> [says(label) for label in ("Load more", "Nächste Seite »", "Télécharger (CSV)", "Delete all and show more")]
    ['more', 'next', 'download', '']
    """
    text = _plain(label[: 4 * LONGEST])
    if not text or len(text) > LONGEST or _RE_NEVER.search(text):
        return ""
    if _RE_MORE.search(text):
        return "more"
    if _RE_DOWNLOAD.search(text):
        return "download"
    if _RE_NEXT.search(text):
        return "next"
    return "more" if _RE_LOAD.search(text) else ""


def _plain(text: str) -> str:
    return " ".join(normalize("NFKC", text).casefold().replace("\u2019", "'").split())


def _any_of(lines: tuple[str, ...]) -> str:
    """Return the regular expression for any of these words: complete ones, except in scripts without blanks."""
    words = [normalize("NFKC", word).casefold().replace("_", " ") for word in " ".join(lines).split()]
    parted = [re.escape(word.removesuffix("-")) + r"\w*" * word.endswith("-") for word in words if word[0] < _CJK]
    joined = [re.escape(word) for word in words if word[0] >= _CJK]
    return "|".join([rf"(?<!\w)(?:{'|'.join(parted)})(?!\w)", *joined])


_RE_NEVER = re.compile(_any_of(_NEVER))
_RE_MORE = re.compile(_any_of(_MORE))
_RE_NEXT = re.compile(_any_of(_NEXT))
_RE_DOWNLOAD = re.compile(_any_of(_DOWNLOAD))
_RE_LOAD = re.compile(_any_of(_LOAD))
