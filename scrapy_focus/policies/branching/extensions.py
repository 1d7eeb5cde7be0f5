"""What the extension of a URL predicts, before anything was learned and after."""

from __future__ import annotations

import math
import mimetypes
from typing import TYPE_CHECKING

import numpy as np

from scrapy_focus.policies.branching.features import extension_of, path_of
from scrapy_focus.web.mime import ALIASES, FILE_TYPES, matches

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

PAGES = frozenset(("", "html", "htm", "xhtml", "php", "asp", "aspx", "jsp", "cgi", "do"))

_NO_WORDS = {"bin", "gz", "txt"}  # names of types that are not written on links
_LONGEST = 8  # letters of an extension
_MOST = 1024  # extensions whose results are counted
_WANTED, _PAGE, _UNKNOWN = (3.0, 0.15), (0.15, 3.0), (0.5, 1.5)  # targets and others, as if seen


class LinkKinds:
    """How often links with each extension were targets. It starts from the wanted types, and this prior fades if it
    is wrong.

    Parameters
    ----------
    targets
        Wanted MIME types, or patterns like ``image/*``; without any, extensions predict nothing at first.

    Notes
    -----
    *Memory*: two numbers for each of 1,024 extensions; any other keeps its prior.

    Examples
    --------
    >>> kinds = LinkKinds(["text/csv"])
    >>> kinds.odds(["http://example.org/a.csv", "http://example.org/a.html"]).round(1).tolist()
    [3.0, -3.0]
    >>> for _ in range(5):
    ...     kinds.learn("http://example.org/a.csv", False)
    >>> kinds.odds(["http://example.org/b.csv"]).round(1).tolist()
    [-0.5]
    """

    def __init__(self, targets: Collection[str] = ()) -> None:
        self.targets = frozenset(targets)
        wanted = {name for name, types in FILE_TYPES.items() if any(matches(mime, self.targets) for mime in types)}
        self.names = sorted(wanted - _NO_WORDS)  # of the wanted types, as words
        self.seen: dict[str, tuple[float, float]] = {}  # by extension: targets and others, the prior included

    def odds(self, urls: Sequence[str]) -> NDArray[np.float64]:
        """Return the log-odds that links with these URLs are targets, shape (n,)."""
        return self.odds_of_paths([path_of(url) for url in urls])

    def odds_of_paths(self, paths: Sequence[str]) -> NDArray[np.float64]:
        """Return the same for paths cut by :func:`~scrapy_focus.policies.branching.features.path_of`."""
        known: dict[str, float] = {}
        found = []
        for path in paths:
            extension = extension_of(path)
            odds = known.get(extension)
            if odds is None:
                hits, others = self._record(_kind(extension))
                odds = known[extension] = math.log(hits / others)
            found.append(odds)
        return np.array(found)

    def learn(self, url: str, target: bool) -> None:
        """Record whether a link with this URL was a target."""
        kind = _kind(extension_of(path_of(url)))
        hits, others = self._record(kind)
        if kind in self.seen or len(self.seen) < _MOST:
            self.seen[kind] = (hits + target, others + (not target))

    def _record(self, kind: str) -> tuple[float, float]:
        return self.seen.get(kind) or self._expected(kind)

    def _expected(self, kind: str) -> tuple[float, float]:
        if not self.targets:
            return _UNKNOWN
        if kind in PAGES:
            return _PAGE
        types = FILE_TYPES.get(ALIASES.get(kind, kind), (mimetypes.guess_type(f"file.{kind}")[0] or "",))
        return _WANTED if any(matches(mime, self.targets) for mime in types) else _UNKNOWN


def _kind(extension: str) -> str:
    return extension.lower() if len(extension) <= _LONGEST else ""
