"""Stores each response until its page is done, so that a run after a kill does not request it again."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, ClassVar
from weakref import WeakSet

from scrapy import signals

from scrapy_focus.core.types import State
from scrapy_focus.engine.conditions import has_conditions
from scrapy_focus.engine.feature import Feature
from scrapy_focus.features.answers.file import ANSWERS, KeptAnswers
from scrapy_focus.features.answers.values import answer_of, question_of, response_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from scrapy import Request
    from scrapy.http import Response

    from scrapy_focus.core.types import Outcome
    from scrapy_focus.engine.host import Host
    from scrapy_focus.engine.inflight import Entry

__all__ = ["ANSWERS", "KeepAnswers"]


class KeepAnswers(Feature):
    """Stores responses when they arrive, and forgets them when their pages are done.

    Parameters
    ----------
    host
        The host of the crawl.
    path
        The file.

    Attributes
    ----------
    recalled
        Requests that were answered by a stored response.

    Raises
    ------
    StorageError
        If the file cannot be written.
    """

    name: ClassVar[str] = "answers"
    abilities: ClassVar[frozenset[str]] = frozenset({"recall"})

    def __init__(self, host: Host, path: Path) -> None:
        self.host = host
        self.recalled: WeakSet[Request] = WeakSet()
        self.kept = KeptAnswers(path, self._states_when_killed)
        host.crawler.signals.connect(self._on_downloaded, signals.response_downloaded)

    def recall(self, request: Request) -> Response | None:
        """Return the stored response to a request, if it had arrived when an earlier run was killed."""
        return self.host.guard("recall", None, self._recall, request)

    def settled(self, entry: Entry, outcome: Outcome, earned: float) -> None:
        self.kept.forget(entry.pick.key)

    def close(self) -> None:
        self.kept.close()

    def _recall(self, request: Request) -> Response | None:
        entry = self.host.inflight.find(request)
        answer = None if entry is None else self.kept.take(entry.pick.key, question_of(request))
        if answer is None:
            return None
        response = response_of(answer)
        if response.status == HTTPStatus.NOT_MODIFIED and not has_conditions(request):  # it had some before the kill
            return None
        self.host.count("answer/recalled")
        self.recalled.add(request)
        return response

    def _on_downloaded(self, request: Request, response: Response) -> None:
        """Store a response before the engine does anything else with it."""
        entry = self.host.inflight.find(request)
        if entry is not None and (answer := answer_of(request, response)) is not None:
            self.host.guard("keep", None, self.kept.keep, entry.pick.key, question_of(request), answer)

    def _states_when_killed(self, keys: Sequence[int]) -> list[State]:
        """Return the states of keys; a page to be revisited has no response from before."""
        crawl = self.host.crawl
        states = crawl.knows(keys)
        if not crawl.comes_back:
            return states
        flew = crawl.status().recovered
        return [state if key in flew else State.FETCHED for key, state in zip(keys, states, strict=True)]
