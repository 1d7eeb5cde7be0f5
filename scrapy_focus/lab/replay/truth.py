"""What there is to find on a recorded site: the kind of each URL, and the results of a crawl of the whole site."""

from __future__ import annotations

import copy
from array import array
from typing import TYPE_CHECKING

import numpy as np

from scrapy_focus.core.contract import worth
from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.goal import SeesLinks, reads_links, types_of
from scrapy_focus.core.types import Link, Pick
from scrapy_focus.lab.replay.answers import Answers, Flight, new_files
from scrapy_focus.lab.replay.harvest import Exhaustive
from scrapy_focus.web.mime import BLOCKED_MIMES

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from scrapy_focus.core.goal import Goal
    from scrapy_focus.core.types import Method
    from scrapy_focus.lab.recordings.format import RecordedSite
    from scrapy_focus.lab.replay.answers import Items
    from scrapy_focus.policies.tagpath.oracles import Kind

_GET: Method = "GET"
_RENDER: Method = "RENDER"


class SiteTruth:
    """The kind of every URL of a recorded site, as far as links from its roots lead.

    Everything is requested once, breadth-first, by the rules of a simulated crawl. So the totals are the requests and
    finds of :class:`~scrapy_focus.policies.orderings.BreadthFirst` without a limit. If the recording has pages as a
    browser showed them, these are requested as well, each after all that was queued when its plain copy arrived.

    Parameters
    ----------
    site
        The recording.
    goal
        Gives the rewards. It is copied, so that a goal with a memory starts from nothing.
    ignored, items, retries, blocked_mimes
        See :func:`~scrapy_focus.lab.replay.simulate.simulate`.

    Attributes
    ----------
    order
        Numbers of the URLs that are requested, breadth-first, shape (n_asked,); a redirect is followed at once.
    worth
        The reward of each URL of the site, shape (n_urls,), both copies of a page together. The reward belongs to the
        target of a redirect.
    exhaustive
        The results of a crawl of the whole site.

    Raises
    ------
    ConfigError
        If the goal cannot be copied.
    """

    def __init__(
        self,
        site: RecordedSite,
        goal: Goal,
        *,
        ignored: Collection[str] = (),
        items: Items = new_files,
        retries: int = 2,
        blocked_mimes: Collection[str] = BLOCKED_MIMES,
    ) -> None:
        self.site = site
        self.worth: NDArray[np.float64] = np.zeros(site.n_urls)
        self._ignored = site.with_extension(ignored)
        self._redirects: dict[int, int] = {}
        self._opened = np.zeros(site.n_urls, np.bool_)  # whose links are found when they are requested
        answers = Answers(
            site, ignored=ignored, items=items, retries=retries, blocked=blocked_mimes,
            wanted=types_of(goal), reads_page=reads_links(goal), wants_known=False,
        )  # fmt: skip
        order = array("q")
        self.exhaustive = self._explore(answers, _copy(goal), order)
        self.order: NDArray[np.int64] = np.frombuffer(order, np.int64)

    def kind(self, url: str) -> Kind:
        """Return the kind of a URL; ``"unknown"`` if it was never recorded."""
        page = self.site.ids.get(url)
        if page is None or not self.site.recorded[page]:
            return "unknown"
        if self.worth[page] > 0:
            return "target"
        if self.site.redirect[page] >= 0:
            return "redirect"
        if not 200 <= self.site.status[page] < 300:
            return "dead"
        places = self.site.links(page)
        return "page" if "html" in self.site.mimes[page] or places.start < places.stop else "other"

    def targets(self) -> Sequence[Link]:
        """Return a link to everything with a reward, in breadth-first order."""
        site, pages = self.site, self.order[self.worth[self.order] > 0].tolist()
        return list(map(Link, site.urls.some(pages), pages, site.hosts.some(pages)))

    def leads_to(self, key: int) -> NDArray[np.int64]:
        """Return the numbers of the URLs that a page links to, each once and in document order, or a redirect's.

        Shape (n_links,); empty if no crawl from the roots requests the URL. Ignored links, and those that only a
        browser shows, are skipped.
        """
        if key in self._redirects:
            return np.array([self._redirects[key]], np.int64)
        if not self._opened[key]:
            return np.zeros(0, np.int64)
        found = self.site.targets[self.site.links(key)].astype(np.int64)
        found = found[~self._ignored[found]]
        return found[np.sort(np.unique(found, return_index=True)[1])]

    def _explore(self, answers: Answers, goal: Goal, order: array[int]) -> Exhaustive:
        """Request everything, record the order of the URLs, and return the totals."""
        urls, site_hosts = self.site.urls, self.site.hosts
        hosts = set()
        requests = received = target_bytes = 0
        rewards = 0.0
        queue, depths = array("q"), array("i")  # a page to be rendered has the complement of its number
        roots = answers.start(answers.roots())
        if isinstance(goal, SeesLinks):
            goal.see_links(roots, None)
        for root in roots:
            queue.append(root.key)
            depths.append(root.depth)
        for waiting, depth in zip(queue, depths, strict=True):  # both grow meanwhile
            key, method = (waiting, _GET) if waiting >= 0 else (~waiting, _RENDER)
            pick = Pick(0, key, urls[key], site_hosts[key], depth, 0, 0.0, None, -1, method, b"")
            flight = Flight(pick, 0.0)
            asked, came = self._ask(answers, flight, order)
            requests += asked
            received += came
            outcome = answers.outcome(flight, 0.0)
            reward = worth(goal, outcome) or 0.0
            rewards += reward
            at = flight.final if flight.final >= 0 else key
            self.worth[at] += reward
            if reward > 0:
                hosts.add(site_hosts[at])
                target_bytes += flight.received
            if not outcome.error:
                self._opened[flight.final] = True
                if isinstance(goal, SeesLinks):
                    links = answers.links(flight)
                    goal.see_links(links, outcome._replace(reward=reward))
                    found = [link.key for link in links]
                else:
                    found, _ = answers.leads_to(flight)
                queue.extend(found)
                depths.extend([depth + 1] * len(found))
                if outcome.scripted and method == _GET:
                    queue.append(~key)
                    depths.append(depth)
        return Exhaustive(
            requests=requests,
            worth=rewards,
            target_bytes=target_bytes,
            other_bytes=received - target_bytes,
            hosts=len(hosts),
        )

    def _ask(self, answers: Answers, flight: Flight, order: array[int]) -> tuple[int, int]:
        """Request a page until it sends nothing more; return the requests, and the bytes received."""
        requests = received = 0
        last = -1
        while (page := answers.next_request(flight)) >= 0:
            if page != last and flight.pick.method == _GET:
                order.append(page)
            flight.out = last = page
            if (size := answers.receive(flight)) is not None:
                requests += 1 + len(flight.besides)
                received += size + sum(flight.besides)
                flight.received = size
                flight.besides = []
            to = flight.leads_to if flight.page < 0 else flight.page
            if to >= 0 and to != page:
                self._redirects[page] = to
        return requests, received


def _copy(goal: Goal) -> Goal:
    try:
        return copy.deepcopy(goal)
    except Exception as error:  # any exception of a user's goal
        raise ConfigError(
            f"the goal {goal!r} cannot be copied ({error}): a simulation also asks a copy of it what the whole site is "
            "worth; let it make in its first call what cannot be copied"
        ) from error
