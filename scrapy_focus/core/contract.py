"""Checks that goals and policies keep their contracts."""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from scrapy_focus.core.abilities import Left, Loads, PolicyTable, Saves
from scrapy_focus.core.errors import ConfigError, FocusError, GoalError, PolicyError, ResumeError
from scrapy_focus.core.frontier import Drawn, Ranked, Ranks
from scrapy_focus.core.frontier import Frontier as FrontierProtocol
from scrapy_focus.core.goal import Learner, Says, SeesUnchanged
from scrapy_focus.core.policy import Policy
from scrapy_focus.core.printable import PARAGRAPH, brief, printable
from scrapy_focus.core.reason import Reason
from scrapy_focus.core.types import METHODS, NOT_NOW, Pick, Placement, State

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from os import PathLike

    from scrapy_focus.core.abilities import (
        ExpectsCost,
        ExpectsLeft,
        FetchesAgain,
        Renders,
        ShowsArms,
        ShowsTables,
        Waits,
    )
    from scrapy_focus.core.frontier import Frontier, Keeps, MakeFrontier, Sleeping
    from scrapy_focus.core.goal import Goal, Warns
    from scrapy_focus.core.types import Link, Outcome

_MOST_ARMS = 1_000_000
_LARGEST = sys.float_info.max
_TABLES, _COLUMNS, _ROWS = 10, 20, 1000  # that a policy may show
_LONGEST_HEAD = 100  # characters of a title or the head of a column


def worth(goal: Goal, outcome: Outcome) -> float | None:
    """Return the reward of an outcome; unchanged content is worth 0, and the goal is not asked.

    A goal that observes unchanged pages still receives it.

    Raises
    ------
    GoalError
        If that is neither ``None`` nor a finite number.
    """
    if outcome.changed is False:
        if isinstance(goal, SeesUnchanged):
            goal.unchanged(outcome)
        return 0.0
    reward = goal(outcome)
    if reward is None:
        return None
    if isinstance(reward, (int, float, np.number)) and math.isfinite(reward):
        return float(reward)
    raise GoalError(
        f"the goal {goal!r} answered {brief(reward)}; return a finite number, or None if the reward comes later"
    )


def state_of_goal(goal: Goal) -> Any:
    """Return the state of a goal, ``None`` for one that does not learn."""
    return goal.state() if isinstance(goal, Learner) else None


def restore_goal(goal: Goal, state: Any) -> None:
    """Restore a goal to a saved state; do nothing for ``None``.

    Raises
    ------
    ResumeError
        If it cannot.
    """
    if state is None:
        return
    try:
        cast("Learner", goal).restore(state)  # one of an equal goal, which learned
    except Exception as error:
        raise ResumeError(
            f"what the goal {goal!r} learned cannot be read: {error!r}; let focus check --fix --anew keep the "
            "links and begin to learn anew"
        ) from error


def said_by(goal: Goal) -> list[str]:
    """Return how a goal describes the crawl, one sentence each; long ones are cut."""
    said = goal.said() if isinstance(goal, Says) else []
    return [printable(str(each), PARAGRAPH) for each in said[:_TABLES]]


def alarm_of(goal: Warns) -> str:
    """Return the problem that a goal reports, ``""`` for none."""
    return printable(str(goal.alarm or ""), PARAGRAPH)


def cost_of(policy: ExpectsCost) -> float | None:
    """Return the cost of the next target that a policy expects.

    Raises
    ------
    PolicyError
        If that is neither ``None`` nor a number.
    """
    return _number_or_none(policy.expected_cost(), "expected_cost()", "a number of requests")


def save_learned(policy: Policy, path: str | PathLike[str]) -> None:
    """Let a policy save what it learned to a file.

    Raises
    ------
    ConfigError
        If it has no such method, or the file cannot be written.
    """
    if not isinstance(policy, Saves):
        raise ConfigError(f"{type(policy).__qualname__} cannot save what it learned; choose another policy")
    policy.save(path)


def load_learned(policy: Policy, path: str | PathLike[str]) -> None:
    """Let a new policy load what another crawl saved.

    Raises
    ------
    ConfigError
        If it has no such method, or the file cannot be read.
    """
    if not isinstance(policy, Loads):
        raise ConfigError(f"{type(policy).__qualname__} cannot begin with {path}; choose another policy")
    policy.load(path)


