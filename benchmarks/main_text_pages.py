"""Pages with a known main text: paragraphs in six languages, in the furniture of eleven kinds of sites.

The paragraphs were written for this purpose. Everything else on a page (menus, teasers, comments, notices) is in the
same language, and is not part of its main text.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(frozen=True)
class Language:
    """The texts of a language."""

    code: str
    title: str
    author: str
    paragraphs: tuple[str, ...]
    menu: tuple[str, ...]  # short texts of links
    teasers: tuple[str, ...]  # titles of other pages
    notice: str  # about cookies
    comment: str  # by a reader
    rights: str  # at the foot


@dataclass(frozen=True)
class KnownPage:
    """A page, and what should be extracted from it."""

    name: str
    html: str
    text: str
    title: str
    author: str  # "": the page has none
    date: str  # YYYY-MM-DD, "" likewise
    language: str


LANGUAGES = (
    Language(
        "en", "The ferry that runs on stored wind", "Maeve Kinsella",
        (
            "The new ferry between the two islands left the harbour for the first time on Tuesday morning, with forty "
            "passengers, three vans and a brass band on board. It needs no fuel: its batteries are charged at night by "
            "the wind turbines above the village.",
            "For the people who live here the change is easy to hear. The old boat could be heard from the school, a "
            "mile inland, while the new one makes less noise than the gulls. Its captain says that she had to learn to "
            "sound the horn earlier, because walkers on the pier no longer notice her.",
            "The crossing takes twenty-five minutes, four more than before. In return, tickets cost a third less, and "
            "the council hopes that commuters will come back to a line which they had given up for their cars. Since "
            "the summer, a bus has been waiting at each end of it.",
            "Not everyone is pleased. Fishermen complain that the charging mast takes up the best berth in the "
            "harbour, and the owner of the petrol station has lost his largest customer. The council has offered him "
            "the contract to maintain the cables, and he is thinking about it.",
            "Whether the boat will run in a winter storm, nobody knows yet. The builders promise that it can turn back "
            "at any point of the route with half of its charge, and a generator in the hold is allowed to run twelve "
            "days a year. It has not been started so far.",
        ),
        ("Home", "News", "Business", "Weather", "Sport", "Contact us", "Subscribe", "Log in"),
        (
            "Council votes on new car park after long debate", "Ten walks for a rainy weekend",
            "Bakery wins prize for its rye bread", "Why the lighthouse will stay dark until spring",
        ),
        "We and our partners use cookies to improve your experience. Accept all or manage your settings.",
        "Great article! My uncle worked on the old boat for thirty years and would not believe this.",
        "All rights reserved. No part of this site may be reproduced without permission of the publisher.",
    ),
    Language(
        "de", "Eine Stadt zählt ihre Bäume", "Jonas Reitmeier",
        (
            "Seit Anfang Mai gehen jeden Morgen zwölf Leute mit Maßband und Tablet durch die Straßen und vermessen "
            "jeden einzelnen Baum. Bis zum Herbst wollen sie wissen, wie viele es sind, wie es ihnen geht und welche "
            "davon den nächsten trockenen Sommer überstehen werden.",
            "Die letzte Zählung liegt mehr als dreißig Jahre zurück. Damals trug man die Bäume mit Bleistift in Karten "
            "ein, von denen die Hälfte bei einem Wasserschaden im Keller des Rathauses verloren ging. Niemand weiß "
            "heute, was auf den übrigen Blättern mit den kleinen Kreuzen gemeint war.",
            "Jetzt bekommt jeder Baum eine Nummer, ein Foto und eine Seite im Netz. Wer in der Nachbarschaft wohnt, "
            "kann dort eintragen, wann er gegossen hat, und sehen, ob ihm jemand zuvorgekommen ist. In zwei Straßen "
            "ist daraus schon ein kleiner Wettbewerb geworden.",
            "Überrascht hat die Fachleute, wie gut sich die Platanen halten. Linden und Ahorne dagegen werfen ihr Laub "
            "immer früher ab, und an den großen Kreuzungen ist jeder dritte von ihnen krank. Ersetzt werden sie durch "
            "Arten, die man bisher nur aus dem Süden kannte.",
            "Was das alles kostet, steht noch nicht fest. Die Stadträtin rechnet mit einem Betrag, für den man auch "
            "zwei Kilometer Straße erneuern könnte. Sie fügt hinzu, dass ein großer Baum im Sommer so viel kühlt wie "
            "zehn Klimageräte, und dass man diese schließlich auch nicht geschenkt bekomme.",
        ),
        ("Startseite", "Politik", "Wirtschaft", "Kultur", "Sport", "Über uns", "Abo", "Anmelden"),
        (
            "Freibad öffnet erst im Juli wieder", "So wird der Balkon winterfest",
            "Neue Straßenbahn fährt Probe", "Wer gewinnt den Preis für das schönste Schaufenster?",
        ),
        "Wir verwenden Cookies, um unsere Seiten zu verbessern. Alle annehmen oder Einstellungen öffnen.",
        "Bei uns in der Straße stehen sechs Linden, und alle sehen furchtbar aus. Danke für den Bericht!",
        "Alle Rechte vorbehalten. Nachdruck, auch auszugsweise, nur mit Genehmigung des Verlags.",
    ),
    Language(
        "fr", "Le moulin qui moud de nouveau", "Clémence Aubry",
        (
            "Après quarante ans de silence, la roue du vieux moulin a recommencé à tourner samedi dernier devant deux "
            "cents personnes venues de toute la vallée. Il a fallu six ans de travaux, beaucoup de patience et un prêt "
            "que la commune remboursera jusqu'en deux mille trente-cinq.",
            "Le meunier est une meunière. Ancienne comptable, elle a appris le métier en Bretagne chez un artisan qui "
            "ne voulait pas d'élève et qui a fini par lui vendre ses meules. Elle compte produire trois cents kilos de "
            "farine par jour, avec du blé cultivé à moins de vingt kilomètres.",
            "Les boulangers du canton attendaient cela depuis longtemps. Deux d'entre eux ont déjà changé leurs "
            "recettes, car cette farine boit plus d'eau et lève plus lentement que celle des grandes minoteries. Les "
            "clients, disent-ils, acceptent de payer un peu plus pour un pain qui se garde une semaine.",
            "La rivière, elle, n'a pas toujours assez d'eau. En août, la roue devra s'arrêter afin de laisser passer "
            "les truites, et un moteur électrique prendra le relais. Les panneaux qui le nourrissent sont cachés "
            "derrière le toit de la grange, à la demande des voisins.",
            "Pour la mairie, le plus difficile commence maintenant. Les visiteurs sont nombreux, la route est étroite, "
            "et le seul café du village ferme à seize heures. Une association propose d'ouvrir une petite salle dans "
            "l'ancienne écurie, si quelqu'un veut bien en payer le chauffage.",
        ),
        ("Accueil", "Actualités", "Économie", "Culture", "Météo", "Contact", "S'abonner", "Connexion"),
        (
            "La piscine municipale fermée pour travaux", "Dix idées pour un dimanche de pluie",
            "Le marché déménage place de la gare", "Pourquoi les hirondelles arrivent plus tôt",
        ),
        "Nous utilisons des cookies pour améliorer votre visite. Tout accepter ou gérer vos choix.",
        "Bravo à toute l'équipe, mon grand-père livrait son grain ici avec deux chevaux et une charrette.",
        "Tous droits réservés. Reproduction interdite sans l'accord écrit de la rédaction.",
    ),
    Language(
        "es", "La biblioteca que viaja en mula", "Inés Carrasco",
        (
            "Cada lunes, antes de que salga el sol, dos mulas cargadas de libros suben por el camino de piedra hacia "
            "las aldeas donde no llega ningún coche. Las acompaña un maestro jubilado que conoce por su nombre a cada "
            "niño y recuerda qué leyó cada uno el mes anterior.",
            "La idea nació cuando cerraron la última escuela de la sierra. Los alumnos bajan ahora al valle en un "
            "autobús que tarda más de una hora, y por la tarde nadie tiene ganas de volver para buscar una novela. "
            "Entonces el maestro pensó que los libros podían hacer el viaje en su lugar.",
            "Al principio llevaba solo treinta volúmenes, casi todos suyos. Hoy son cuatrocientos, prestados por la "
            "biblioteca de la provincia, y una editorial le envía novedades cada otoño. Los más pedidos son los de "
            "animales, los de miedo y un manual para arreglar motores.",
            "Las mulas comen lo que encuentran y no necesitan permiso de circulación, aunque el ayuntamiento tardó dos "
            "años en entenderlo. Hubo que inventar un papel nuevo, con sello y fotografía, que el animal mayor lleva "
            "colgado del cuello en una bolsa de plástico.",
            "El próximo invierno el maestro cumplirá setenta y cinco años, y busca a alguien que quiera aprender la "
            "ruta. Ya se han presentado tres personas, entre ellas una antigua lectora que estudió veterinaria y que "
            "dice que las mulas la reconocieron antes que él.",
        ),
        ("Inicio", "Noticias", "Economía", "Cultura", "Deportes", "Contacto", "Suscribirse", "Entrar"),
        (
            "El puente nuevo abrirá en primavera", "Doce recetas para el frío",
            "La feria cambia de fecha otra vez", "Por qué el reloj de la plaza va adelantado",
        ),
        "Usamos cookies para mejorar su visita. Acepte todas o configure sus preferencias.",
        "Mi abuela aprendió a leer con un libro que trajeron esas mulas. ¡Muchas gracias por contarlo!",
        "Todos los derechos reservados. Prohibida la reproducción total o parcial sin autorización.",
    ),
    Language(
        "cs", "Pošta, která rozváží i polévku", "Tereza Vondrová",
        (
            "V pět hodin ráno voní v malé poště na náměstí čerstvý chléb. Doručovatelka tu třídí dopisy, hned vedle "
            "krájí kuchařka mrkev, a v sedm odjíždí žluté auto do čtrnácti vesnic s novinami, důchody a teplým obědem "
            "pro ty, kdo už si sami nevaří.",
            "Nápad vznikl z nouze. Úřad chtěl pobočku zavřít, protože za den přišlo sotva třicet lidí, a obec zase "
            "nemohla najít nikoho, kdo by vozil obědy. Starosta spočítal, že obě cesty vedou stejnými ulicemi skoro ve "
            "stejnou dobu, a navrhl je spojit.",
            "Dnes má služba dvě stě stálých zákazníků. Kromě polévky jim přiveze léky, vymění žárovku nebo zkontroluje, "
            "zda doma netáhne z kamen. Nejvíc si ale lidé cení toho, že se u nich někdo každý den na pár minut zastaví "
            "a zeptá se, jak se jim daří.",
            "Ekonomům se to zpočátku nelíbilo. Podle tabulek je zastávka delší než dvě minuty ztrátová, jenže tabulky "
            "nepočítají s tím, kolik stojí místo v domově pro seniory. Když to někdo konečně sečetl, vyšlo najevo, že "
            "kraj na každém obědě ušetří.",
            "Od ledna se přidají další tři okresy. Auta budou elektrická, hrnce lehčí a na jídelním lístku přibude "
            "jedno bezmasé jídlo týdně. Doručovatelka k tomu říká jediné: ať si vymýšlejí, co chtějí, ale knedlíky se "
            "škrtat nebudou.",
        ),
        ("Domů", "Zprávy", "Ekonomika", "Kultura", "Sport", "Kontakt", "Předplatné", "Přihlásit"),
        (
            "Koupaliště otevře až v červenci", "Deset výletů na podzim",
            "Nová tramvaj vyjela na zkoušku", "Proč hodiny na věži stále zlobí",
        ),
        "Používáme cookies, abychom zlepšili naše stránky. Přijmout vše nebo upravit nastavení.",
        "Moje babička na oběd čeká u okna už od deseti. Moc děkujeme všem, kdo to vymysleli!",
        "Všechna práva vyhrazena. Přetisk, i částečný, jen se souhlasem vydavatele.",
    ),
    Language(
        "ja", "山の駅に戻った灯り", "高橋由紀",
        (
            "十五年前に列車が来なくなった山の駅に、この春ふたたび灯りがともった。古い待合室は小さな食堂に生まれ変わり、"
            "週末になると遠くの町から自転車で訪れる人の列ができる。",
            "店を開いたのは、かつてこの駅で切符を売っていた人の孫である。壁には当時の時刻表がそのまま残され、壊れた"
            "時計は最後の列車が出た時刻を指したまま動かない。客はそれを写真に撮ってから席に着く。",
            "料理に使う野菜は、線路の跡に沿って作られた畑で育てられている。石が多く水はけがよいため、大根と蕎麦には"
            "とくに向いているという。収穫の日には近所の子どもたちも手伝い、帰りに温かい汁を一杯もらう。",
            "困っているのは冬の雪である。道が閉ざされると客は来られず、去年は二か月のあいだ店を休んだ。村は除雪の"
            "順番を見直すと約束したが、予算はまだ決まっていない。",
            "それでも彼女は続けるつもりだ。祖父が守った駅を、もう一度だれかが待つ場所にしたいと語る。次の目標は、"
            "使われなくなった客車を一両借りて、泊まれる部屋にすることである。",
        ),
        ("ホーム", "ニュース", "経済", "文化", "天気", "お問い合わせ", "購読", "ログイン"),
        ("図書館の新しい開館時間について", "雨の日に訪れたい庭園十選", "市場の移転が決まる", "橋の工事は来年まで続く"),
        "当サイトではクッキーを使用しています。すべて許可するか、設定を変更してください。",
        "子どものころ、この駅でよく父を待ちました。記事を読んで涙が出ました。",
        "無断転載を禁じます。記事と写真の権利は発行者に属します。",
    ),
)  # fmt: skip

DATE = "2025-03-18"


def pages() -> Iterator[KnownPage]:
    """Yield a page of each kind in each language."""
    for make in KINDS:
        for language in LANGUAGES:
            yield make(language)


def _links(texts: tuple[str, ...], folder: str = "", tag: str = "li") -> str:
    return "".join(f'<{tag}><a href="/{folder}{n}.html">{escape(text)}</a></{tag}>' for n, text in enumerate(texts))


def _head(of: Language, more: str = "", lang: bool = True) -> str:
    declared = f' lang="{of.code}"' if lang else ""
    title = f"<title>{escape(of.title)} | Example</title>"
    return f'<!doctype html><html{declared}><head><meta charset="utf-8">{title}{more}</head>'


def _ps(texts: tuple[str, ...]) -> str:
    return "".join(f"<p>{escape(text)}</p>" for text in texts)


def _known(
    kind: str, of: Language, html: str, *texts: str, author: str = "", date: str = "", lang: str = ""
) -> KnownPage:
    return KnownPage(f"{kind} {of.code}", html, "\n".join(texts), of.title, author, date, lang)


def article(of: Language) -> KnownPage:
    """Elements of HTML 5, and metadata in JSON-LD."""
    ld = (
        f'<script type="application/ld+json">{{"@context":"https://schema.org","@type":"NewsArticle","headline":'
        f'"{of.title}","datePublished":"{DATE}T08:30:00Z","author":{{"@type":"Person","name":"{of.author}"}}}}</script>'
    )
    html = (
        f"{_head(of, ld)}<body><header><nav><ul>{_links(of.menu)}</ul></nav></header><main><article>"
        f"<h1>{of.title}</h1>{_ps(of.paragraphs)}</article></main><aside><h2>{of.menu[1]}</h2><ul>"
        f"{_links(of.teasers, 'news/')}</ul></aside><footer><p>{of.rights}</p></footer></body></html>"
    )
    return _known("article", of, html, of.title, *of.paragraphs, author=of.author, date=DATE, lang=of.code)


def divs(of: Language) -> KnownPage:
    """Nothing but ``div``, with class names of a build tool."""
    text = "".join(f'<div class="x7k">{escape(each)}</div>' for each in of.paragraphs)
    menu = "".join(f'<div class="q1"><a href="/{n}">{each}</a></div>' for n, each in enumerate(of.menu))
    side = "".join(f'<div class="q4"><a href="/p/{n}">{each}</a></div>' for n, each in enumerate(of.teasers))
    html = (
        f'{_head(of)}<body><div id="root"><div class="a1">{menu}</div><div class="b2"><div class="h9">{of.title}</div>'
        f'<div class="c3">{text}</div></div><div class="d4">{side}</div><div class="e5">{of.rights}</div></div></body></html>'
    )
    return _known("divs", of, html, of.title, *of.paragraphs, lang=of.code)


def blog(of: Language) -> KnownPage:
    """A blog with a sidebar, buttons to share, related posts and comments."""
    meta = f'<meta name="author" content="{of.author}"><meta property="article:published_time" content="{DATE}">'
    comments = "".join(
        f'<li class="comment"><div class="comment-author">reader{n}</div><div class="comment-body"><p>{of.comment}</p>'
        f'<a class="reply" href="#c{n}">Reply</a></div></li>' for n in range(3)
    )  # fmt: skip
    html = (
        f'{_head(of, meta)}<body class="single-post has-sidebar"><div id="masthead"><ul class="menu">{_links(of.menu)}</ul>'
        f'</div><div id="content" class="site-content"><div class="post hentry"><h1 class="entry-title">{of.title}</h1>'
        f'<div class="entry-meta">{DATE} <a href="/author/1">{of.author}</a></div><div class="entry-content">'
        f'{_ps(of.paragraphs)}<div class="sharedaddy"><a href="https://example.org/share">Share</a></div></div></div>'
        f'<div class="related-posts"><h3>{of.menu[1]}</h3><ul>{_links(of.teasers, "2025/")}</ul></div>'
        f'<div id="comments"><ol class="comment-list">{comments}</ol></div></div><div id="secondary" class="widget-area">'
        f'<div class="widget"><ul>{_links(of.teasers, "tag/")}</ul></div></div><div id="colophon">{of.rights}</div></body></html>'
    )
    return _known("blog", of, html, of.title, *of.paragraphs, author=of.author, date=DATE, lang=of.code)


def tables(of: Language) -> KnownPage:
    """The layout of the nineties: nested tables, fonts, and no declared language."""
    menu = "".join(f'<tr><td bgcolor="#ccc"><a href="{n}.htm"><font size="2">{each}</font></a></td></tr>'
                   for n, each in enumerate(of.menu))  # fmt: skip
    text = "".join(f'<p align="justify"><font face="Arial">{escape(each)}</font></p>' for each in of.paragraphs)
    html = (
        f'{_head(of, lang=False)}<body bgcolor="#ffffff"><table width="100%"><tr><td colspan="2"><center><font size="6">'
        f'Example</font></center></td></tr><tr><td width="120" valign="top"><table>{menu}</table></td><td valign="top">'
        f'<font size="5"><b>{of.title}</b></font>{text}</td></tr><tr><td colspan="2"><font size="1">{of.rights}</font>'
        f"</td></tr></table></body></html>"
    )
    return _known("tables", of, html, of.title, *of.paragraphs)


def interrupted(of: Language) -> KnownPage:
    """News with teasers, advertisements and a newsletter between its paragraphs, and a notice on cookies."""
    first, second, *rest = of.paragraphs
    meta = f'<meta property="og:type" content="article"><meta name="date" content="{DATE}">'
    html = (
        f'{_head(of, meta)}<body><div id="cookie-banner" role="dialog"><p>{of.notice}</p><button>OK</button></div>'
        f'<nav class="main-nav">{_links(of.menu, tag="span")}</nav><div class="article-page"><h1>{of.title}</h1>'
        f'<p class="byline"><span class="author">{of.author}</span></p><div class="article-body"><p>{first}</p>'
        f'<div class="teaser-box"><h4><a href="/n/1">{of.teasers[0]}</a></h4></div><p>{second}</p><div class="ad">'
        f'<a href="https://ads.example/">{of.menu[6]}</a></div>{_ps(tuple(rest))}<div class="newsletter-signup"><p>'
        f'{of.menu[6]}</p><form><input name="mail"><button>{of.menu[6]}</button></form></div></div></div>'
        f'<section class="more-news"><h2>{of.menu[1]}</h2>{_links(of.teasers, "n/", "div")}</section>'
        f"<footer>{_links(of.menu, tag='span')}<p>{of.rights}</p></footer></body></html>"
    )
    return _known("interrupted", of, html, of.title, *of.paragraphs, author=of.author, date=DATE, lang=of.code)


def breaks(of: Language) -> KnownPage:
    """One element with line breaks in place of paragraphs."""
    text = "<br><br>".join(map(escape, of.paragraphs))
    html = (
        f'{_head(of)}<body><div id="nav">{_links(of.menu, tag="span")}</div><div id="main"><h2>{of.title}</h2>{text}</div>'
        f'<div id="footer">{of.rights}</div></body></html>'
    )
    return _known("breaks", of, html, of.title, *of.paragraphs, lang=of.code)


def manual(of: Language) -> KnownPage:
    """Documentation: a table of contents, sections, code, nested lists and a table of options."""
    code = "def cross(harbour):\n    for ferry in harbour:\n        if ferry.charge < 0.5:\n            return ferry.stay()"
    rows = "".join(f"<tr><td><code>--{key}</code></td><td>{value}</td></tr>" for key, value in
                   zip(("depth", "delay", "limit"), of.teasers, strict=False))  # fmt: skip
    toc = "".join(f'<li class="toctree-l1"><a href="#s{n}">{each}</a></li>' for n, each in enumerate(of.menu))
    a, b, c, d, e = of.paragraphs
    html = (
        f'{_head(of)}<body><div class="sphinxsidebar"><ul>{toc}</ul></div><div class="document"><div class="body" role="main">'
        f'<h1>{of.title}</h1><p>{a}</p><h2>{of.menu[1]}</h2><p>{b}</p><div class="highlight"><pre>{escape(code)}</pre></div>'
        f'<h2>{of.menu[2]}</h2><ul><li><p>{c}</p><ul><li>{d}</li></ul></li></ul><table class="docutils"><tr><th>'
        f'{of.menu[3]}</th><th>{of.menu[4]}</th></tr>{rows}</table><p>{e}</p></div></div><div class="related"><ul>'
        f'{_links(of.menu)}</ul></div><div class="footer">{of.rights}</div></body></html>'
    )
    words = [of.title, a, of.menu[1], b, code, of.menu[2], c, d, of.menu[3], of.menu[4]]
    words += [
        word for key, value in zip(("depth", "delay", "limit"), of.teasers, strict=False) for word in (key, value)
    ]
    return _known("manual", of, html, *words, e, lang=of.code)


def recipe(of: Language) -> KnownPage:
    """A recipe: a list of ingredients and steps, with the story that always precedes them."""
    a, b, c, d, _ = of.paragraphs
    html = (
        f'{_head(of)}<body><div class="topbar"><ul>{_links(of.menu)}</ul></div><div class="recipe" itemscope '
        f'itemtype="https://schema.org/Recipe"><h1 itemprop="name">{of.title}</h1><div class="intro"><p>{a}</p></div>'
        f'<div class="ingredients"><h2>{of.menu[2]}</h2><ul>{"".join(f"<li>{100 + n} g {each}</li>" for n, each in enumerate(of.teasers))}'
        f'</ul></div><div class="steps"><h2>{of.menu[3]}</h2><ol><li>{b}</li><li>{c}</li><li>{d}</li></ol></div></div>'
        f'<div class="you-may-like"><ul>{_links(of.teasers, "r/")}</ul></div><div class="foot">{of.rights}</div></body></html>'
    )
    ingredients = [f"{100 + n} g {each}" for n, each in enumerate(of.teasers)]
    return _known("recipe", of, html, of.title, a, of.menu[2], *ingredients, of.menu[3], b, c, d, lang=of.code)


def thread(of: Language) -> KnownPage:
    """A forum: all posts are its main text, signatures and buttons are not."""
    posts = "".join(
        f'<div class="post"><div class="userinfo"><a href="/u/{n}">user{n}</a><br>{of.menu[n]}</div><div class="content">'
        f'<p>{escape(each)}</p></div><div class="buttons"><a href="#q">{of.menu[5]}</a></div></div>'
        for n, each in enumerate(of.paragraphs)
    )  # fmt: skip
    html = (
        f'{_head(of)}<body><div class="breadcrumbs"><a href="/">{of.menu[0]}</a> &gt; <a href="/f">{of.menu[1]}</a></div>'
        f'<h1>{of.title}</h1><div id="posts">{posts}</div><div class="pagination"><a href="?p=2">2</a> <a href="?p=3">3</a>'
        f'</div><div class="footer">{of.rights}</div></body></html>'
    )
    return _known("thread", of, html, of.title, *of.paragraphs, lang=of.code)


def dataset(of: Language) -> KnownPage:
    """The page of a data set: a short description and a table of facts."""
    a = of.paragraphs[0]
    facts = (("Format", "CSV"), ("Licence", "CC BY 4.0"), (of.menu[2], of.teasers[0]), (of.menu[3], of.teasers[1]))
    rows = "".join(f"<tr><th>{key}</th><td>{value}</td></tr>" for key, value in facts)
    html = (
        f'{_head(of)}<body><div class="navbar"><ul>{_links(of.menu)}</ul></div><div class="wrapper"><section class="module">'
        f'<h1>{of.title}</h1><div class="notes"><p>{a}</p></div><section class="additional-info"><table>{rows}</table>'
        f'</section></section><aside class="secondary"><ul>{_links(of.teasers, "d/")}</ul></aside></div>'
        f'<footer class="site-footer">{of.rights}</footer></body></html>'
    )
    return _known("dataset", of, html, of.title, a, *(cell for fact in facts for cell in fact), lang=of.code)


def short(of: Language) -> KnownPage:
    """Two sentences below a large menu."""
    a = of.paragraphs[4]
    menu = "".join(f"<ul>{_links(of.menu + of.teasers, f'{n}/')}</ul>" for n in range(6))
    html = (
        f'{_head(of)}<body><div class="megamenu">{menu}</div><div class="page"><h1>{of.title}</h1><p>{a}</p></div>'
        f'<div class="footer"><p>{of.rights}</p>{_links(of.menu, tag="span")}</div></body></html>'
    )
    return _known("short", of, html, of.title, a, lang=of.code)


KINDS: tuple[Callable[[Language], KnownPage], ...] = (
    article, divs, blog, tables, interrupted, breaks, manual, recipe, thread, dataset, short,
)  # fmt: skip
