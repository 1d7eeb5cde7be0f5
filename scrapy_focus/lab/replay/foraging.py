"""How well a crawl finds what is new: the nine measures of Palotai, Farkas and Lőrincz.

Their foragers download pages, send those that seem to be new to a reinforcing agent, and are rewarded for documents
that nobody sent before. So a crawl is judged by its downloads, its sent documents, the relevant ones among them, and
the freshness of its copies of these. All is computed from a crawl of a recording with changing pages, with any
policy. There are three more measures: the delay until a birth is known, the share of births ever found, and the
requests per relevant document.

Relevant is what was rewarded: with :class:`~scrapy_focus.ReinforcingAgent`, each version of a document that is young
and was not seen before. Only a policy of several foragers knows what was sent (:class:`SentNotes`). Any other crawl
counts as one forager that sends each young version once (:func:`sent_by_one`). All times are in seconds since the
start of the crawl.

References
----------
Palotai, Farkas, Lőrincz: Selection in scale-free small world. CEEMAS 2005, LNCS 3690.
"""

from __future__ import annotations

import copy
import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from scrapy_focus.core.contract import worth
from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.goal import heads_tell, noun_of, types_of
from scrapy_focus.core.mission import topic_of
from scrapy_focus.lab.recordings.format import RecordedPage
from scrapy_focus.lab.recordings.versions import NOT_YET
from scrapy_focus.web.documents import document_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from numpy.typing import ArrayLike, NDArray

    from scrapy_focus.core.goal import Goal
    from scrapy_focus.core.mission import Topic
    from scrapy_focus.core.types import Outcome, Page
    from scrapy_focus.lab.recordings.format import RecordedSite
    from scrapy_focus.lab.replay.harvest import Harvest
    from scrapy_focus.web.documents import Document

WINDOW = 3 * 3600.0  # seconds, the windows of Table 1 and of Figures 2 and 3
_HOUR = 3600.0


class Efficiency(NamedTuple):
    """The number of relevant documents for each one downloaded or sent."""

    whole: float  # of the whole crawl: Table 2 has these ratios of its counts
    mean: float  # of the windows, as Table 1 defines it
    windows: NDArray[np.float64]  # of each window; NaN where there was nothing; a last one of under a half is left out


class Discovery(NamedTuple):
    """How soon a crawl found what was born."""

    born: int
    recall: float  # share that was fetched before it was withdrawn, 0 to 1
    mean: float  # seconds from the birth to the first visit, of those that were fetched; NaN if none was
    median: float  # likewise
    late: float  # 90 % quantile, likewise


@dataclass(frozen=True, slots=True, kw_only=True)
class Foraging:
    """The results of a crawl: the nine measures, and three more."""

    downloaded: int  # requests that were answered
    sent: int  # documents, each as often as a forager sent a version of it
    relevant: int  # of these, versions that nobody had sent before
    found: int  # different URLs that were downloaded
    download_efficiency: Efficiency  # relevant for each download
    sent_efficiency: Efficiency  # relevant for each that was sent
    relative_found: float  # different URLs for each download
    freshness: float  # share of the copies that are up to date, mean over the windows; NaN without copies
    age: float  # seconds since the page of a copy changed, 0 for a fresh one; likewise
    discovery: Discovery
    cost: float  # requests for each relevant document; inf without any


class Sends(Protocol):
    """A policy that counts what it sends."""

    @property
    def sent(self) -> int:
        """Documents that were sent so far."""


