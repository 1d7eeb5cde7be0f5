"""Learns for each host which parameters of URLs do not change the page, from pages that are the same.

Session ids, tracking parameters and sort orders give one page many URLs. Two pages whose URLs differ in one parameter
are a pair. If several pairs in a row are the same, links that differ from a known page in that parameter only can be
skipped. Bar-Yossef, Keidar and Schonfeld ("Do not crawl in the DUST", 2007) infer such rules from the URLs in a log,
and verify them with a few fetches; here the pages of the crawl are the evidence, so none is fetched for it.

Evidence that would teach a wrong rule does not count: pages with little to read; a page that several pairs share, as
error pages do; the same base (the URL without the parameter) more than once. One pair that differs ends a belief, and
the next one needs twice as many pairs; after eight such pairs a parameter matters for good. If pages change with each
fetch (a counter, adverts in the text), pairs differ and nothing is believed.
"""

from __future__ import annotations

import re
from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

from lxml import etree

from scrapy_focus.web.queries import Query, query_of

if TYPE_CHECKING:
    from lxml.etree import _Element

_PAIRS = 5  # equal pairs until a parameter is believed not to matter
_PATIENCE = 8  # different pairs after which it matters for good
_VALUES = 8  # values seen until all others are believed to be equal
_WORDS = 20  # different ones; a page with fewer says too little
_BYTES = 512  # likewise for a file
_HOSTS = 500
_NAMES = 64  # of a host
_SAMPLES = 1 << 14
_LONG = 16  # characters of a word
_BESIDE = 16  # elements beside the main content, at most: texts within several of them are read as often
_STORED = 200  # hosts whose beliefs are stored
_CHECKED = (5, 10, 20)  # links that are followed to check a belief ...
_BETWEEN = 50  # ... and pages of a host, between two later ones
_SILENT = 200  # pages with a parameter and no pair, after which ...
_ONE_IN = 8  # ... this share of the bases is still examined
_NO_VALUE = 0  # of a parameter that is not in a URL

#: Parameters that identify the visitor or the referring site: believed not to matter until a pair shows otherwise.
WELL_KNOWN = frozenset(
    """
    fbclid gclid dclid msclkid yclid twclid igshid mc_cid mc_eid _ga _gl _hsenc _hsmi
    utm_source utm_medium utm_campaign utm_term utm_content utm_id
    phpsessid jsessionid aspsessionid cfid cftoken ;jsessionid ;phpsessid
    """.split()
)

_texts: Any = etree.XPath("descendant::text()", smart_strings=False)
_hrefs: Any = etree.XPath("descendant::a/@href", smart_strings=False)

# What changes with each fetch: times of day; long tokens of letters and digits.
_TIME = re.compile(r"\d\d?:\d\d(:\d\d)?(\.\d+)?\Z")
_TOKEN = re.compile(r"[0-9A-Za-z_=-]{16,}\Z")


class Ignored(NamedTuple):
    """A parameter that is or was believed not to matter, for reports."""

    host: str
    name: str
    pairs: int  # equal ones
    links: int  # skipped for it
    is_believed: bool  # now
    is_learned: bool  # rather than known in advance


class Stripped(NamedTuple):
    """A URL without the parameters that do not matter."""

    url: str
    host: str
    names: tuple[str, ...]  # of the removed parameters
    key: int  # 63 bits for the keys of a crawl, the same in each process


class Change(NamedTuple):
    """The effect of a pair on a belief."""

    host: str
    name: str
    is_believed: bool
    pairs: int


def page_print(root: _Element) -> int:
    """Return a number that is equal for pages with the same content; 0 for a page that says little.

    It covers the words in any order, except those in ``<footer>`` and ``<aside>``, and the texts and paths of all
    links, without their parameters. Times of day, and long tokens of letters and digits, are ignored. It is valid in
    this process only. Time is linear in the page.
    """
    beside = list(root.iter("aside", "footer"))
    if len(beside) > _BESIDE:
        return 0
    words = set(" ".join(_shown_texts(root, beside)).split())
    # Most words are short and without a colon: only the others need the slow check.
    said = {word for word in words if (len(word) < _LONG and ":" not in word) or not _is_volatile(word)}
    if len(said) < _WORDS:
        return 0
    said.update(f"> {href.partition('?')[0].partition(';')[0]}" for href in _hrefs(root))
    return hash(frozenset(said)) or 1


