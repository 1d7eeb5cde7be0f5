"""Learns which URLs of a host redirect only by a slash, to https, or to or from ``www.``.

Two goals conflict. A redirect that is foreseen saves a request, but a page that exists at its own URL must not be lost.
So a rule takes many redirects without an exception, and some of the redirects that it foresees are requested anyway.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias
from urllib.parse import SplitResult, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Statuses of redirects that are learned.
REDIRECTS: Final = frozenset({301, 302, 307, 308})
_BUSY = frozenset({408, 429, 503})  # the server is to be asked again

_NEEDED = 10  # redirects without an exception
_CHECKED = 32  # of so many uses of a rule, one is a check
_MISSES = 10  # failed guesses that end a rule in any case
_PLACES = 1 << 16
_STEPS = 3  # another host has other rules
_ADDRESS = re.compile(r"[\d.]+|\[.*|[^.]+")  # hosts without a www.

_ADD_SLASH, _REMOVE_SLASH, _TO_HTTPS, _ADD_WWW, _REMOVE_WWW = range(5)
_PARTS = ("path", "path", "scheme", "netloc", "netloc")  # what each of these changes
_Shape: TypeAlias = tuple[int, bool]  # a change of URLs with or without a query


class Guess(NamedTuple):
    """A redirect that is foreseen."""

    url: str  # requested instead
    rules: tuple[tuple[str, _Shape], ...]  # the rules that say so, with their places


class _Rule:
    """What is known about one change of the URLs of a host, or of a section."""

    __slots__ = ("misses", "needed", "right", "row", "uses")

    def __init__(self) -> None:
        self.row = 0  # redirects since the last exception
        self.needed = _NEEDED
        self.uses = 0
        self.right = 0  # guesses that were answered with a page
        self.misses = 0  # guesses that were not

    @property
    def holds(self) -> bool:
        """Whether redirects are foreseen."""
        return self.row >= self.needed

    def end(self) -> bool:
        """Forget the redirects so far; return whether the rule was used. It then needs twice as many."""
        held = self.holds
        self.row = 0
        if held:
            self.needed *= 2
            self.right = self.misses = 0
        return held


class RedirectRules:
    """The rules of the hosts of a crawl.

    A rule is one change of the URLs of one host: a slash added to or removed from the end of the path, http to https,
    ``www.`` added or removed. Slashes have separate rules for URLs with a query. A slash is added only to paths
    without an extension, and slashes have rules for the first folder of a path as well, which come first: so a section
    that does not redirect ends no rule of another. A rule holds after ten redirects in a row. An answer without a
    redirect ends it; after that it needs twice as many.

    *Memory*: the rules of 65,536 hosts and sections.

    Examples
    --------
    >>> rules = RedirectRules()
    >>> for k in range(10):
    ...     _ = rules.observe(f"http://a.example/{k}", 301, f"http://a.example/{k}/")
    >>> rules.guess("http://a.example/page").url
    'http://a.example/page/'
    >>> rules.guess("http://a.example/page.pdf") is None
    True
    >>> rules.observe("http://a.example/own", 200)  # the rule ends
    True
    >>> rules.guess("http://a.example/page") is None
    True
    """

    def __init__(self) -> None:
        self._places: OrderedDict[str, dict[_Shape, _Rule]] = OrderedDict()
        self._n_held = 0  # rules that ever held: without any, there is nothing to look up

    def guess(self, url: str) -> Guess | None:
        """Return the redirect of a URL, if it is foreseen and not requested as a check."""
        if not self._n_held:
            return None
        parts = urlsplit(url)
        used: list[tuple[str, _Shape]] = []
        changed: set[str] = set()  # parts, each of which changes once
        for _ in range(_STEPS):
            found = [(place, shape) for shape in _shapes(parts) if (place := self._where(parts, shape))]
            for place, shape in found:
                if _PARTS[shape[0]] in changed:
                    continue
                used.append((place, shape))
                changed.add(_PARTS[shape[0]])
                parts = _changed(parts, shape[0])
        if not used:
            return None
        is_check = False
        for place, shape in used:
            rule = self._places[place][shape]
            rule.uses += 1
            is_check = is_check or rule.uses % _CHECKED == 0
        return None if is_check else Guess(parts.geturl(), tuple(used))

    def observe(self, url: str, status: int, location: str = "") -> bool:
        """Learn from the answer to a URL; return whether that ended a rule that was used.

        Parameters
        ----------
        url
            The URL as requested, without a fragment.
        status
            The HTTP status.
        location
            The absolute URL that it redirects to, ``""`` for none.
        """
        if not location and not self._places:
            return False
        parts = urlsplit(url)
        if location:
            for shape in _difference(parts, urlsplit(location)):
                for place in _places(parts, shape):
                    rule = self._made(place, shape)
                    rule.row += 1
                    self._n_held += rule.row == rule.needed
            return False
        if not 200 <= status < 300 or parts.netloc not in self._places:
            return False
        found = [self._places.get(place, {}).get(shape) for shape in _shapes(parts) for place in _places(parts, shape)]
        ended = [rule.end() for rule in found if rule is not None]
        return any(ended)

    def confirm(self, guess: Guess) -> None:
        """Note that a guess was answered with a page."""
        for rule in self._of(guess):
            rule.right += 1

    def miss(self, guess: Guess) -> bool:
        """Note that a guess failed, as for a dead link; return whether rules end, as too many guesses fail."""
        ended = False
        for rule in self._of(guess):
            rule.misses += 1
            if rule.misses > _MISSES + rule.right / 2:
                ended = rule.end() or ended
        return ended

    def holds(self, guess: Guess) -> bool:
        """Whether all rules of a guess hold."""
        rules = [*self._of(guess)]
        return len(rules) == len(guess.rules) and all(rule.holds for rule in rules)

    def _of(self, guess: Guess) -> Iterator[_Rule]:
        for place, shape in guess.rules:
            if (rule := self._places.get(place, {}).get(shape)) is not None:
                yield rule

    def _where(self, parts: SplitResult, shape: _Shape) -> str:
        """Return the smallest place of a URL where a rule holds; ``""`` if none does."""
        for place in _places(parts, shape):
            rule = self._places.get(place, {}).get(shape)
            if rule is not None and rule.holds:
                return place
        return ""

    def _made(self, place: str, shape: _Shape) -> _Rule:
        rules = self._places.setdefault(place, {})
        self._places.move_to_end(place)
        if len(self._places) > _PLACES:
            self._places.popitem(last=False)
        return rules.setdefault(shape, _Rule())


def is_failure(status: int) -> bool:
    """Whether an answer to a guess shows that the original URL has to be requested."""
    return status >= 400 and status not in _BUSY


def _places(parts: SplitResult, shape: _Shape) -> tuple[str, ...]:
    """Return where a rule for a URL may hold, the smallest place first: its section, for slashes, and its host."""
    section, slash, rest = parts.path.removeprefix("/").partition("/")
    if _PARTS[shape[0]] == "path" and slash and rest:
        return f"{parts.netloc}/{section}", parts.netloc
    return (parts.netloc,)


def _shapes(parts: SplitResult) -> Iterator[_Shape]:
    """Yield the changes that a URL may have."""
    path, host = parts.path, parts.netloc
    if path.endswith("/"):
        if len(path) > 1:
            yield _REMOVE_SLASH, bool(parts.query)
    elif path and "." not in path.rpartition("/")[2]:
        yield _ADD_SLASH, bool(parts.query)
    if parts.scheme == "http" and ":" not in host:
        yield _TO_HTTPS, False
    if host.startswith("www."):
        yield _REMOVE_WWW, False
    elif not _ADDRESS.fullmatch(host.partition(":")[0]):
        yield _ADD_WWW, False


def _changed(parts: SplitResult, change: int) -> SplitResult:
    """Return a URL after a change."""
    if change == _ADD_SLASH:
        return parts._replace(path=f"{parts.path}/")
    if change == _REMOVE_SLASH:
        return parts._replace(path=parts.path[:-1])
    if change == _TO_HTTPS:
        return parts._replace(scheme="https")
    if change == _ADD_WWW:
        return parts._replace(netloc=f"www.{parts.netloc}")
    return parts._replace(netloc=parts.netloc[4:])


def _difference(parts: SplitResult, target: SplitResult) -> list[_Shape]:
    """Return the changes that lead from one URL to another; none if it differs in anything else."""
    found, changed = [], parts
    for shape in _shapes(parts):
        change, _ = shape
        after = _changed(changed, change)
        if getattr(after, _PARTS[change]) == getattr(target, _PARTS[change]):
            found.append(shape)
            changed = after
    return found if changed == target else []
