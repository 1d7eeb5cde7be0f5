"""Skips links that differ from a known page only in parameters that do not matter."""

from __future__ import annotations

import json
from collections import OrderedDict, deque
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from scrapy.http import HtmlResponse

from scrapy_focus.core.files import write_atomically
from scrapy_focus.core.printable import counted, printable, printable_logger, reason_of
from scrapy_focus.core.types import State
from scrapy_focus.engine.feature import Feature, Shown
from scrapy_focus.engine.marks import GIVEN, VISIT
from scrapy_focus.engine.pages import can_be_read
from scrapy_focus.features.near_copies.learner import NearCopies, Stripped, file_print, page_print
from scrapy_focus.web.queries import query_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from scrapy import Request
    from scrapy.http import Response

    from scrapy_focus.core.types import Outcome, Pick
    from scrapy_focus.engine.host import Host
    from scrapy_focus.engine.inflight import Entry
    from scrapy_focus.features.near_copies.learner import Change, Ignored

logger = printable_logger(__name__)

PARAMETERS = "parameters.json"  # in the folder of a job

_HELD = 4096  # links that were refused, and may be followed later
_REMEMBERED = 1 << 16  # keys
_EVERY = 100  # outcomes between two writes
_SPENT = ("ok", "mime_stop", "too_large", "redirect_seen")  # outcomes that a copy of the page would have, too
_GONE = (404, 410)
_LARGE = 2_000_000  # bytes of a page that is not read for this
_NOTED = 200  # parameters
_NAMES = 3  # of parameters, in a line
_LONGEST_NAME = 20  # characters


class Held(NamedTuple):
    """A request that was refused as a copy."""

    request: Request
    stripped: Stripped
    was_picked: bool  # whether the frontier counts it as fetched