class SentNotes:
    """A goal that records when a policy sent documents, and otherwise acts as another goal.

    Parameters
    ----------
    goal
        What an outcome is worth.
    policy
        Counts what it sends, in its attribute ``sent``.
    """

    def __init__(self, goal: Goal, policy: Sends) -> None:
        self._goal = goal
        self._policy = policy
        self._times: list[float] = []
        self._before = 0.0
        self._begin: float | None = None

    def __call__(self, outcome: Outcome) -> float | None:
        self._note(outcome.at)
        return worth(self._goal, outcome)

    def unchanged(self, outcome: Outcome) -> None:
        """Pass an unchanged page to the goal."""
        self._note(outcome.at)
        worth(self._goal, outcome)

    def times(self, begin: float) -> NDArray[np.float64]:
        """Return when each document was sent, shape (n_sent,); ``begin`` is when the crawl began."""
        self._note(self._before)
        return np.array(self._times, np.float64) - begin

    def _note(self, at: float) -> None:
        """Attribute new documents in the count to the time of the previous outcome."""
        self._times += [self._before] * (self._policy.sent - len(self._times))
        self._before = at

    def __deepcopy__(self, memo: dict[int, Any]) -> Goal:
        """Return a copy of the goal alone: it judges a whole site, and nothing is sent for that."""
        return copy.deepcopy(self._goal, memo)

    @property
    def noun(self) -> str:
        """The plural name of what the goal looks for."""
        return noun_of(self._goal)

    @property
    def types(self) -> Collection[str]:
        """The MIME types that it looks for."""
        return types_of(self._goal)

    @property
    def relevance(self) -> Topic | None:
        """The model of the topic that it looks for."""
        return topic_of(self._goal)

    @property
    def heads_tell(self) -> bool:
        """Whether headers are enough for it."""
        return heads_tell(self._goal)

    def __repr__(self) -> str:
        return repr(self._goal)


def foraging(
    harvest: Harvest,
    site: RecordedSite,
    *,
    sent: ArrayLike | None = None,
    births: Mapping[int, float] | None = None,
    window: float = WINDOW,
) -> Foraging:
    """Return the measures of a crawl.

    Parameters
    ----------
    harvest
        The result of :func:`~scrapy_focus.lab.replay.simulate.simulate`.
    site
        The recording that was crawled.
    sent
        When each document was sent, shape (n_sent,), as :meth:`SentNotes.times` returns it; by default
        :func:`sent_by_one`.
    births
        The birth times of the pages that matter, by their numbers; by default :func:`births_of`.
    window
        Seconds over which efficiencies are averaged, and between two checks of the copies.

    Raises
    ------
    ConfigError
        If the window is not a positive number.
    """
    if not 0 < window < math.inf:
        raise ConfigError(f"a window has {window} seconds; give a positive number")
    relevant_at = harvest.seconds[harvest.rewards > 0]
    sent_at = sent_by_one(harvest, site) if sent is None else np.asarray(sent, np.float64)
    downloaded_at = harvest.seconds[1:]
    edges = np.arange(max(1, round(harvest.seconds[-1] / window)) + 1) * window
    fresh, age = copies(harvest, site, np.arange(window, harvest.seconds[-1] + 1e-6, window))
    has_copies = np.isfinite(fresh)
    gets = harvest.pages[1:][~harvest.heads[1:]]
    found = len(np.unique(gets))
    return Foraging(
        downloaded=len(downloaded_at), sent=len(sent_at), relevant=len(relevant_at), found=found,
        download_efficiency=_efficiency(relevant_at, downloaded_at, edges),
        sent_efficiency=_efficiency(relevant_at, sent_at, edges),
        relative_found=_share(found, len(downloaded_at)),
        freshness=float(fresh[has_copies].mean()) if has_copies.any() else math.nan,
        age=float(age[has_copies].mean()) if has_copies.any() else math.nan,
        discovery=discovery(harvest, site, births_of(site) if births is None else births),
        cost=len(downloaded_at) / len(relevant_at) if len(relevant_at) else math.inf,
    )  # fmt: skip


def sent_by_one(
    harvest: Harvest, site: RecordedSite, *, hours: float = 24.0, read: Callable[[Page], Document] = document_of
) -> NDArray[np.float64]:
    """Return when a crawl of one forager sent documents, shape (n_sent,).

    It sends each version of a document once, if its last change is no older than so many hours at the visit, or if it
    was rewarded: a document without dates may be known to be new by other means.
    """
    had: set[tuple[int, bytes]] = set()
    looked: set[int] = set()
    times = []
    for page, answer, at, reward in _visits(harvest, site):
        if answer in looked:
            continue
        looked.add(answer)
        document = read(RecordedPage(site, page, answer))
        version = (page, document.digest)
        changed = document.changed_at(site.begin + at) if document.is_document else None
        is_young = changed is not None and site.begin + at - changed <= hours * _HOUR
        if (reward > 0 or is_young) and version not in had:
            had.add(version)
            times.append(at)
    return np.array(times, np.float64)


