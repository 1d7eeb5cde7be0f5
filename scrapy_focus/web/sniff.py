"""Detects the type of a file by its first bytes, for servers that do not send it.

Text has no signature: CSV, JSON and letters are not distinguished here.
"""

from __future__ import annotations

import re

_ZIP = b"PK\x03\x04"
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_READ = 16 * 1024  # bytes read at the beginning
_SECTOR = 4096  # bytes of an old Office file's directory
_SURE = 0.3  # for a signature of three bytes; many texts contain one of two
_WORDS = "application/vnd.openxmlformats-officedocument."
_OFFICE = {
    b"word/": _WORDS + "wordprocessingml.document",
    b"xl/": _WORDS + "spreadsheetml.sheet",
    b"ppt/": _WORDS + "presentationml.presentation",
}
_OLD_OFFICE = {
    "WordDocument": "application/msword",
    "Workbook": "application/vnd.ms-excel",
    "Book": "application/vnd.ms-excel",
    "PowerPoint Document": "application/vnd.ms-powerpoint",
}
_ENTRY = re.compile(rb"PK\x03\x04.{22}(..)..", re.DOTALL)
_MIME = re.compile(rb"[a-z0-9.+-]{3,60}/[a-z0-9.+-]{3,80}")


def sniff(body: bytes) -> str:
    """Return the MIME type for the first bytes of a file, ``""`` if it is unknown.

    Office files are distinguished from other ZIP archives, and old ones by their directory, which may be anywhere.

    Examples
    --------
    >>> sniff(b"%PDF-1.7")
    'application/pdf'
    >>> sniff(b"name,value")
    ''
    """
    head = body[:_READ]
    if head.startswith(_ZIP):
        return _archive(head)
    if head.startswith(_OLE):
        return _old_office(body)
    return _by_signature(head)


def _archive(head: bytes) -> str:
    """Return the kind of a ZIP archive, by the names of its first members."""
    for found in _ENTRY.finditer(head):
        start = found.end()
        name = head[start : start + int.from_bytes(found[1], "little")]
        if name == b"mimetype":  # as in OpenDocument and EPUB: first, and not compressed
            kind = _MIME.match(head, start + len(name))
            return kind[0].decode() if kind else "application/zip"
        for folder, mime in _OFFICE.items():
            if name.startswith(folder):
                return mime
    return "application/zip"


def _old_office(body: bytes) -> str:
    """Return the kind of an OLE file, by the names in its directory."""
    size = 1 << min(int.from_bytes(body[30:32], "little"), 12)
    start = (int.from_bytes(body[48:52], "little") + 1) * size
    contents = body[start : start + _SECTOR]
    for name, mime in _OLD_OFFICE.items():
        if f"{name}\0".encode("utf-16-le") in contents:
            return mime
    return "application/x-ole-storage"


def _by_signature(head: bytes) -> str:
    import puremagic

    try:
        found = puremagic.magic_string(head)
    except Exception:  # it does not know them; no other error is a reason to lose a page, either
        return ""
    return next((each.mime_type.lower() for each in found if each.mime_type and each.confidence >= _SURE), "")