def _shown_texts(root: _Element, beside: list[_Element]) -> list[str]:
    """Return the texts of a page; of elements beside its content only the texts of links."""
    texts: list[str] = _texts(root)
    unseen = [element.text or "" for element in root.iter("script", "style", "textarea")]
    if not beside and not unseen:
        return texts
    shown = Counter(texts)
    shown.subtract(unseen)
    for element in beside:
        shown.subtract(_texts(element))
        shown.update(link.text or "" for link in element.iter("a"))
    return [text for text, n in shown.items() if n > 0]


def file_print(body: bytes) -> int:
    """Return a number that is equal for files with the same bytes; 0 for a short one."""
    return 0 if len(body) < _BYTES else hash(body) or 1


def _is_volatile(word: str) -> bool:
    if len(word) >= _LONG:
        return bool(_TOKEN.match(word)) and any(map(str.isdigit, word)) and any(map(str.isalpha, word))
    return ":" in word and bool(_TIME.match(word))


@dataclass(slots=True)
class _Parameter:
    """What was learned about a parameter of a host.

    ``values`` are those whose pages were equal to others; once they are many, any value is believed to be.
    """

    is_believed: bool = False
    pairs: int = 0  # since the last pair that differed
    reversals: int = 0  # pairs that differed
    links: int = 0  # that were skipped
    checks: int = 0  # links that were followed to check the belief
    checked_at: int = 0  # pages of the host at the last check
    silent: int = 0  # pages with it since the last pair
    is_any: bool = False
    is_learned: bool = True
    values: set[int] = field(default_factory=set)
    pages: set[int] = field(default_factory=set)  # of the pairs

    @property
    def matters(self) -> bool:
        """Whether it matters for good: nothing more is learned about it."""
        return self.reversals >= _PATIENCE


@dataclass(slots=True)
class _Host:
    """What was learned about a host."""

    parameters: dict[str, _Parameter] = field(default_factory=dict)
    epoch: int = 0  # how many beliefs have ended
    pages: int = 0  # that were fetched


