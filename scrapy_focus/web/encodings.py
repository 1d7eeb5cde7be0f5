"""Handles bodies that contradict their ``Content-Encoding``: not encoded at all, or cut."""

from __future__ import annotations

import sys
import zlib

_CHUNK = 1 << 16  # bytes that are unpacked at once
_GZIP, _ANY, _RAW = 31, 47, -15  # formats of zlib: gzip; gzip or zlib; neither
_MARKS = {"gzip": b"\x1f\x8b", "x-gzip": b"\x1f\x8b", "zstd": b"\x28\xb5\x2f\xfd"}
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\f\r\x1b"))  # of ASCII, not used in text


def begins_encoded(body: bytes, encoding: str) -> bool:
    """Whether a body starts with the signature of an encoding; the other encodings have none."""
    return encoding in _MARKS and body.startswith(_MARKS[encoding])


def is_text(body: bytes) -> bool:
    r"""Whether bytes are text in UTF-8; compressed data is not, except a few bytes by chance.

    Examples
    --------
    >>> is_text("naïve,1\n".encode()), is_text(b"\x1f\x8b\x08\x00")
    (True, False)
    """
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return body.translate(None, _CONTROLS) == body


def is_whole(body: bytes, encoding: str) -> bool:
    """Whether a body is complete in an encoding of ``Content-Encoding``, whatever follows its end.

    Examples
    --------
    >>> packed = zlib.compress(b"a,b")
    >>> is_whole(packed, "deflate"), is_whole(packed[:-1], "deflate"), is_whole(packed, "br")
    (True, False, False)
    """
    if encoding == "br":
        return _ends_brotli(body)
    if encoding == "zstd":
        return _ends_zstd(body)
    if encoding == "deflate":
        return _rest(body, _ANY) is not None or _rest(body, _RAW) is not None
    rest: bytes | None = body
    while rest is not None and (rest is body or begins_encoded(rest, encoding)):  # gzip may have several parts
        rest = _rest(rest, _GZIP)
    return rest is not None


def _rest(body: bytes, wbits: int) -> bytes | None:
    """Return the bytes after the end of a part, ``None`` if it has no end."""
    unpacker = zlib.decompressobj(wbits=wbits)
    try:
        while body and not unpacker.eof:
            unpacker.decompress(body, _CHUNK)
            body = unpacker.unconsumed_tail
        if not unpacker.eof:
            unpacker.flush()  # it may still hold the end
    except zlib.error:
        return None
    return unpacker.unused_data if unpacker.eof else None


def _ends_brotli(body: bytes) -> bool:
    import brotli  # installed with Scrapy

    unpacker = brotli.Decompressor()
    try:
        unpacker.process(body)
    except brotli.error:
        return False
    return bool(unpacker.is_finished())


def _ends_zstd(body: bytes) -> bool:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd  # installed with Scrapy

    try:
        zstd.decompress(body)
    except zstd.ZstdError:
        return False
    return True