class NearCopyFilter(Feature):
    """Refuses links to copies, lets some through as a check, and follows wrongly refused ones later.

    Start requests, ``dont_filter``, other methods than GET and requests with a body are never refused. Refused links
    are not part of the crawl: another page may offer them again. The last 4,096 are held: if a parameter turns out to
    matter, those of its host are followed, and if a page fails, one of its copies is.

    *Memory*: besides the state of :class:`~scrapy_focus.features.near_copies.learner.NearCopies`, it holds 4,096
    refused requests, as many that are to be followed later, and three tables of 65,536 keys: some 40 MB at most with
    ordinary requests.

    Parameters
    ----------
    host
        The host of the crawl.
    path
        File for beliefs that are to survive the process. The frontier knows which pages were fetched: a page whose URL
        has ignored parameters has a second key, of the URL without them.
    """

    name: ClassVar[str] = "near"
    order: ClassVar[int] = 200  # after traps, as what those refuse is not a copy

    def __init__(self, host: Host, path: Path | None) -> None:
        self.host = host
        self.links = host.links
        self.path = path
        self.learner = NearCopies()
        self._held: OrderedDict[str, Held] = OrderedDict()  # by URL
        self._owners: OrderedDict[int, int] = OrderedDict()  # key of a stripped URL -> key of the link for it
        self._failed: OrderedDict[int, None] = OrderedDict()  # keys of requests without a page
        self._checks: OrderedDict[int, None] = OrderedDict()  # keys of links that are followed as a check
        self._given_back: deque[Held] = deque(maxlen=_HELD)
        self._until_write = 0
        self._is_new = False  # since the last write
        self._read()

    def ignored(self) -> list[Ignored]:
        """Return the parameters that do not matter, with their numbers of links."""
        return self.learner.ignored()

    def shown(self) -> Shown:
        ignored = self.ignored()
        notes = {"parameters": [each._asdict() for each in ignored[:_NOTED]]}
        n_copies = self.host.counts["near/dropped"]
        if not n_copies:
            return Shown(notes=notes)
        names = sorted({each.name for each in ignored if each.links})
        line = f"{counted(n_copies, 'link')} skipped, as they differ only in {_listed(names)}"
        return Shown(lines=[line], notes=notes)

    def refuse_new(self, request: Request, page: Entry | None) -> bool:
        return self._refuses(request)

    def _refuses(self, request: Request) -> bool:
        """Whether a new link is dropped."""
        if "?" not in request.url and ";" not in request.url:
            return False
        if not _is_plain(request):
            return False
        stripped = self.learner.stripped(request.url)
        if stripped is None:
            self.learner.offer(request.url)
            return False
        key = self.links.key(request)
        if self._is_known(stripped, request, key):
            if self._drop(Held(request, stripped, was_picked=False), key):
                return True
        else:
            _put(self._owners, stripped.key, key)
        self.learner.offer(request.url)
        return False

    def hand_out(self, entry: Entry, request: Request) -> bool:
        """Skip a queued link whose page was fetched meanwhile, or is in flight."""
        if State.FETCHED in self.host.seen.wanted or not {VISIT, GIVEN}.isdisjoint(request.meta):
            return False  # else revisits and renderings would count as copies
        if not self._skips(request, entry.pick):
            return False
        entry.verdict = "near_copy"
        return True

    def _skips(self, request: Request, pick: Pick) -> bool:
        if ("?" not in request.url and ";" not in request.url) or not _is_plain(request) or pick.key in self._checks:
            return False
        stripped = self.learner.stripped(request.url)
        if stripped is None:
            return False
        owner = self._owners.get(stripped.key)
        if owner == pick.key:
            return False
        flies = owner is not None and self._states(owner) == [State.FLYING]
        if flies or self._was_fetched(stripped, request):
            return self._drop(Held(request, stripped, was_picked=True), pick.key)
        _put(self._owners, stripped.key, pick.key)
        return False

    def outcome(self, entry: Entry, outcome: Outcome) -> Outcome | None:
        """Learn from a page, and tell the frontier which copies need no request."""
        pick, label = entry.pick, entry.label()
        if entry.visited or label == "near_copy" or pick.method == "HEAD":
            return None
        self._checks.pop(pick.key, None)
        self.learner.visit(pick.url)
        if label == "ok" and not entry.also:
            self._learn(pick.url, entry.response)
        if label in _SPENT or outcome.status in _GONE:
            outcome = self._with_copies(entry, outcome)
        else:
            self._fail(pick)
        self._write_sometimes()
        return outcome

    def _with_copies(self, entry: Entry, outcome: Outcome) -> Outcome:
        """Return an outcome with the keys of its page's URLs without the ignored parameters."""
        urls = {entry.pick.url}
        if entry.response is not None:
            urls.add(entry.response.url)
        stripped = [self.learner.stripped(url) for url in urls]
        copies = [each.key for each in stripped if each is not None]
        n = len(entry.also)  # a page that leads to a known one has its key behind its own
        return outcome._replace(also=(*outcome.also[:n], *copies, *outcome.also[n:]))

    def _returned(self) -> Iterator[Request]:
        """Yield each refused link that is to be followed, once.

        Skips links that the crawl found in another way, or that are refused again.
        """
        while self._given_back:
            held = self._given_back.popleft()
            if self.host.guard("near", True, self._returns, held):
                yield held.request

    def _returns(self, held: Held) -> bool:
        if (not held.was_picked and self.links.is_known(held.request)) or self._refuses(held.request):
            return False
        self.host.count("near/returned")
        return True

    def close(self) -> None:
        """Store the beliefs."""
        self._write()

    def _is_known(self, stripped: Stripped, request: Request, key: int) -> bool:
        """Whether the page is queued under another URL, or was fetched."""
        owner = self._owners.get(stripped.key)
        if owner is not None and owner != key:
            [state] = self._states(owner)
            if state not in (State.NEW, State.GIVEN_UP) or self.links.is_coming(owner):
                return True
        return self._was_fetched(stripped, request)

    def _was_fetched(self, stripped: Stripped, request: Request) -> bool:
        if self._states(stripped.key) != [State.NEW] or self.learner.was_fetched(stripped):
            return True
        bare = self.links.key(request.replace(url=stripped.url))
        return bare not in self._failed and self._states(bare) in ([State.FLYING], [State.FETCHED])

    def _states(self, key: int) -> list[State]:
        return self.host.crawl.knows([key])

    def _drop(self, held: Held, key: int) -> bool:
        """Drop a link; let an occasional one through as a check."""
        url = held.request.url
        if url in self._held:
            return True
        if not self.learner.drop(held.stripped):
            _put(self._checks, key, None)
            self.host.count("near/checked")
            return False
        self._held[url] = held
        if len(self._held) > _HELD:
            self._held.popitem(last=False)
        self.host.count("near/dropped")
        return True

    def _learn(self, url: str, response: Response | None) -> None:
        if response is None or not self.learner.wants(url):
            return
        for change in self.learner.learn(url, _print_of(response)):
            self._is_new = True
            self._tell(change)
            if not change.is_believed:
                self._give_back([each for each in self._held.values() if each.stripped.host == change.host])

    def _fail(self, pick: Pick) -> None:
        """Handle a page that failed: another copy of it may succeed, and is tried once."""
        _put(self._failed, pick.key, None)
        stripped = self.learner.stripped(pick.url)
        if stripped is not None and self._owners.get(stripped.key) == pick.key:
            del self._owners[stripped.key]
        bare = query_of(pick.url).without() if stripped is None else stripped.url
        if self._held and hash(bare) not in self._failed:
            _put(self._failed, hash(bare), None)
            self._give_back([each for each in self._held.values() if each.stripped.url == bare][:1])

    def _give_back(self, held: list[Held]) -> None:
        for each in held:
            del self._held[each.request.url]
            self._owners.pop(each.stripped.key, None)
            if not self._given_back:
                self.host.take_back(self._returned())
            self._given_back.append(each)

    def _tell(self, change: Change) -> None:
        if change.is_believed:
            self.host.count("near/learned")
            logger.info(
                "On %s the parameter %s does not change the page, as %d pairs of pages show: of links that differ "
                "only in it, one is followed (FOCUS_IGNORE_PARAMETERS)", change.host, change.name, change.pairs,
            )  # fmt: skip
        else:
            self.host.count("near/unlearned")
            logger.info("On %s the parameter %s changes the page after all", change.host, change.name)

    def _read(self) -> None:
        if self.path is None:
            return
        try:
            self.learner.restore(json.loads(self.path.read_bytes()))
        except FileNotFoundError:
            pass
        except (OSError, ValueError, RecursionError) as error:
            self.learner = NearCopies()
            logger.warning(
                "%s cannot be read (%s): parameters that do not matter are learned again", self.path, reason_of(error)
            )

    def _write_sometimes(self) -> None:
        self._until_write -= 1
        if self._is_new and self._until_write <= 0:
            self._write()

    def _write(self) -> None:
        if self.path is None:
            return
        self._is_new, self._until_write = False, _EVERY
        try:
            write_atomically(self.path, json.dumps(self.learner.state()).encode())
        except OSError as error:  # for example, of a full disk, for which the crawl stops anyway
            self.host.count("error/near")
            logger.warning(
                "%s cannot be written, and the next run learns its parameters again: %s", self.path, reason_of(error)
            )


def _print_of(response: Response) -> int:
    """Return a digest of a page's content, 0 for none."""
    if not isinstance(response, HtmlResponse):
        return file_print(response.body)
    if len(response.body) > _LARGE or not can_be_read(response):
        return 0
    return page_print(response.selector.root)


def _listed(names: list[str]) -> str:
    shown = ", ".join(printable(name, _LONGEST_NAME) for name in names[:_NAMES])
    return f"{shown} and {len(names) - _NAMES:,} more" if len(names) > _NAMES else shown


def _is_plain(request: Request) -> bool:
    if request.dont_filter or request.method != "GET" or request.body:
        return False
    return not request.meta.get("is_start_request")


def _put(store: OrderedDict[int, int] | OrderedDict[int, None], key: int, value: int | None) -> None:
    store[key] = value  # type: ignore[assignment]
    if len(store) > _REMEMBERED:
        store.popitem(last=False)