class NearCopies:
    """Learns which parameters do not change the page, host by host.

    It keeps the state of 500 hosts with 64 parameters each, and prints of the last 16,384 pages twice: some 20 MB at
    most. A host teaches nothing about another one.

    Examples
    --------
    >>> near = NearCopies()
    >>> for page in range(1, 6):
    ...     for sid in ("x1", "x2"):
    ...         changes = near.learn(f"http://a.test/{page}?sid={sid}", page)
    >>> changes
    [Change(host='a.test', name='sid', is_believed=True, pairs=5)]
    >>> near.stripped("http://a.test/new?id=7&sid=x2").url
    'http://a.test/new?id=7'
    """

    def __init__(self) -> None:
        self._hosts: OrderedDict[str, _Host] = OrderedDict()
        self._pages: OrderedDict[int, int] = OrderedDict()  # print of each page, by its URL without ignored parameters
        self._samples: OrderedDict[int, tuple[int, int]] = OrderedDict()  # by parameter and base: print, value
        self._bases: OrderedDict[int, None] = OrderedDict()  # URLs that differ from links in one parameter

    def offer(self, url: str) -> None:
        """Note a link: the page without one of its parameters may make a pair with it."""
        query = query_of(url)
        ignored = self._ignored(query)
        for name in query.names:
            _put(self._bases, _hash(query.without(*ignored, name)), None)

    def wants(self, url: str) -> bool:
        """Whether the print of the page at a URL may teach something."""
        query = query_of(url)
        if not query.pieces:
            return _hash(query.head) in self._bases
        known, ignored = self._known(query.host), self._ignored(query)
        return any(_may_teach(known.get(name), query.without(*ignored, name)) for name in query.names)

    def visit(self, url: str) -> None:
        """Count a fetched page of a host, whatever its content."""
        host = self._hosts.get(query_of(url).host)
        if host is not None:
            host.pages += 1

    def learn(self, url: str, print_: int) -> list[Change]:
        """Learn from the print of a fetched page; return the beliefs that began or ended. 0 is ignored."""
        query = query_of(url)
        if not print_ or not query.host:
            return []
        known = self._host(query.host).parameters
        ignored = self._ignored(query)
        whole = query.without(*ignored)
        changes = []
        for name in query.names:
            if _may_learn(known, name):
                changes.append(self._compare(query, name, ignored, print_))
        absent = [name for name in known if name not in query.names and not known[name].matters]
        for name in absent:
            changes.append(self._pair(query.host, name, whole, print_, _NO_VALUE))
        _put(self._pages, _hash(whole), print_)
        return list(filter(None, changes))

    def stripped(self, url: str) -> Stripped | None:
        """Return a URL without the parameters that do not matter; ``None`` if it has none of these."""
        query = query_of(url)
        names = self._ignored(query) if query.pieces else ()
        if not names:
            return None
        bare = query.without(*names)
        epoch = self._host(query.host).epoch
        return Stripped(bare, query.host, names, _stable(f"near {epoch} {bare}"))

    def was_fetched(self, stripped: Stripped) -> bool:
        """Whether a page with content is remembered that differs in ignored parameters only."""
        if _hash(stripped.url) in self._pages:
            return True
        return any(_hash((name, stripped.url)) in self._samples for name in stripped.names)

    def drop(self, stripped: Stripped) -> bool:
        """Note that a link is skipped; ``False``: follow this one, to check the belief.

        The 5th, the 10th and the 20th link for a parameter are followed, and then one for each 50 pages of the host. A
        share of the links would be too much: if each page makes new URLs, each check brings a page full of links.
        """
        host = self._host(stripped.host)
        known = [host.parameters[name] for name in stripped.names]
        is_due = False
        for each in known:
            each.links += 1
            is_due |= each.links + each.checks in _CHECKED or host.pages - each.checked_at >= _BETWEEN
        if is_due:
            for each in known:
                each.links -= 1
                each.checks += 1
                each.checked_at = host.pages
        return not is_due

    def ignored(self) -> list[Ignored]:
        """Return all parameters for which links were skipped, or that were learned not to matter."""
        return [
            Ignored(host, name, each.pairs, each.links, each.is_believed, each.is_learned)
            for host, of_host in self._hosts.items()
            for name, each in of_host.parameters.items()
            if each.links or (each.is_believed and each.is_learned)
        ]

    def state(self) -> dict[str, Any]:
        """Return the beliefs as plain values."""
        hosts: dict[str, Any] = {}
        for host, of_host in list(self._hosts.items())[-_STORED:]:
            rows = [
                [name, each.is_believed, each.pairs, each.reversals, each.links, each.is_any, each.is_learned,
                 sorted(each.values)]
                for name, each in of_host.parameters.items() if each.links or each.is_believed or each.reversals
            ]  # fmt: skip
            if rows:
                hosts[host] = [of_host.epoch, rows]
        return {"version": 1, "hosts": hosts}

    def restore(self, state: Any) -> None:
        """Restore stored beliefs.

        Raises
        ------
        ValueError
            If this is not what :meth:`state` returned.
        """
        try:
            if state["version"] != 1:
                raise ValueError(f"version {state['version']!r}")
            for host, (epoch, rows) in list(state["hosts"].items())[:_STORED]:
                of_host = self._host(host)
                of_host.epoch = int(epoch)
                for name, *rest, values in rows[:_NAMES]:
                    of_host.parameters[str(name)] = _restored(rest, values)
        except (KeyError, TypeError, IndexError, AttributeError, OverflowError) as error:
            raise ValueError(f"{type(error).__name__}: {error}") from error

    def _compare(self, query: Query, name: str, ignored: tuple[str, ...], print_: int) -> Change | None:
        """Compare a page with the last one that has another value of a parameter, then remember the page."""
        base, value = query.without(*ignored, name), _stable(query.value(name))
        each = self._host(query.host).parameters.setdefault(name, _new(name))  # which pages without it are compared by
        each.silent += 1
        change = self._pair(query.host, name, base, print_, value)
        if change is None and _hash((name, base)) not in self._samples:
            other = self._pages.get(_hash(base))
            if other is not None:
                change = self._note(query.host, name, other == print_, print_, (value, _NO_VALUE))
        _put(self._samples, _hash((name, base)), (print_, value))
        return change

    def _pair(self, host: str, name: str, base: str, print_: int, value: int) -> Change | None:
        sample = self._samples.get(_hash((name, base)))
        if sample is None or sample[1] == value:
            return None
        return self._note(host, name, sample[0] == print_, print_, (value, sample[1]))

    def _note(self, host: str, name: str, is_same: bool, print_: int, values: tuple[int, int]) -> Change | None:
        """Note whether a pair was equal."""
        of_host = self._host(host)
        each = of_host.parameters[name]
        before = each.is_believed
        each.silent = 0
        if not is_same:
            of_host.epoch += each.is_believed
            each.reversals += 1
            each.pairs, each.is_believed, each.is_any, each.is_learned = 0, False, False, True
            each.values, each.pages = set(), set()
        else:
            if len(each.values) < _VALUES:
                each.values.update(values)
            each.is_any = each.is_any or len(each.values) >= _VALUES
            if print_ not in each.pages:
                each.pairs += 1
            if not each.is_believed:
                each.pages.add(print_)
                each.is_believed = not each.matters and each.pairs >= _PAIRS << each.reversals
            else:
                each.pages.clear()
        return None if each.is_believed == before else Change(host, name, each.is_believed, each.pairs)

    def _ignored(self, query: Query) -> tuple[str, ...]:
        """Return the parameters of a URL that do not matter with their values."""
        known = self._known(query.host)
        return tuple(name for name in query.names if self._is_ignored(known, query, name))

    def _is_ignored(self, known: dict[str, _Parameter], query: Query, name: str) -> bool:
        each = known.get(name)
        if each is None:
            if name.lower() not in WELL_KNOWN or len(known) >= _NAMES:
                return False
            each = self._host(query.host).parameters[name] = _new(name)
        return each.is_believed and (each.is_any or _stable(query.value(name)) in each.values)

    def _known(self, host: str) -> dict[str, _Parameter]:
        of_host = self._hosts.get(host)
        return {} if of_host is None else of_host.parameters

    def _host(self, name: str) -> _Host:
        host = self._hosts.get(name)
        if host is None:
            host = self._hosts[name] = _Host()
            if len(self._hosts) > _HOSTS:
                self._hosts.popitem(last=False)
        self._hosts.move_to_end(name)
        return host


