"""Why a link was chosen, in words and numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from scrapy_focus.core.printable import printable
from scrapy_focus.web.html import readable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy_focus.policies.branching.arms import Record

_MOST_ODDS = 20.0  # log-odds that are said
_NOTHING = 1e-3


class Choice(NamedTuple):
    """What a branching bandit knew when it chose a pick."""

    pick_id: int
    arm: int
    score: float
    own: float
    later: float
    cost: float  # of a pull, in the unit that is saved
    second: int  # the arm of the best link of another one, -1: there was none
    second_score: float
    candidates: int  # of all these arms, among which it was the best; 0: it was drawn at random
    odds: float  # log-odds by which they were ordered

    def explain(self, kind: str, record: Record, names: Sequence[str], what: str = "") -> dict[str, Any]:
        """Return what JSON can hold: the arm, its record, the parts of the score, what it was preferred to, and a
        sentence. It begins with what was chosen, or else that this is a link.
        """
        at_random = not self.candidates
        index = (self.own + self.later) / self.cost
        times = self.score / index if index > _NOTHING else 1.0
        said: dict[str, Any] = {
            "kind": kind, "tag_path": names[self.arm], "pulls": round(record.pulls, 1),
            "earned": round(record.rewards, 2), "revealed": round(record.revealed, 2), "score": round(self.score, 4),
            "own": round(self.own, 4), "later": round(self.later, 4), "cost": round(self.cost, 4),
            "times": round(times, 4), "at random": at_random,
            "candidates": self.candidates, "odds": round(self.odds, 2),
        }  # fmt: skip
        instead = ""
        if self.second >= 0:
            said |= {"instead of": names[self.second], "its score": round(self.second_score, 4)}
            instead = f" (the next best, {_place(names[self.second])}, {_said(self.second_score)})"
        earned = "was never pulled"
        if record.pulls:
            reveals = f" and revealed {record.revealed / record.pulls:.2g}" if record.revealed else ""
            earned = f"earned {record.rewards / record.pulls:.2g} targets a pull{reveals} in {record.pulls:.0f} pulls"
        chosen = "drawn at random, to explore"
        if not at_random:
            odds = math.exp(min(self.odds, _MOST_ODDS))
            chosen = f"odds {odds:.2g} to 1"
            chosen = f"the most promising of {self.candidates}, {chosen}" if self.candidates > 1 else f"alone, {chosen}"
        what = f"{printable(what)};" if what else f"a link to a {kind} at {_place(names[self.arm])}:"
        said["why"] = (
            f"{what} its arm {earned}; {_said(self.own)} is expected of a "
            f"pull and {_said(self.later)} of what it reveals, of this one {times:.2g} times as much, score "
            f"{_said(self.score)}{instead}; {chosen}"
        )
        return said


def _place(name: str) -> str:
    return printable(readable(name))


def _said(value: float) -> str:
    """Return two digits of a number, and 0 for what is next to nothing."""
    return f"{value:.2g}" if abs(value) >= _NOTHING else "0"
