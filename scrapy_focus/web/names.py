"""Reads the file name that a server sends."""

from __future__ import annotations

import re
import warnings
from email.header import decode_header, make_header
from email.message import Message
from email.utils import collapse_rfc2231_value
from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Mapping

_ENCODED_WORD = re.compile(r"=\?[^?\s]+\?[bq]\?[^?]*\?=", re.IGNORECASE)  # RFC 2047


def announced_name(headers: Mapping[str, str]) -> str:
    """Return the file name in a ``Content-Disposition``, ``""`` for none or an unreadable one.

    The standard library parses the header. As in browsers and RFC 6266, ``filename*`` takes precedence over
    ``filename``. A plain name may be UTF-8 or Latin-1, encoded words, or percent-encoded UTF-8. Only the last part of
    a path counts.

    Examples
    --------
    >>> announced_name({"Content-Disposition": 'attachment; filename="prices.csv"'})
    'prices.csv'
    >>> announced_name({"Content-Disposition": "attachment; filename=a.csv; filename*=UTF-8''na%C3%AFve.csv"})
    'naïve.csv'
    """
    given = next((value for name, value in headers.items() if name.lower() == "content-disposition"), "")
    if not given:
        return ""
    with warnings.catch_warnings():  # some codecs of Python warn
        warnings.simplefilter("ignore")
        for value in _names_in(_redecoded(given)):
            try:
                name = _plain(value) if isinstance(value, str) else collapse_rfc2231_value(value, "replace", "utf-8")
            except (ValueError, LookupError, TypeError):  # an unknown charset, or one like idna
                continue
            if name := name.replace("\\", "/").rpartition("/")[2].strip():
                return name
    return ""


def header_text(raw: bytes) -> str:
    """Return the text of a header as browsers read it: UTF-8, or else Windows-1252, also if Latin-1 is meant.

    Examples
    --------
    >>> header_text("naïve".encode()), header_text("naïve".encode("latin-1"))
    ('naïve', 'naïve')
    """
    for encoding in ("utf-8", "cp1252"):
        try:
            return raw.decode(encoding)
        except UnicodeDecodeError:
            pass
    return raw.decode("latin-1")


def _names_in(header: str) -> list[str | tuple[str | None, str | None, str]]:
    """Return the names in a ``Content-Disposition``, ``filename*`` first, whose values are tuples."""
    message = Message()
    try:
        message["Content-Disposition"] = header if "=" not in header.partition(";")[0] else f"attachment; {header}"
        pairs = message.get_params([], "content-disposition")
    except (ValueError, LookupError, TypeError):  # line breaks; broken parts
        return []
    found = [value for name, value in pairs if name.lower() == "filename"]
    return sorted(found, key=lambda value: isinstance(value, str))


def _plain(name: str) -> str:
    """Return the decoded value of a ``filename``."""
    if len(name) > 1 and name[0] == name[-1] == "'":
        name = name[1:-1]
    if _ENCODED_WORD.search(name):
        return str(make_header(decode_header(name)))
    try:
        return unquote(name, errors="strict")
    except UnicodeDecodeError:
        return name


def _redecoded(text: str) -> str:
    """Return a header that may have been decoded as Latin-1 with its proper encoding."""
    try:
        return header_text(text.encode("latin-1"))
    except UnicodeEncodeError:
        return text
