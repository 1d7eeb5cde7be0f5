"""How links become queued: which ones the policy places, and where."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from scrapy_focus.core.contract import check_awake, placed, states_of
from scrapy_focus.core.guard import FAILED
from scrapy_focus.core.types import NOT_NOW, Link, State

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Sequence

    from scrapy_focus.core.choices import Choices
    from scrapy_focus.core.frontier import Frontier
    from scrapy_focus.core.guard import Guard
    from scrapy_focus.core.poor_last import PoorLast
    from scrapy_focus.core.sleepers import Sleepers
    from scrapy_focus.core.types import Outcome, Pick, Placement

PART = 500  # new links of a page that a policy places at once


class Placer:
    """Lets the policy place links, and pushes them to the frontier.

    Parameters
    ----------
    frontier
        Where links are queued.
    sleepers
        Whether links can sleep there.
    guard
        Calls the policy.
    choices
        Places links if the policy fails.
    poor_last
        Places poor links elsewhere.
    counts
        Where links that the policy gives up are counted.
    """

    def __init__(
        self,
        frontier: Frontier,
        sleepers: Sleepers,
        guard: Guard,
        choices: Choices,
        poor_last: PoorLast,
        *,
        counts: Counter[str],
    ) -> None:
        self._frontier = frontier
        self._sleepers = sleepers
        self._guard = guard
        self._choices = choices
        self._poor_last = poor_last
        self._counts = counts
        self._wanted = states_of(guard.policy)
        self._by_key = guard.policy.known_by_key

    def parts(self, links: Sequence[Link]) -> list[Sequence[Link]]:
        """Split the links of a page into parts that each have no more new links than the policy places at once; at
        least one.
        """
        if len(links) <= PART:
            return [links]
        states = self._frontier.states([link.key for link in links])
        to_place = [i for i, state in enumerate(states) if state == State.NEW or state in self._wanted]
        cuts = [0, *to_place[PART::PART], len(links)]
        return [links[start:end] for start, end in pairwise(cuts)]

    def add(self, links: Sequence[Link], source: Outcome | None, known: Sequence[int] = ()) -> None:
        """Let the policy place links that are new or in a state that it wants, and pass it the keys of the others."""
        by_key, others = self._known_by_key(known)
        wanted: list[Link] = []
        fresh: dict[int, Link] = {}
        for link, state in zip(links, self._frontier.states([link.key for link in links]), strict=True):
            is_wanted = state in self._wanted
            if is_wanted and self._by_key:
                by_key.append(Link("", link.key, state=state))
            elif state != State.NEW and not is_wanted:
                others.append(link.key)
            elif self._wanted:  # such a policy receives each link of a page, however often it occurs
                wanted.append(link if link.state == state else link._replace(state=state))
            else:
                fresh.setdefault(link.key, link)
        placeable = [*by_key, *wanted] or list(fresh.values())
        if placeable:
            self._place(placeable, source, -1 if source is None else source.pick.arm)
        knower = self._guard.abilities.know
        if knower is not None and others and source is not None:
            self._guard.ask("know", knower.know, others, source)

    def _known_by_key(self, known: Sequence[int]) -> tuple[list[Link], list[int]]:
        """Split the keys of known links: those that the policy wants, as links without a URL, and the others."""
        if not self._by_key or not known:
            return [], list(known)
        stated = [*zip(known, self._frontier.states(known), strict=True)]
        by_key = [Link("", key, state=state) for key, state in stated if state in self._wanted]
        return by_key, [key for key, state in stated if state not in self._wanted]

    def place_probed(self, outcome: Outcome) -> None:
        """Let the policy place the link of a HEAD again."""
        pick = outcome.pick
        probed = Link(pick.url, pick.key, pick.host, pick.depth, state=State.PROBED, payload=pick.payload)
        self._place([probed], outcome, pick.origin)

    def put_back(self, pick: Pick, place: Placement) -> None:
        """Queue a pick elsewhere than before."""
        link = Link(pick.url, pick.key, pick.host, pick.depth, state=State.WAITING, payload=pick.payload)
        self._frontier.push([link], [place], origin=pick.origin)

    def _place(self, links: Sequence[Link], source: Outcome | None, origin: int) -> None:
        """Let the policy place links, and push them to the frontier."""
        answer = self._guard.ask("place", self._placements, links, source)
        placements = self._choices.strand(links) if answer is FAILED else answer
        if self._poor_last.poor is not None and source is not None:
            placements = self._poor_last.placed(links, placements)
        open_ = (State.NEW, State.PROBED)  # a link in such a state is given up if it gets no placement
        given_up = [place is None and link.state in open_ for place, link in zip(placements, links, strict=True)]
        self._counts["link/given_up"] += sum(given_up)
        if any(place is NOT_NOW for place in placements):
            now = [(link, place) for link, place in zip(links, placements, strict=True) if place is not NOT_NOW]
            links, placements = [link for link, _ in now], [place for _, place in now]
        self._frontier.push(links, placements, origin=origin)

    def _placements(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        placements = placed(self._guard.policy.place(links, source), links)
        if not self._sleepers.can_sleep:
            check_awake(placements, self._frontier)
        return placements