def _restored(fields: list[Any], values: list[Any]) -> _Parameter:
    """Return a parameter as it was stored; raise any error if the stored values are invalid."""
    kinds = (bool, int, int, int, bool, bool)
    if [type(value) for value in fields] != [*kinds] or any(type(value) is not int for value in values):
        raise ValueError("a parameter with other fields")
    is_believed, pairs, reversals, links, is_any, is_learned = fields
    return _Parameter(
        is_believed=is_believed, pairs=pairs, reversals=reversals, links=links, is_any=is_any, is_learned=is_learned,
        values=set(values[:_VALUES]),
    )  # fmt: skip


def _new(name: str) -> _Parameter:
    known = name.lower() in WELL_KNOWN
    return _Parameter(is_believed=known, is_any=known, is_learned=not known)


def _may_learn(known: dict[str, _Parameter], name: str) -> bool:
    each = known.get(name)
    return len(known) < _NAMES if each is None else not each.matters


def _may_teach(each: _Parameter | None, base: str) -> bool:
    """Whether a page may be one of a pair, judging by the parameter alone; ``base``: its URL without this one.

    A parameter that has the same value in all URLs never makes a pair, and reading each page for it would be wasted.
    """
    if each is None or (each.silent < _SILENT and not each.matters):
        return True
    return not each.matters and crc32(base.encode("utf-8", "surrogatepass")) % _ONE_IN == 0


def _put(store: OrderedDict[int, Any], key: int, value: Any) -> None:
    """Remember an entry, as the most recent one."""
    store[key] = value
    store.move_to_end(key)
    if len(store) > _SAMPLES:
        store.popitem(last=False)


def _hash(what: object) -> int:
    return hash(what)


def _stable(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big") >> 1
