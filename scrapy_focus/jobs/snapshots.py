"""Stores a snapshot of a crawl as the notes of a checkpoint: pickled policy and goal, and everything else as JSON.

A resume needs all of them. A mere inspection reads the JSON, which includes the best arms and tables of the policy, and
so runs nothing that somebody may have put in place of the policy.

The topic of the mission is not stored with the policy, as the resuming crawl provides it: what a topic learned belongs
to the goal, and a copy would not learn.
"""

from __future__ import annotations

import json
import platform
from dataclasses import fields
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np

from scrapy_focus.core.abilities import ShowsArms, ShowsTables
from scrapy_focus.core.contract import tables_of
from scrapy_focus.core.errors import PolicyError, ResumeError, StorageError
from scrapy_focus.core.policy import Policy
from scrapy_focus.core.snapshot import Snapshot
from scrapy_focus.jobs.description import differences
from scrapy_focus.jobs.pickles import Classes, RefusedName

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy_focus.core.abilities import PolicyTable
    from scrapy_focus.core.mission import Topic

POLICY, GOAL, STATE = "policy", "goal", "crawl"  # names of the notes
_NEWER: Mapping[str, Any] = {"poor": {}}  # fields missing in checkpoints of earlier versions
_APART = frozenset({"policy", "goal"})  # fields of a snapshot with a note of their own
_LIBRARIES = ("numpy", "scikit-learn", "scipy")
_BEST = 10  # arms
_ROWS = 20  # of a table
_LONGEST = 1000  # characters of an arm's name


def notes_of(
    snapshot: Snapshot, description: Mapping[str, Any] | None, classes: Classes, topic: Topic | None = None
) -> dict[str, bytes]:
    """Return the notes of a snapshot, with the values that must not change until a resume.

    ``classes`` is as in :func:`classes_of`, ``topic`` that of the mission.

    Raises
    ------
    PolicyError
        If policy or goal cannot be pickled, or the pickle could not be read again.
    """
    try:
        policy = classes_of(type(snapshot.policy), classes).dumps(snapshot.policy, topic)
    except RefusedName as error:
        name = type(snapshot.policy).__qualname__
        raise PolicyError(f"the policy {name} cannot be stored, which a JOBDIR needs: {error}") from error
    except Exception as error:
        name = type(snapshot.policy).__qualname__
        raise PolicyError(
            f"the policy {name} cannot be stored, which a JOBDIR needs: {error}; remove what cannot be pickled in "
            f"{name}.__getstate__, and create it again in attach()"
        ) from error
    try:
        goal = {} if snapshot.goal is None else {GOAL: classes.dumps(snapshot.goal)}
    except Exception as error:
        raise PolicyError(
            f"what the goal learned cannot be stored, which a JOBDIR needs: {error}; return plain values and arrays of "
            "numbers from its state()"
        ) from error
    state = {field.name: getattr(snapshot, field.name) for field in fields(snapshot) if field.name not in _APART}
    state |= {"description": description, "versions": versions()}
    state |= {"best_arms": _best_arms(snapshot.policy), "tables": _tables(snapshot.policy)}
    try:
        return {POLICY: policy, **goal, STATE: json.dumps(state, default=_plain).encode()}
    except (TypeError, ValueError) as error:
        raise PolicyError(
            f"the state of the crawl cannot be stored, which a JOBDIR needs: {error}; your stop rule's state() "
            "has to return a dict that JSON can represent"
        ) from error


def state_of(notes: Mapping[str, bytes], where: object) -> dict[str, Any]:
    """Return the content of a checkpoint's notes besides the policy, with ``description`` and ``versions``.

    Raises
    ------
    StorageError
        If it cannot be read.
    """
    try:
        state = {**_NEWER, **json.loads(notes[STATE])}
        missing = {field.name for field in fields(Snapshot)} - _APART - state.keys()
        if missing or "description" not in state:
            raise ValueError(f"it lacks {', '.join(sorted(missing)) or 'its description'}")
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise StorageError(f"the state of the crawl in {where} cannot be read ({error!r}); see focus check") from error
    return dict(state)


