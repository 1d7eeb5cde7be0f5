"""The assets of the synthetic scripted site: a bundle of scripts, a style sheet, images, a font."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final

from scrapy_focus.lab.sites.portal.portal import Page

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy_focus.lab.sites.scripted.plan import Plan

#: Bytes of the bundle, or a few more.
BUNDLE: Final = 200_000
IMAGES: Final = 3
_STYLE, _FONT = 20_000, 30_000  # bytes
_SIDE = 100  # pixels of an image, either way
_CACHED: Final = {"Cache-Control": "max-age=86400"}
_CODE: Final = (Path(__file__).parent / "app.js").read_text(encoding="utf-8")
_RULES: Final = (
    "@font-face{font-family:Synthetic;src:url(/assets/font.woff2)}\n"
    "body{font-family:Synthetic,sans-serif;margin:2em auto;max-width:60em}\nul.more li{padding:1.5em}\n"
)


def assets_of(plan: Plan, site: Mapping[str, object]) -> dict[str, Page]:
    """Return the assets by their paths. ``site`` is the configuration for the scripts, as values of JSON."""
    rng = Random(plan.draw("assets"))
    pages = {
        "/assets/bundle.js": _asset("text/javascript", _bundle(rng, site)),
        "/assets/site.css": _asset("text/css", _padded(rng, _RULES, ".c{k}{{margin:{a}px;padding:{b}px}}\n", _STYLE)),
        "/assets/font.woff2": _asset("font/woff2", b"wOF2" + rng.randbytes(_FONT - 4)),
        "/favicon.ico": _asset("image/x-icon", b"\x00\x00\x01\x00" + bytes(40)),
    }
    return pages | {f"/assets/{k}.png": _asset("image/png", _image(rng)) for k in range(IMAGES)}


def _asset(mime: str, body: bytes) -> Page:
    tag = f"{zlib.crc32(body):08x}"
    return Page(status=200, mime=mime, size=len(body), etag=tag, headers=_CACHED, make=lambda: body)


def _bundle(rng: Random, site: Mapping[str, object]) -> bytes:
    code = _CODE.replace("{/* SITE */}", json.dumps(site))
    # Functions rather than a comment: a browser has to read them, as it has to with frameworks.
    return _padded(rng, code, "function f{k}(a, b) {{ return a * {a} + b * {b}; }}\n", BUNDLE)


def _padded(rng: Random, text: str, filler: str, size: int) -> bytes:
    """Return a text, with lines of filler after it until it has a size."""
    lines, length, k = [text], len(text), 0
    while length < size:
        lines.append(filler.format(k=k, a=rng.randrange(1000), b=rng.randrange(1000)))
        length, k = length + len(lines[-1]), k + 1
    return "".join(lines).encode()


def _image(rng: Random) -> bytes:
    """Return a PNG of noise, 30 KB."""
    rows = b"".join(b"\x00" + rng.randbytes(3 * _SIDE) for _ in range(_SIDE))
    head = _SIDE.to_bytes(4) * 2 + bytes((8, 2, 0, 0, 0))
    # One block that is stored as it is: what compresses is not the same on every machine.
    stored = b"\x78\x01\x01" + len(rows).to_bytes(2, "little") + (len(rows) ^ 0xFFFF).to_bytes(2, "little") + rows
    parts = ((b"IHDR", head), (b"IDAT", stored + zlib.adler32(rows).to_bytes(4)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        len(data).to_bytes(4) + name + data + zlib.crc32(name + data).to_bytes(4) for name, data in parts
    )