def gave_up(policy: Policy, n: int) -> int:
    """Let a policy give up ``n`` queued links, and return how many it reports.

    Raises
    ------
    PolicyError
        If it does not return a number.
    """
    said = policy.give_up(n)
    if not isinstance(said, (int, np.integer)):
        raise PolicyError(f"give_up({n}) answered {brief(said)}; return how many links were given up")
    return int(said)


def due_of(policy: Waits) -> float | None:
    """Return when a policy may choose the next link.

    Raises
    ------
    PolicyError
        If that is neither ``None`` nor a number.
    """
    return _number_or_none(policy.due(), "due()", "seconds since the epoch, as self.now is")


def left_of(policy: ExpectsLeft) -> Left | None:
    """Return how many targets a policy expects to be left.

    Raises
    ------
    PolicyError
        If that is neither ``None`` nor three finite numbers.
    """
    left = policy.expected_left()
    if left is None:
        return None
    if isinstance(left, (tuple, list)) and len(left) == len(Left._fields):
        numbers = [number for each in left if (number := _number(each)) is not None and math.isfinite(number)]
        if len(numbers) == len(left):
            return Left(*numbers)
    raise PolicyError(f"expected_left() answered {brief(left)}; return Left(low, middle, high), or None")


def best_of(policy: ShowsArms, k: int) -> list[tuple[str, float, int]]:
    """Return up to `k` of the best arms of a policy.

    Raises
    ------
    PolicyError
        If they are not triples of a name, a reward and a number of pulls.
    """
    answer = policy.best_arms(k)
    best: list[tuple[str, float, int]] = []
    for each in islice(answer, k) if isinstance(answer, Iterable) and not isinstance(answer, str) else [answer]:
        earned = pulls = None
        if isinstance(each, (tuple, list)) and len(each) == 3 and isinstance(each[0], str):
            earned, pulls = _number(each[1]), _number(each[2])
        if earned is None or pulls is None or not (math.isfinite(earned) and math.isfinite(pulls)):
            raise PolicyError(
                f"best_arms() answered {brief(each)}; return a list of (name, what it earned, number of pulls)"
            )
        best.append((each[0], earned, int(pulls)))
    return best


def tables_of(policy: ShowsTables) -> list[PolicyTable]:
    """Return the tables of a policy, as :func:`tables_in` does.

    Raises
    ------
    PolicyError
        If they are not tables.
    """
    return tables_in(policy.tables())


def tables_in(answer: object) -> list[PolicyTable]:
    """Return tables fit to be shown and stored: plain values, texts in one line, long ones cut.

    Surplus tables, columns and rows are dropped.

    Raises
    ------
    PolicyError
        If they are not tables, a row has another length than the columns, or a value is neither a text nor a finite
        number.
    """
    if not isinstance(answer, (list, tuple)) or isinstance(answer, PolicyTable):
        raise PolicyError(f"tables() answered {brief(answer)}; return a list of PolicyTable(title, columns, rows)")
    return [_table(each) for each in answer[:_TABLES]]


def _table(each: object) -> PolicyTable:
    if isinstance(each, (tuple, list)) and len(each) == len(PolicyTable._fields):
        title, columns, rows = each
        is_sound = isinstance(columns, (tuple, list)) and columns and isinstance(rows, (tuple, list))
        if is_sound and all(isinstance(text, str) for text in (title, *columns)):
            names = tuple(printable(name, _LONGEST_HEAD) for name in columns[:_COLUMNS])
            found = [_row(row, len(columns), title)[:_COLUMNS] for row in rows[:_ROWS]]
            return PolicyTable(printable(title, _LONGEST_HEAD), names, found)
    raise PolicyError(
        f"tables() has {brief(each)}; return a list of PolicyTable(title, columns, rows): a text, texts, and tuples"
    )


def _row(row: object, width: int, title: str) -> tuple[str | float | int, ...]:
    if not isinstance(row, (tuple, list)) or len(row) != width:
        raise PolicyError(f"tables() has the row {brief(row)} in {brief(title)}; it takes {width} values, one a column")
    cells = [_cell(value) for value in row]
    for value, cell in zip(row, cells, strict=True):
        if cell is None:
            raise PolicyError(
                f"tables() has the value {brief(value)} in {brief(title)}; it takes texts and finite numbers"
            )
    return tuple(cell for cell in cells if cell is not None)


