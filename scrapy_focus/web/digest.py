"""Computes digests of pages: two visits with the same digest saw the same content, from a reader's point of view.

Content that changes with each request is excluded: scripts, hidden fields, times of day, ages like "3 minutes ago",
counters of visitors, tokens. It disappears at once, and following it is useless.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from lxml import etree

from scrapy_focus.web.main_text import main_blocks

if TYPE_CHECKING:
    from lxml.etree import _Element

_FEWEST = 100  # bytes of text; a page with less says too little
_SHORT = 80  # bytes of a text that contains a counter
_TOKEN_BYTES, _TOKEN_DIGITS = 16, 3  # at least
_UNSEEN = ("script", "style", "noscript", "template", "textarea")
_WAY = 1  # version of the digest of the main text
_ZERO = ord("0")
_BLANKS = b" \t\n\r\f\v"
_DIGITS = bytes.maketrans(b"123456789", b"000000000")

_texts: Any = etree.XPath("descendant::text()", smart_strings=False)
_hrefs: Any = etree.XPath("descendant::a/@href", smart_strings=False)

_UNIT = rb"(?:(?:sec(?:ond)?|min(?:ute)?|hour|hr|day|week|month|year)s?|[smhd])"
_VISITS = rb"(?:views?|visits?|visitors?|hits|clicks|(?:users?|guests?|visitors?|people) online|online now)"
_VOLATILE = re.compile(  # each starts with the first digit of a number, which is fast to find
    rb"[0-9](?<![0-9:.,][0-9])(?:"
    rb"[0-9]?:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]{1,6})?)?(?: ?[ap]\.?m\b)?(?![0-9:])"  # a time of day
    rb"|[0-9]{0,3} ?" + _UNIT + rb" ago\b"  # an age
    rb"|(?<=\bvor [0-9])[0-9]{0,3} (?:Sekunde|Minute|Stunde|Tag|Woche|Monat|Jahr)(?:e?n)?\b"
    rb"|(?<=\bil y a [0-9])[0-9]{0,3} (?:secondes?|minutes?|heures?|jours?|semaines?|mois|ans?)\b"
    rb"|(?<=\bhace [0-9])[0-9]{0,3} (?:segundos?|minutos?|horas?|d\S{1,2}as?|semanas?|mes(?:es)?|a\S{1,2}os?)\b"
    rb"|[0-9.,]{0,12} ?" + _VISITS + rb"\b"  # a counter
    rb"|(?<=\bin [0-9])[0-9]{0,3}(?:[.,][0-9]{1,6})? ?(?:msec|ms|secs?|seconds?|s)\b"  # the time that the page took
    rb")",
    re.IGNORECASE,
)
_AN_AGE = re.compile(rb"\ban? " + _UNIT + rb" ago\b", re.IGNORECASE)
_COUNTER = re.compile(rb"\s{0,20}(?:you are )?" + _VISITS + rb"[:# (]{1,3}[0-9.,]{1,20}\W{0,20}\Z", re.IGNORECASE)
_TOKEN = re.compile(rb"(?:[A-Za-z_-]*[0-9]+[A-Za-z_-]){3}[0-9A-Za-z_-]*\Z")  # alternating letters and digits
_VALUE = re.compile(r"=(?:\d{10,13}|[0-9A-Za-z_%-]{16,})(?=[&;#]|$)")  # in a URL: a time, a session


def page_digest(root: _Element) -> int:
    """Return a number that is equal for pages with the same text and links; 0 for a page with little text.

    It has 63 bits, and is the same in each process. Time is linear in the page.
    """
    texts = _texts(root)
    unseen = {element.text for element in root.iter(*_UNSEEN)}
    if unseen:
        texts = [text for text in texts if text not in unseen]
    data = "\0".join(texts).encode("utf-8", "replace")
    if len(data.translate(None, _BLANKS)) - len(texts) < _FEWEST:
        return 0
    if b" ago" in data:
        data = _AN_AGE.sub(b"", data)
    said = _texts_said(data)
    said.append(b"")  # separates texts from links
    said += map(_link_said, _hrefs(root))
    return bytes_digest(b"\0".join(said))


def _texts_said(data: bytes) -> list[bytes]:
    """Return texts, joined by zero bytes, without blanks and changing content, such as a time of day."""
    said = data.translate(_DIGITS, _BLANKS).split(b"\0")
    for at, raw in enumerate(data.split(b"\0")):
        if _ZERO in said[at]:
            said[at] = _lasting(raw, said[at])
    return list(filter(None, said))


def _link_said(href: str) -> bytes:
    """Return the URL of a link without the values in its query."""
    if "=" in href:
        href = _VALUE.sub("", href)
    return href.encode("utf-8", "replace")


def text_digest(root: _Element) -> str:
    """Return a digest that is equal for pages with the same main text, ``""`` for a page without one.

    Neither the surroundings of that text count (:mod:`~scrapy_focus.web.main_text`), nor content that changes with each
    request. The digest starts with its version: digests of different versions cannot be compared.
    """
    said = []
    for block in main_blocks(root):
        raw = _AN_AGE.sub(b"", block.encode("utf-8", "replace"))
        bare = raw.translate(_DIGITS, _BLANKS)
        said.append(_lasting(raw, bare) if _ZERO in bare else bare)
    text = b"\0".join(filter(None, said))
    return f"{_WAY}:{bytes_digest(text):016x}" if text else ""


def _lasting(text: bytes, bare: bytes) -> bytes:
    """Return a text with digits, without content that changes with each request, and without blanks.

    ``bare`` is the text without blanks, with all digits 0.
    """
    if len(text) <= _SHORT and _COUNTER.match(text):
        return b""
    text = _VOLATILE.sub(b"", text)
    if bare.count(b"0") < _TOKEN_DIGITS:
        return text.translate(None, _BLANKS)
    return b"".join([word for word in text.split() if len(word) < _TOKEN_BYTES or not _TOKEN.match(word)])


def bytes_digest(data: bytes) -> int:
    """Return a number for bytes, the same in each process: 63 bits, and not 0."""
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big") >> 1 or 1
