"""The text of a link, by which a topic judges what it leads to before it is fetched."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote, urlsplit

if TYPE_CHECKING:
    from scrapy_focus.core.types import Link

_LONGEST_URL = 2_000  # characters that are read for names
_WORDS = re.compile(r"[^\W_]+")
_EDGES = re.compile(r"(?<=[^\W\d_A-Z])(?=[A-Z])|(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])")  # MarchBudget2024
#: What a text has that says something in words.
LETTER = re.compile(r"[^\W\d_]{2}")
_FILE_NAME = re.compile(r"[^/\\]+\.[A-Za-z][A-Za-z0-9]{1,4}")  # as the value of a query
_LONGEST_NAME = 200  # characters of a name
#: What says that a link is to a file, and of which kind and size: "Download (PDF, 33 kB)".
_NOTE = re.compile(
    r"\b(?:download|herunterladen|t[ée]l[ée]charger|descargar|scarica|stáhnout)\b"
    r"|[(\[](?:[a-z]{2,5}[\s,;:|/-]*)?(?:\d[\d.,]*\s?(?:bytes|[kmg]i?b))?[)\]]",
    re.IGNORECASE,
)


def text_of(link: Link, title: str = "") -> str:
    """Return the text by which a link is judged: its own, the name of its file, the text around it, the page's title.

    Notes on the kind and size of a file say nothing of its subject, and are dropped.

    Examples
    --------
    >>> from scrapy_focus import Link
    >>> text_of(Link("http://a.test/docs/Budget_2024.pdf", 1, anchor="PDF", context="Annual budget: PDF"), "Finance")
    'PDF Budget 2024 Annual budget: PDF Finance'
    >>> text_of(Link("http://a.test/node/7/file", 1, anchor="Download (PDF, 33 kB)"), "Wages by region")
    'file Wages by region'
    """
    around = "" if link.context == link.anchor else link.context
    anchor, around = (" ".join(_NOTE.sub(" ", part).split()) for part in (link.anchor, around))
    return " ".join(part for part in (anchor, words_in_url(link.url), around, title) if part)


def words_in_url(url: str) -> str:
    """Return the words of the name of a file in its URL, without its extension; of its folder, if it has no letters.

    Examples
    --------
    >>> words_in_url("https://a.test/stats/unemploymentRates-2024.csv?v=3")
    'unemployment Rates 2024'
    >>> words_in_url("https://a.test/wages/2024.csv"), words_in_url("https://a.test/get?file=tourism_q3.xlsx&id=7")
    ('wages 2024', 'get tourism q 3')
    """
    try:
        parts = urlsplit(url[:_LONGEST_URL])
        values = parse_qsl(parts.query) if "." in parts.query else []
    except ValueError:
        return ""
    folders = [unquote(part) for part in parts.path.split("/") if part]
    names = [words_in_name(folders[-1])] if folders else []
    if len(folders) > 1 and not LETTER.search(names[0]):
        names.insert(0, words_in_name(folders[-2]))
    names += [words_in_name(value) for _, value in values if _FILE_NAME.fullmatch(value)]
    return " ".join(filter(None, names))


def words_in_name(name: str) -> str:
    """Return the words of a file name, separated by blanks, without its extension.

    Examples
    --------
    >>> words_in_name("Haushaltsplan_Gemeinde-2024.final.pdf")
    'Haushaltsplan Gemeinde 2024 final'
    """
    stem, dot, ending = name[:_LONGEST_NAME].rpartition(".")
    if not dot or not ending.isalnum():
        stem = name[:_LONGEST_NAME]
    return " ".join(_WORDS.findall(_EDGES.sub(" ", stem)))