def _cell(value: object) -> str | float | int | None:
    """Return a text in one line or a plain Python number; ``None`` for anything else."""
    if isinstance(value, str):
        return printable(value, PARAGRAPH)
    number = _number(value)
    if number is None or not math.isfinite(number):
        return None
    return int(value) if isinstance(value, (int, np.integer)) else number


def explained(policy: Policy, pick: Pick) -> dict[str, Any]:
    """Return why a policy chose a pick, in the form of :meth:`Reason.record
    <scrapy_focus.core.reason.Reason.record>`.

    Raises
    ------
    PolicyError
        If it returned neither a reason nor a dict.
    """
    said = policy.explain(pick)
    if not isinstance(said, Mapping):
        raise PolicyError(
            f"explain() answered {brief(said)}; return a Reason, or a dict of names and values that JSON can hold"
        )
    return Reason.of(said, pick).record()


def _number_or_none(answer: object, question: str, expected: str) -> float | None:
    if answer is None:
        return None
    number = _number(answer)
    if number is None or math.isnan(number):
        raise PolicyError(f"{question} answered {brief(answer)}; return {expected}, or None")
    return number


def _number(value: object) -> float | None:
    """Return a number as a plain Python one; ``None`` for anything else."""
    try:
        return float(value) if isinstance(value, (int, float, np.integer, np.floating)) else None
    except OverflowError:
        return None


def states_of(policy: Policy) -> frozenset[State]:
    """Return the states of known URLs whose links a policy wants.

    Raises
    ------
    PolicyError
        If they are not a set of states.
    """
    wanted = policy.wants_known
    if not isinstance(wanted, (set, frozenset)) or not all(isinstance(state, State) for state in wanted):
        raise PolicyError(
            f"{type(policy).__qualname__}.wants_known is {wanted!r}; it is a set of states, such as "
            "frozenset({State.WAITING}), and empty where place() is to be given new links only"
        )
    return frozenset(wanted)


def check_pieces(policy: object, goal: object, stop: object) -> None:
    """Raise :class:`~scrapy_focus.core.errors.ConfigError` for an invalid policy, goal or stop rule."""
    if not isinstance(policy, Policy):
        raise ConfigError(f"the policy is {policy!r}; it takes an object of a subclass of scrapy_focus.Policy")
    try:
        inspect.signature(policy.open).bind(None, None, None)
    except TypeError as error:
        name = type(policy).__qualname__
        raise ConfigError(f"{name}.open() does not fit ({error}); write open(self, frontier, rng, mission)") from error
    if goal is not None and not callable(goal):
        raise ConfigError(f"the goal is {goal!r}; it takes a callable from an Outcome to a number")
    if stop is not None and (missing := missing_of_stop(stop)):
        raise ConfigError(f"the stop rule is {stop!r}, which lacks {', '.join(missing)}; see scrapy_focus.Plateau")


def missing_of_stop(rule: object) -> list[str]:
    """Return the attributes of a stop rule that an object lacks."""
    if isinstance(rule, type):
        return ["an object: this is a class"]
    missing = [] if isinstance(getattr(rule, "reason", None), str) else ["reason"]
    missing += [f"{name}()" for name in ("reached", "state", "restore") if not callable(getattr(rule, name, None))]
    if not missing:
        try:
            inspect.signature(rule.reached).bind(0, 0.0, None)  # type: ignore[attr-defined]
        except TypeError:
            missing.append("reached(requests, targets, cost=None)")
    return missing


def made(make: MakeFrontier, keeps: Keeps) -> Frontier:
    """Create the frontier that a policy needs.

    Raises
    ------
    ConfigError
        If that fails.
    """
    try:
        return make(keeps)
    except FocusError:
        raise
    except Exception as error:
        name = getattr(make, "__qualname__", repr(make))
        raise ConfigError(
            f"the frontier {name} cannot be made: {error}; it is called with what the policy keeps, here {keeps!r}"
        ) from error


def check_order(frontier: Frontier, keeps: Keeps, policy: Policy) -> None:
    """Raise :class:`~scrapy_focus.core.errors.ConfigError` if a frontier lacks the order that a policy needs."""
    order: type = Ranked if isinstance(keeps, Ranks) else Drawn
    names = [name for base in (order, FrontierProtocol) for name in vars(base) if not name.startswith("_")]
    missing = [name for name in names if not hasattr(frontier, name)]
    if missing:
        raise ConfigError(
            f"{type(policy).__qualname__} keeps {keeps!r}, and {type(frontier).__qualname__} has no "
            f"{', '.join(missing)}: give it a frontier of the order {order.__name__}"
        )


