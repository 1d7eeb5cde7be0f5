"""The bodies of the files of profile sites: the right size and the right first bytes, and cheap to make (internal)."""

from __future__ import annotations

from random import Random
from typing import Final

_COMPOUND: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_FIRST_BYTES: Final = {
    "pdf": b"%PDF-1.4\n",
    "zip": b"PK\x03\x04",
    "xlsx": b"PK\x03\x04",
    "docx": b"PK\x03\x04",
    "pptx": b"PK\x03\x04",
    "ods": b"PK\x03\x04",
    "xls": _COMPOUND,
    "doc": _COMPOUND,
    "xml": b'<?xml version="1.0"?>\n',
}
_BLOCK: Final = 4096  # bytes of noise, which are repeated
_TEXTS: Final = ("csv", "json", "xml")


def content(extension: str, size: int, number: int) -> bytes:
    """Return `size` bytes that begin like a file of that kind; no two numbers give the same."""
    head = _FIRST_BYTES.get(extension, b"")
    rng = Random(number)
    if extension in _TEXTS:
        block = "".join(f"{number},{rng.randrange(1 << 40)},{rng.randrange(1 << 20)}\n" for _ in range(64)).encode()
    else:
        block = number.to_bytes(8, "big") + rng.randbytes(_BLOCK)
    return (head + block * ((size - len(head)) // len(block) + 1))[:size]


def noise(size: int, number: int) -> bytes:
    """Return `size` bytes of noise."""
    return Random(number).randbytes(size)
