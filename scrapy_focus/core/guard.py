"""Calls the policy, goal, stop rule and log of a crawl, and handles their exceptions."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from scrapy_focus.core.abilities import Abilities
from scrapy_focus.core.errors import FocusError, StorageError
from scrapy_focus.core.printable import PARAGRAPH, printable_logger, reason_of

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable

    from scrapy_focus.core.goal import Goal
    from scrapy_focus.core.log import EventLog
    from scrapy_focus.core.policy import Policy
    from scrapy_focus.core.stop import StopRule

logger = printable_logger(__name__)
P = ParamSpec("P")
T = TypeVar("T")

_SHOWN_ERRORS = 3  # with traceback; after that they are only counted
_SHOWN_ONCE = frozenset({"best_arms", "due", "expected_cost", "expected_left", "tables"})  # called again and again


class Failure(Enum):
    """The answer of a policy or goal that raised."""

    FAILED = "failed"


FAILED = Failure.FAILED


class Guard:
    """Calls the policy, goal, stop rule and log of a crawl; logs and counts their exceptions, unless the crawl is
    strict.

    Parameters
    ----------
    policy
        The policy. Every part of a crawl reads it here, so that it can be replaced.
    goal, stop, log
        The other objects that are called, with the names used in the log.
    counts
        Where errors are counted, as ``error/...``.
    strict
        Let errors through.
    """

    def __init__(
        self,
        policy: Policy,
        goal: Goal,
        stop: StopRule | None = None,
        log: EventLog | None = None,
        *,
        counts: Counter[str],
        strict: bool = False,
    ) -> None:
        self.take_up(policy)
        self.counts = counts
        self.strict = strict
        self._others = {"goal": goal, "log": log, "stop": stop}

    def take_up(self, policy: Policy) -> None:
        """Use another policy from now on."""
        self.policy = policy
        self.abilities = Abilities.of(policy)

    def ask(self, what: str, question: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | Failure:
        """Return the answer of a call, ``FAILED`` if it raises.

        Raises
        ------
        StorageError
            If the crawl cannot be stored.
        Exception
            Whatever the call raises, if the crawl is strict.
        """
        try:
            return question(*args, **kwargs)
        except StorageError:
            raise
        except Exception as error:
            if self.strict:
                raise
            self._note(what, error)
            return FAILED

    def _note(self, what: str, error: Exception) -> None:
        self.counts[f"error/{what}"] += 1
        if self.counts[f"error/{what}"] > (1 if what in _SHOWN_ONCE else _SHOWN_ERRORS):
            return
        expected = isinstance(error, (FocusError, OSError) if what == "log" else FocusError)
        logger.error(  # the message is expected and complete; no traceback is needed
            "%s of %s failed: %s", what, type(self._others.get(what, self.policy)).__qualname__,
            reason_of(error, PARAGRAPH), exc_info=not expected,
        )  # fmt: skip