def placed_again(policy: FetchesAgain, outcome: Outcome) -> Placement | None:
    """Return where a policy queues the page of an outcome for another visit.

    Raises
    ------
    PolicyError
        If that is neither ``None`` nor a placement.
    """
    place = policy.again(outcome)
    if place is None or place is NOT_NOW:
        return None
    if not isinstance(place, Placement):
        raise PolicyError(f"again() answered {brief(place)}; return a Placement, or None")
    placed([place], [outcome.pick], "again")
    return place


def placed_to_render(policy: Renders, outcome: Outcome) -> Placement | None:
    """Return where a policy queues the page of an outcome to be rendered.

    Raises
    ------
    PolicyError
        If that is neither ``None`` nor a placement.
    """
    place = policy.render(outcome)
    if place is None or place is NOT_NOW:
        return None
    if not isinstance(place, Placement):
        raise PolicyError(f"render() answered {brief(place)}; return a Placement, or None")
    placed([place], [outcome.pick], "render")
    return place._replace(method="RENDER")


def placed(
    placements: Sequence[Placement | None], links: Sequence[Link] | Sequence[Pick], verb: str = "place"
) -> Sequence[Placement | None]:
    """Return the placements that a policy gave for some links; ``verb`` is the method called.

    Raises
    ------
    PolicyError
        If there is not one for each, or one of them is not a placement.
    """
    if len(placements) != len(links):
        raise PolicyError(
            f"place() gave {len(placements)} placements for {len(links)} links; return one Placement or None per link"
        )
    for place in placements:
        if place is None or place is NOT_NOW:
            continue
        well = isinstance(place.arm, (int, np.integer)) and isinstance(
            place.rank, (int, float, np.integer, np.floating)
        )
        if (
            not well
            or place.method not in METHODS
            or not 0 <= place.arm < _MOST_ARMS
            or place.rank != place.rank
            or (isinstance(place.rank, int) and abs(place.rank) > _LARGEST)
            or (place.after != 0.0 and not _is_time(place.after))
        ):
            raise PolicyError(
                f"{verb}() gave {brief(place)}; an arm is an integer from 0, without gaps, below {_MOST_ARMS:,}, a "
                "rank a number that is not NaN, a method GET, HEAD or RENDER, after a number of seconds since the epoch"
            )
    return placements


def sleeping_of(frontier: Frontier) -> Sleeping | None:
    """Return a frontier whose links may sleep; ``None`` if it does not support that."""
    knows = all(hasattr(frontier, name) for name in ("asleep", "next_due", "wake"))
    return cast("Sleeping", frontier) if knows else None


def check_awake(placements: Sequence[Placement | None], frontier: Frontier) -> None:
    """Raise :class:`~scrapy_focus.core.errors.PolicyError` if a link is to sleep in a frontier that does not support
    it.
    """
    if any(place is not None and place.after > 0 for place in placements):
        raise PolicyError(
            f"Placement.after lets a link sleep, and {type(frontier).__qualname__} has no asleep, next_due and wake(): "
            "take another frontier, or give it these (scrapy_focus.Sleeping)"
        )


def _is_time(after: object) -> bool:
    number = _number(after)
    return number is not None and math.isfinite(number)


def selected(pick: Pick | None, frontier: Frontier, known: Collection[int]) -> Pick | None:
    """Return the pick that a policy selected; ``known`` are the ids of the picks that were already in flight.

    Raises
    ------
    PolicyError
        If it was not taken out of the frontier just now, or others were, too.
    """
    if pick is not None and (not isinstance(pick, Pick) or pick.id not in frontier.flying or pick.id in known):
        raise PolicyError(
            f"select() returned {brief(pick)}; return what frontier.pop() or take() gave just now, or None"
        )
    if len(frontier.flying) > len(known) + (pick is not None):
        raise PolicyError(f"select() returned {brief(pick)}, and took out others; release what is not to be fetched")
    if pick is not None and pick.chance is not None:
        return pick._replace(chance=float(pick.chance))  # NumPy's numbers cannot be stored
    return pick
