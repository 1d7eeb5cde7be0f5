"""Tells whether a page is a shell: scripts add its actual content, which is missing without a browser.

Nearly every page has scripts, and hardly any needs them. Menus, counters, comments and consent walls also create empty
elements and fetch data. So one sign is not enough: the main part of a page has to lack links and text, and a script, or
the page itself, has to announce more content. What only a browser can find out stays unknown.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lxml.etree import _Element

_SPARSE_LINKS, _SPARSE_TEXT = 3, 1_000  # of an incomplete main part, at most; characters
_BARE_TEXT = 150  # characters of one without a link: a heading, and "Loading ..."
_EMPTY_TEXT = 40  # characters of a placeholder element
_MOST = 5_000  # elements that are read
_INNER = 20  # elements in a placeholder, at most
_EMPTY = 50  # placeholder elements
_SCRIPTS, _FETCHING = 50, 10  # of a page
_READ = 20_000  # characters of a script
_BUTTONS = 200

_BESIDE = frozenset(  # elements that are not content, or not of this page
    "script style noscript template head nav header footer aside dialog svg select".split()
)
_ROLES = frozenset("navigation banner contentinfo complementary search dialog menu menubar".split())
_MEDIA = frozenset("img video audio iframe frame object embed".split())
_FULL = frozenset({"a", "form", "input", *_MEDIA})  # elements that a placeholder does not have
_BLOCKS = frozenset("div main section article ul ol dl table tbody".split())
_NAMES = frozenset(  # words in the names of elements outside of the content
    "ad ads alert announcer banner basket breadcrumb breadcrumbs captcha cart chat comment comments consent cookie "
    "cookies disqus fb footer header icon lightbox loader map menu modal nav navbar navigation newsletter notification "
    "notifications overlay player popover popup preloader print recaptcha related search share sharing sidebar "
    "snackbar social spinner suggestions toast toc toggle tooltip top translate tweets video widget".split()
)
_APP = frozenset("app application root next nuxt gatsby svelte ember react vue angular spa".split())
_LIST = frozenset(  # words in the names of lists
    "list liste lists listing listings lista result results ergebnisse resultats resultados risultati items entries "
    "records rows documents dokumente publications publikationen publicaciones downloads files dateien datasets "
    "resources reports berichte articles catalog catalogue katalog cards grid hits posts table feed".split()
)
_CONTENT = _APP | _LIST | frozenset("content contents inhalt contenu contenido main page view".split())

_ASKS = re.compile(  # of a <noscript>
    r"java\s?-?script\b[^.]{0,80}\b(?:enabl|requir|need|necess|must|activ|aktiv|habilit|abilit|ativ|włącz|включ|turn)|"
    r"\b(?:enabl|requir|need|necess|activ|aktiv|habilit|abilit|ativ|włącz|включ|turn|without|ohne|sans|sin|benötig)"
    r"[^.]{0,80}\bjava\s?-?script\b|启用\s*javascript|javascriptを有効",
    re.IGNORECASE,
)
_FETCHES = re.compile(
    r"\bfetch\s*\(|\bXMLHttpRequest\b|\baxios\b|\$\.(?:get|getJSON|ajax|post)\b|[\"'`/](?:api|graphql)/"
)
_MEASURES = re.compile(  # scripts that count visitors, or protect the page
    r"google-?analytics|googletagmanager|gtag\(|_paq\b|matomo|piwik|fbq\(|hotjar|clarity\.ms|NREUM|newrelic|sentry|"
    r"cdn-cgi|doubleclick|plausible|umami|consent|cookie|serviceWorker",
    re.IGNORECASE,
)
_LIBRARIES = re.compile(  # names of scripts that add no content
    r"jquery|bootstrap|popper|modernizr|analytics|gtag|gtm|matomo|piwik|captcha|awesome|polyfill|wp-(?:includes|content)|"
    r"emoji|lazy|slick|swiper|lightbox|fancybox|prism|highlight|mathjax|katex|search|doctools|sphinx|theme|menu|nav|"
    r"cookie|consent|track|stats|counter|disqus|comment|addthis|share|social|translate|clipboard|respond|shiv|print|"
    r"sidebar|toc|cdn-cgi|beacon|font|icon|settings|storage",
    re.IGNORECASE,
)
_MORE = re.compile(
    r"load (?:more|all|next)|(?:more|all) (?:results|documents|files|items|entries|publications|posts|news)\b|"
    r"mehr laden|(?:weitere|mehr|alle) (?:ergebnisse|treffer|einträge|dokumente)|charger (?:plus|la suite)|"
    r"plus de résultats|cargar más|más resultados|carica altr|carregar mais|meer laden|meer resultaten|załaduj więcej|"
    r"загрузить ещё|加载更多|もっと読み込む",
    re.IGNORECASE,
)
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


class _Part(NamedTuple):
    """The content of a page's main part."""

    links: int
    text: int  # characters
    media: int
    empty: list[_Element]  # elements that may be filled

    @property
    def is_full(self) -> bool:
        """Whether it has enough content, so that nothing seems to be missing."""
        return self.links > _SPARSE_LINKS or self.text > _SPARSE_TEXT

    @property
    def is_bare(self) -> bool:
        """Whether it has only a heading, or a loading message."""
        return not self.links and not self.media and self.text <= _BARE_TEXT


