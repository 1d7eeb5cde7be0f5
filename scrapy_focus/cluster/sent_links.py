"""The links that a worker has sent to the leader, and does not send again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy_focus.core.abilities import Knows
from scrapy_focus.core.types import State
from scrapy_focus.frontiers.keys import KeySet

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from scrapy_focus.cluster.messages import Said
    from scrapy_focus.core.policy import Policy
    from scrapy_focus.core.types import Link


class SentLinks:
    """Remembers the keys of links that the leader received from here, or leased to here.

    Parameters
    ----------
    policy
        The policy, which wants some known links.
    comes_back
        Whether pages are revisited, so that fetched ones have to be distinguished.
    """

    def __init__(self, policy: Policy, *, comes_back: bool) -> None:
        self._comes_back = comes_back
        self._knows_keys = policy.known_by_key or isinstance(policy, Knows)
        self._wants_links = bool(policy.wants_known) and not policy.known_by_key
        self._known_state = min(policy.wants_known, default=State.WAITING)
        self._sent = KeySet()
        self._fetched = KeySet()

    def add(self, keys: Sequence[int]) -> None:
        """Remember links that the leader has."""
        for key in keys:
            self._sent.add(key)

    def fetched(self, keys: Sequence[int]) -> None:
        """Remember pages that were fetched."""
        self.add(keys)
        if self._comes_back:
            for key in keys:
                self._fetched.add(key)

    def sort(self, links: Sequence[Link], known: Sequence[int]) -> tuple[list[Link], list[int]]:
        """Return the links of a page to send to the leader, and the keys to send if the policy uses keys."""
        fresh = [link for link in links if self._wants_links or link.key not in self._sent]
        keys = [*known, *(link.key for link in links if link.key in self._sent)] if self._knows_keys else []
        self.add([link.key for link in fresh])
        return fresh, keys

    def state(self, key: int, flying_keys: Collection[int]) -> State:
        """Return the state of a key as known here."""
        if key in flying_keys:
            return State.FLYING
        if self._comes_back and key in self._fetched:
            return State.FETCHED
        return self._known_state if key in self._sent else State.NEW

    def forget_all(self) -> None:
        """Forget everything: all links are sent again when they are found again."""
        self._sent, self._fetched = KeySet(), KeySet()

    def forget_unplaced(self, keys: Sequence[int], said: Sequence[Said]) -> list[str]:
        """Forget sent links that the policy left unchanged, and return their URLs.

        They are sent again when they are found again.
        """
        unplaced = set(keys)
        links = [link for each in said if each[0] in ("add", "outcome") for link in _links_in(each)]
        unplaced_links = {(url, key) for url, key, *_ in links if key in unplaced}
        for _, key in unplaced_links:
            self._sent.discard(key)
        return [url for url, _ in unplaced_links]


def _links_in(said: Said) -> list[tuple[Any, ...]]:
    match said:
        case ("add", _, _, links) | ("outcome", _, _, _, links, _):
            return list(links)
        case _:
            return []
