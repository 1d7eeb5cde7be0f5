"""Why a link was chosen: a sentence for each step of the choice, with its numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from scrapy_focus.core.printable import counted, printable
from scrapy_focus.core.reason import Part
from scrapy_focus.web.html import readable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from scrapy_focus.policies.branching.arms import Record

_NOTHING = 1e-3


class Choice(NamedTuple):
    """What a branching bandit knew when it chose a pick."""

    pick_id: int
    arm: int
    score: float
    own: float
    later: float
    cost: float  # of a pull, in the unit that is saved
    second: int  # the other arm with the next best link, -1: none
    second_score: float
    candidates: int  # in all these arms, among which it was the best; 0: it was drawn at random
    odds: float  # log-odds that ordered them

    def explain(self, kind: str, record: Record, names: Sequence[str], rendering: str = "") -> Iterator[Part]:
        """Yield the parts of the reason: the record of the arm, the expectation, the score, and how it was chosen.

        ``rendering`` is a sentence that replaces the one on the record.
        """
        yield Part("predicted to be a find" if kind == "predicted target" else "", {"kind": kind})
        place = names[self.arm]
        numbers = {
            "tag_path": place, "pulls": round(record.pulls, 1), "earned": round(record.rewards, 2),
            "revealed": round(record.revealed, 2),
        }  # fmt: skip
        yield Part(rendering or (_in_words(place, record) if place else ""), numbers)
        yield self._expectation()
        yield self._score(names)
        yield self._selection()

    def _expectation(self) -> Part:
        index = (self.own + self.later) / self.cost
        times = self.score / index if index > _NOTHING else 1.0
        return Part(
            f"expected finds: {_said(self.own)} here and {_said(self.later)} later, times {times:.2g} for this "
            "link",
            {
                "own": round(self.own, 4), "later": round(self.later, 4), "cost": round(self.cost, 4),
                "times": round(times, 4),
            },
        )  # fmt: skip

    def _score(self, names: Sequence[str]) -> Part:
        sentence, numbers = f"score {_said(self.score)}", {"score": round(self.score, 4)}
        if self.second < 0:
            return Part(sentence, numbers)
        second = names[self.second]
        return Part(
            f"{sentence}, the next best at {_place(second)} {_said(self.second_score)}",
            {**numbers, "instead of": second, "its score": round(self.second_score, 4)},
        )

    def _selection(self) -> Part:
        numbers = {"at random": not self.candidates, "candidates": self.candidates, "odds": round(self.odds, 2)}
        if not self.candidates:
            return Part("drawn at random", numbers)
        return Part(f"the most promising of {self.candidates}" if self.candidates > 1 else "", numbers)


def _in_words(place: str, record: Record) -> str:
    """Describe the results of the links at a place. Counts are rounded, because older results are decayed."""
    pulls, earned, revealed = (round(number) for number in (record.pulls, record.rewards, record.revealed))
    if not pulls:
        return f"no link at {_place(place)} was known"
    brought = counted(earned, "find") if earned or revealed else "no find"
    likely = f" and {counted(revealed, 'link')} to likely ones" if revealed else ""
    return f"{counted(pulls, 'link')} at {_place(place)} brought {brought}{likely}"


def _place(name: str) -> str:
    return printable(readable(name))


def _said(value: float) -> str:
    """Return two digits of a number, and 0 for a negligible one."""
    return f"{value:.2g}" if abs(value) >= _NOTHING else "0"