def is_shell(root: _Element, url: str = "") -> bool:
    """Return whether scripts seem to add the main content of a page; call it for pages with scripts.

    Linear in its elements, up to 5,000 of them; usually the first paragraphs or links decide.

    Examples
    --------
    >>> from lxml.html import fromstring
    >>> is_shell(fromstring('<nav><a href="/">Home</a></nav><div id="list"></div><script src="/app.js"></script>'))
    True
    >>> is_shell(fromstring('<p>Call us at any time.</p><div id="fb-root"></div><script src="/app.js"></script>'))
    False
    """
    body = root.find("body")
    if body is None:
        body = root
    main = _main_of(body)
    part = _part_of(main)
    if part is None or part.is_full:
        return _offers_more(main)
    fetching = _fetching_scripts(root)
    if _is_said_to_be_filled(part, body, fetching):
        return True
    # Otherwise the names of empty elements count, if there is a script that may fill them.
    if not fetching and not any(_is_own(script, url) for script in _running(root)):
        return False
    if _any_is_called(part.empty, _LIST):
        return True
    is_empty_main = main is not body and part.text <= _EMPTY_TEXT
    return part.is_bare and (is_empty_main or _any_is_called(part.empty, _CONTENT))


def _is_said_to_be_filled(part: _Part, body: _Element, fetching: list[str]) -> bool:
    """Whether the page itself says that scripts fill it."""
    if any(_is_named_in(element, fetching) for element in part.empty):
        return True
    return part.is_bare and (_asks_for_scripts(body) or _is_blank(body))


def _main_of(body: _Element) -> _Element:
    """Return the only main element of a page, or else its body."""
    mains = [*body.iter("main")] or [each for each in body.iter("div") if each.get("role") == "main"]
    if len(mains) == 1:
        return mains[0]
    return body


def _fetching_scripts(root: _Element) -> list[str]:
    """Return the inline scripts of a page that fetch something, except those that count visitors."""
    fetching = (text for text in _scripts_of(root) if _FETCHES.search(text) and not _MEASURES.search(text))
    return [*islice(fetching, _FETCHING)]


def _any_is_called(elements: list[_Element], words: frozenset[str]) -> bool:
    return any(_words(element) & words for element in elements)


def _part_of(main: _Element) -> _Part | None:
    """Return the content of a main part, without surrounding elements; ``None`` if it is large."""
    links = text = media = 0
    empty: list[_Element] = []
    left = _MOST
    stack = [main]
    while stack:
        element = stack.pop()
        left -= 1
        if element is not main:
            text += _length(element.tail)
        if not left or links > _SPARSE_LINKS or text > _SPARSE_TEXT:
            return None
        if not isinstance(element.tag, str):
            continue
        if element is not main and _is_beside(element):
            continue
        text += _length(element.text)
        if element.tag == "a":
            links += _leads_away(element)
        elif element.tag in _MEDIA:
            media += not _is_wait(element)
        if len(empty) < _EMPTY and _may_be_filled(element):
            empty.append(element)
        stack.extend(reversed(element))
    return _Part(links, text, media, empty)


def _leads_away(link: _Element) -> bool:
    """Whether a link leads to another page, and not to a place in this one."""
    href = str(link.get("href") or "")
    return bool(href) and not href.startswith("#")


def _may_be_filled(element: _Element) -> bool:
    """Whether an element is empty and of a kind that scripts fill: a block, or a custom element."""
    if element.tag not in _BLOCKS and "-" not in element.tag:
        return False
    return _is_empty(element)


