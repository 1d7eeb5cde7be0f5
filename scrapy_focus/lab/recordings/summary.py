"""Describes the contents of a recording in words."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from scrapy_focus.core.printable import EXPLANATION, printable
from scrapy_focus.lab.recordings.checksums import SUMS
from scrapy_focus.lab.recordings.format import RecordedSite
from scrapy_focus.lab.recordings.html import REDIRECTING

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

_TYPES = 10  # MIME types that are listed


def describe(path: Path) -> str:
    """Describe a recording: its source, completeness, kinds of URLs and types of files, on a line each.

    Raises
    ------
    RecordingError
        If it cannot be read.
    """
    site = RecordedSite(path)
    rows = [
        ("made from", site.meta.get("source") or "unknown"),
        ("starts at", ", ".join(site.meta["roots"])),
        ("complete", str(site.completeness())),
        ("URLs", _kinds(site)),
        ("links", f"{len(site.targets):,}"),
    ]
    if site.has_versions:
        rows.append(("versions", _versions(site)))
    if site.has_renderings:
        rows.append(("rendered", _renderings(site)))
    rows += [
        ("deepest", f"{int(site.depth.max())} clicks" if site.meta.get("finished") else "known when it is finished"),
        ("checksums", "there, --verify looks at them" if SUMS in site.meta else "none"),
        ("file", f"{path.stat().st_size / 1e6:,.1f} MB"),
    ]
    types = _types(site)
    site.close()
    lines = [printable(f"{path}"), *(f"  {name:<10} {printable(text, EXPLANATION)}" for name, text in rows)]
    return "\n".join([*lines, *types])


def _is_well(site: RecordedSite) -> NDArray[np.bool_]:
    return (site.status >= 200) & (site.status < 300)


def _kinds(site: RecordedSite) -> str:
    """Describe how many URLs there are of each kind."""
    status, well = site.status, _is_well(site)
    pages = np.array(["html" in mime for mime in site.mimes], np.bool_)
    redirects = np.isin(status, REDIRECTING)
    forbidden = sum(error == "ignored" for error in site.errors.values())
    kinds = {
        "pages": int((well & pages).sum()),
        "files": int((well & ~pages).sum()),
        "redirects": int(redirects.sum()),
        "other statuses": int(((status > 0) & ~well & ~redirects).sum()),
        "not to be asked for": forbidden,
        "without response": len(site.errors) - forbidden,
    }
    return ", ".join(f"{count:,} {kind}" for kind, count in kinds.items() if count) or "none"


def _types(site: RecordedSite) -> list[str]:
    """Describe how many files there are of each type, and their sizes, in lines below a head."""
    types: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for page in np.flatnonzero(_is_well(site)).tolist():
        mime = site.mimes[page] or "(no type)"
        types[mime] += 1
        sizes[mime] += int(site.size[page])
    lines = []
    if types:
        lines.append("  types           URLs           MB")
    for mime, count in types.most_common(_TYPES):
        lines.append(f"  {count:>18,} {sizes[mime] / 1e6:>12,.1f}  {printable(mime)}")
    if len(types) > _TYPES:
        lines.append(f"    and {len(types) - _TYPES} more")
    return lines


def _versions(site: RecordedSite) -> str:
    first, last = (f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M:%S}" for time in (site.begin, site.end))
    later = len(site.answers.mimes) - site.n_urls - len(site.renderings) - len(site.unrendered)
    return f"{later:,} later ones, from {first} to {last} UTC"


def _renderings(site: RecordedSite) -> str:
    shown = site.renderings.values()
    failed = sum(not site.answers.status[each.answer] for each in shown)
    assets = {asset for each in shown for asset in each.assets}
    requests = sum(each.requests for each in shown)
    received = sum(each.received for each in shown) + sum(size for _, size in assets)
    said = [f"{len(shown):,} pages, by {requests + len(assets):,} requests besides, {received / 1e6:,.1f} MB in all"]
    said += [f"{failed:,} failed"] if failed else []
    said += [f"{len(site.unrendered):,} with scripts were left"] if site.unrendered else []
    return "; ".join(said)


def explain_roots(path: Path) -> str:
    """Describe the answer of each root of a recording that has nothing else.

    Raises
    ------
    RecordingError
        If it cannot be read.
    """
    site = RecordedSite(path)
    said = []
    for page in site.roots:
        location = site.headers(page).get("Location")
        answer = f"answered {site.status[page]}" + (f" and leads to {printable(location)}" if location else "")
        error = site.errors.get(page)
        if error is not None:
            ignored = "was not requested: robots.txt forbids it, or could not be read"
            answer = ignored if error == "ignored" else f"gave no response ({printable(error)})"
        said.append(f"{printable(site.urls[page])} {answer}")
    site.close()
    return "; ".join(said)
