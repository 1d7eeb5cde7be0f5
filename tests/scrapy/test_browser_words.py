"""The meaning of buttons by their labels."""

from __future__ import annotations

import pytest

from scrapy_focus.engine.browser.words import LONGEST, is_harm, says

MORE = """Load more|Show all 24 results|View all|MORE|Mehr anzeigen|Alle anzeigen|Weitere laden|Afficher plus|Voir tout|Charger
Ver más|Mostrar todos|Cargar|Mostra altri|Carica|Vedi tutti|Carregar mais|Ver tudo|Toon meer|Alles weergeven|Pokaż więcej
Wczytaj|Показать ещё|Показать все|Загрузить|更多|加载|查看全部|もっと見る|すべて表示|読み込む"""
NEXT = """Next|next page »|Nächste Seite|Weiter|Suivant|Page suivante|Siguiente|Página siguiente|Successivo|Avanti|Próxima|Seguinte
Volgende|Następna strona|Dalej|Следующая|Далее|下一页|次へ"""
FILE = """Download|Export as CSV|Save as…|XLSX|GeoJSON|Herunterladen|Zahlen herunterladen|Exportieren|Télécharger (2 Mo)|Enregistrer sous
Descargar|Exportar|Scarica|Salva con nome|Baixar|Exporte|Downloaden|Opslaan als|Pobierz|Eksportuj|Скачать CSV|Сохранить как|下载|导出数据
ダウンロード|エクスポート"""
HARM = """Delete all and show more|Remove more|Log out|Sign out|Buy more|Order more|Pay|Subscribe for more|Unsubscribe next
Mehr löschen|Abmelden|Weitere kaufen|Mehr bestellen|Jetzt zahlen|Mehr abonnieren|Supprimer tout et afficher plus|Déconnexion|Acheter plus
Commander plus|Payer|S\u2019abonner|Eliminar más|Cerrar sesión|Comprar más|Pedir más|Pagar|Suscribirse|Elimina altri|Esci|Acquista altri
Ordina altri|Paga|Abbonati|Excluir mais|Apagar|Sair|Comprar mais|Encomendar mais|Assinar|Meer verwijderen|Afmelden|Meer kopen
Meer bestellen|Betalen|Abonneren|Usuń więcej|Wyloguj|Kup więcej|Zamów więcej|Zapłać|Subskrybuj|Удалить ещё|Выйти|Купить ещё
Заказать ещё|Оплатить|Подписаться|Отписаться|删除更多|退出|购买更多|订购|支付|订阅更多|退订|もっと削除|ログアウト|購入|注文|支払い|購読"""
NEITHER = "Upload|Menu|Search|OK|Downloading…|Nextcloud|Moreover|1|»|||Anmelden"


@pytest.mark.parametrize(
    ("labels", "kind"), [(MORE, "more"), (NEXT, "next"), (FILE, "download"), (HARM, ""), (NEITHER, "")]
)
def test_labels(labels: str, kind: str) -> None:
    """The effect of a button is read from its label, in eleven languages; harmful ones are never clicked."""
    said = {label: says(label) for label in labels.replace("\n", "|").split("|")}
    assert {label: word for label, word in said.items() if word != kind} == {}


def test_harm() -> None:
    """Whatever speaks of harm is found, and the labels of harmless buttons do not."""
    assert all(is_harm(label) for label in HARM.replace("\n", "|").split("|"))
    assert not [label for part in (MORE, NEXT, FILE) for label in part.replace("\n", "|").split("|") if is_harm(label)]


def test_long_labels() -> None:
    """A text that contains the word "next" is not a button."""
    assert says("more " * (LONGEST // 5)) == "more"
    assert says("more " * (LONGEST // 5 + 1)) == ""
    assert says("more" + " " * 1_000_000) == "more"
    assert says("x" * 1_000_000) == ""