def _is_beside(element: _Element) -> bool:
    """Whether an element is not content: a menu, a footer, something hidden."""
    if element.tag in _BESIDE or element.get("role") in _ROLES:
        return True
    if element.get("hidden") is not None or element.get("aria-hidden") == "true":
        return True
    return any(each in _NAMES for each in (element.get("id") or "", *(element.get("class") or "").split()))


def _is_empty(element: _Element) -> bool:
    """Whether an element has at most a loading message, and is content by its name."""
    if len(element) > 5 or _words(element) & _NAMES:
        return False
    inner = [*islice(element.iterdescendants(), _INNER + 1)]
    if len(inner) > _INNER or any(each.tag in _FULL and not _is_wait(each) for each in inner):
        return False
    return _shown_length(element, inner) <= _EMPTY_TEXT


def _shown_length(element: _Element, inner: list[_Element]) -> int:
    """Return the number of characters of an element and its descendants."""
    shown = sum(_length(each.tail) for each in inner)
    for each in (element, *inner):
        if isinstance(each.tag, str) and each.tag not in _BESIDE:
            shown += _length(each.text)
    return shown


def _is_wait(element: _Element) -> bool:
    """Whether an element is a loading image."""
    names = f"{element.get('src')} {element.get('class')}"
    return element.tag in _MEDIA and bool(re.search("load|spin|wait|pixel", names, re.IGNORECASE))


def _words(element: _Element) -> set[str]:
    """Return the words in the names of an element, in lower case."""
    names = f"{element.get('id') or ''} {element.get('class') or ''} {element.tag if '-' in str(element.tag) else ''}"
    return {word.lower() for word in _WORD.findall(names[:500])}


def _is_named_in(element: _Element, scripts: list[str]) -> bool:
    """Whether a script that fetches names an element by its ID."""
    name = element.get("id")
    quoted = [f"{before}{name}{after}" for before in "\"'`#" for after in "\"'`"] if name else []
    return any(spelled in text for text in scripts for spelled in quoted)


def _running(root: _Element) -> Iterator[_Element]:
    """Yield the scripts of a page that are not data."""
    for script, _ in zip(root.iter("script"), range(_SCRIPTS), strict=False):
        kind = (script.get("type") or "").lower()
        if not kind or "javascript" in kind or kind == "module":
            yield script


def _scripts_of(root: _Element) -> Iterator[str]:
    """Yield the texts of inline scripts."""
    for script in _running(root):
        if script.text and not script.get("src"):
            yield script.text[:_READ]


def _is_own(script: _Element, url: str) -> bool:
    """Whether a script belongs to the site, and is not a library by its name."""
    src = script.get("src") or ""
    try:
        host, path = urlsplit(src.strip()).hostname, urlsplit(src.strip()).path
    except ValueError:
        return False
    is_here = not host or host == (urlsplit(url).hostname if url else host) or script.get("type") == "module"
    return bool(path) and is_here and not _LIBRARIES.search(path)


def _asks_for_scripts(body: _Element) -> bool:
    """Whether a page says that it needs JavaScript; messages about comments and the like do not count."""
    texts = ("".join(map(str, each.itertext()))[:500] for each in body.iter("noscript"))
    return any(_ASKS.search(text) and not re.search("comment|kommentar|disqus", text, re.IGNORECASE) for text in texts)


def _is_blank(body: _Element) -> bool:
    """Whether a page shows nothing at all."""
    shown = [each for each in body.iter() if isinstance(each.tag, str) and each.tag not in _BESIDE - {"nav", "header"}]
    text = sum(_length(each.text) for each in shown) + sum(_length(each.tail) for each in body.iterdescendants())
    return body.tag == "body" and not text and not any(each.tag in {"a", "frameset", "form", *_MEDIA} for each in shown)


def _offers_more(main: _Element) -> bool:
    """Whether a button that is not a link says that it loads more of a list."""
    for button, _ in zip(main.iter("button"), range(_BUTTONS), strict=False):
        label = " ".join("".join(map(str, button.itertext())).split())
        if len(label) <= _EMPTY_TEXT and _MORE.search(label):
            above = [button, *button.iterancestors()]
            if not any(each.tag == "form" or "comment" in " ".join(_words(each)) for each in above):
                return True
    return False


def _length(text: str | None) -> int:
    """Return the length of a text without blanks at its ends."""
    return len(text.strip()) if text else 0