def copies(
    harvest: Harvest, site: RecordedSite, times: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the state of the copies of a crawl at some times: the share that is fresh, and their mean age in
    seconds.

    A copy is stored when its document is rewarded, in place of an older one, and not at other visits. It is fresh
    while the page answers with the same content; otherwise its age is the time since the page last changed, or was
    withdrawn. Both have shape (n_times,) and are NaN while nothing is stored.
    """
    kept: dict[int, tuple[list[float], list[int]]] = defaultdict(lambda: ([], []))
    for page, answer, at, reward in _visits(harvest, site):
        if reward > 0:
            kept[page][0].append(at)
            kept[page][1].append(answer)
    stored, fresh, age = np.zeros(len(times)), np.zeros(len(times)), np.zeros(len(times))
    digest = site.answers.digest
    content = np.where(digest != 0, digest, np.arange(len(digest)))  # the same for equal bodies
    for page, (since, answers) in kept.items():
        place = np.searchsorted(since, times, side="right") - 1
        has = place >= 0
        mine = np.array(answers)[place]
        changes, numbers = map(np.array, zip(*site.history(page), strict=True))
        live = np.searchsorted(changes, site.begin + times, side="right") - 1
        same = content[numbers[live]] == content[mine]
        stored += has
        fresh += has & same
        stale = has & ~same
        age[stale] += site.begin + times[stale] - changes[live[stale]]
    with np.errstate(invalid="ignore"):
        return fresh / stored, age / stored


def births_of(site: RecordedSite, first: float = 0.0, last: float = math.inf) -> dict[int, float]:
    """Return the birth time of each page that did not exist at the start of the recording, by its number.

    Only births from ``first`` on and before ``last``: it takes time until a crawl knows a site, and nobody can find
    the last births.
    """
    begins = ((page, site.history(page)[0][0] - site.begin) for page in range(site.n_urls))
    return {page: at for page, at in begins if 0 < at < math.inf and first <= at < last}


def discovery(harvest: Harvest, site: RecordedSite, births: Mapping[int, float]) -> Discovery:
    """Return how soon a crawl fetched the pages with these birth times, before they were withdrawn."""
    status = site.answers.status
    known: dict[int, float] = {}
    for page, answer, at, _ in _visits(harvest, site):
        if page in births and page not in known and at >= births[page] and 200 <= status[answer] < 300:
            known[page] = at
    delays = np.array([at - births[page] for page, at in known.items()] or [math.nan])
    quantiles = np.quantile(delays, [0.5, 0.9])
    return Discovery(
        len(births), _share(len(known), len(births)), float(delays.mean()), float(quantiles[0]), float(quantiles[1])
    )


def _visits(harvest: Harvest, site: RecordedSite) -> Iterator[tuple[int, int, float, float]]:
    """Yield the page, the number of its answer, the time and the reward of each GET of an existing page."""
    rows = zip(
        harvest.pages[1:].tolist(), harvest.seconds[1:].tolist(), harvest.rewards[1:].tolist(),
        harvest.heads[1:].tolist(), strict=True,
    )  # fmt: skip
    for page, at, reward, is_head in rows:
        if not is_head and (answer := site.at(page, site.begin + at)) != NOT_YET:
            yield page, answer, at, reward


def _efficiency(relevant: NDArray[np.float64], of: NDArray[np.float64], edges: NDArray[np.float64]) -> Efficiency:
    """Return how many of these times belong to relevant documents, in total and by window."""
    n, all_ = np.histogram(relevant, edges)[0], np.histogram(of, edges)[0]
    windows = np.where(all_ > 0, n / np.maximum(all_, 1), math.nan)
    mean = float(windows[all_ > 0].mean()) if all_.any() else math.nan
    return Efficiency(_share(len(relevant), len(of)), mean, windows)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else math.nan
