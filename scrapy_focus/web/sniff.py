"""What a file is by its first bytes, where its server does not say.

Text has no such bytes: whether it is CSV, JSON or a letter is not told here.
"""

from __future__ import annotations

import re

_ZIP = b"PK\x03\x04"
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_READ = 16 * 1024  # bytes of the beginning that are looked at
_SECTOR = 4096  # bytes of the list of contents of an old Office file
_SURE = 0.3  # that is three bytes of a signature; two stand in many a text
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
    """Return the MIME type that the first bytes of a file speak for, ``""`` where they say nothing.

    Office files are told from other ZIP archives, and old ones by their list of contents, which may stand anywhere.

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
    """Say which kind of ZIP archive it is, by the names of its first members."""
    for found in _ENTRY.finditer(head):
        start = found.end()
        name = head[start : start + int.from_bytes(found[1], "little")]
        if name == b"mimetype":  # as OpenDocument and EPUB have it: first, and not compressed
            kind = _MIME.match(head, start + len(name))
            return kind[0].decode() if kind else "application/zip"
        for folder, mime in _OFFICE.items():
            if name.startswith(folder):
                return mime
    return "application/zip"


def _old_office(body: bytes) -> str:
    """Say which kind of OLE file it is, by the names in its list of contents."""
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
    except Exception:  # it knows nothing of them; whatever else it raises is no reason to lose a page
        return ""
    return next((each.mime_type.lower() for each in found if each.mime_type and each.confidence >= _SURE), "")