def snapshot_of(state: Mapping[str, Any], policy: Policy, goal: Any = None) -> Snapshot:
    """Return the snapshot of a state, with a policy and the goal's learned state."""
    values = {field.name: state[field.name] for field in fields(Snapshot) if field.name not in _APART}
    values["found_at"] = [(requests, rewards) for requests, rewards in values["found_at"]]
    values["owners"] = {int(pick_id): owner for pick_id, owner in values["owners"].items()}
    values["chances"] = {int(pick_id): chance for pick_id, chance in values["chances"].items()}
    values["log"] = None if values["log"] is None else tuple(values["log"])
    return Snapshot(policy=policy, goal=goal, **values)


def policy_of(
    notes: Mapping[str, bytes], state: Mapping[str, Any], like: Policy, where: object, classes: Classes,
    topic: Topic | None = None,
) -> Policy:  # fmt: skip
    """Return the policy of a checkpoint, with its learned state.

    ``classes`` is as in :func:`classes_of`, ``topic`` that of the mission.

    Raises
    ------
    ResumeError
        If it cannot be read, or is of another class than ``like``.
    """
    try:
        policy: Policy = classes_of(type(like), classes).loads(notes[POLICY], topic)
        if type(policy) is not type(like):
            raise TypeError(f"it is a {type(policy).__qualname__}, not a {type(like).__qualname__}")
    except RefusedName as error:
        raise ResumeError(f"the policy in {where} cannot be read: {error}") from error
    except Exception as error:
        changed = differences(state.get("versions", {}), versions())
        raise ResumeError(
            f"the policy in {where} cannot be restored: {error!r}{f' ({changed})' if changed else ''}; "
            "install these versions again, or run focus check --fix --anew to keep the links and learn "
            "again"
        ) from error
    return policy


def learned_by_goal(notes: Mapping[str, bytes], where: object, classes: Classes) -> Any:
    """Return the learned state of the goal at a checkpoint, ``None`` for nothing.

    Raises
    ------
    ResumeError
        If it cannot be read.
    """
    if GOAL not in notes:
        return None
    try:
        return classes.loads(notes[GOAL])
    except Exception as error:
        raise ResumeError(
            f"what the goal in {where} learned cannot be read: {error!r}; run focus check --fix --anew to keep "
            "the links and learn again"
        ) from error


def classes_of(policy: type[Policy], classes: Classes) -> Classes:
    """Return the names allowed in pickles of a policy, besides ``classes``.

    These are the classes of the packages of the policy and its bases, and the names in ``policy.stores``.
    """
    homes = {home_of(cls) for cls in policy.__mro__ if issubclass(cls, Policy)}
    return classes.with_more(homes - {"scrapy_focus"}, policy.stores)


def home_of(cls: type) -> str:
    """Return the top-level package of a class."""
    return cls.__module__.partition(".")[0]


def _best_arms(policy: Policy) -> list[tuple[str, float, int]] | str:
    """Return the arms that earned most, or why they are unknown: an inspection must not end the crawl."""
    if not isinstance(policy, ShowsArms):
        return []
    try:
        return [
            (str(name)[:_LONGEST], float(earned), int(pulls)) for name, earned, pulls in policy.best_arms(_BEST)[:_BEST]
        ]
    except Exception as error:
        return f"{type(policy).__qualname__}.best_arms failed: {str(error) or type(error).__name__}"[:_LONGEST]


def _tables(policy: Policy) -> list[PolicyTable] | str:
    """Return the first rows of the policy's tables, or why there are none."""
    if not isinstance(policy, ShowsTables):
        return []
    try:
        return [table._replace(rows=table.rows[:_ROWS]) for table in tables_of(policy)]
    except Exception as error:
        return f"{type(policy).__qualname__}.tables failed: {str(error) or type(error).__name__}"[:_LONGEST]


def _plain(value: Any) -> Any:
    """Return a number of NumPy as a Python number."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} is a {type(value).__qualname__}")


def versions() -> dict[str, str]:
    """Return the versions of the libraries in a pickled policy."""
    found = {"python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
