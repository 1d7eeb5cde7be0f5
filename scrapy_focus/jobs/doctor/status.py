"""Reads the state of a crawl from its folder without changing it, during a crawl or after a kill.

The last checkpoint is read as one snapshot of its SQLite file, and later events from the journals. A running crawl may
commit a checkpoint in between and remove journals that were about to be read; then everything is read again.

A folder may come from somebody else, so none of its code is run: the policy is not read, and its best arms are among
the plain values of the checkpoint.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing, suppress
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from scrapy_focus.core.contract import tables_in
from scrapy_focus.core.errors import PolicyError, ResumeError, StorageError
from scrapy_focus.core.poor import LAST
from scrapy_focus.core.types import State
from scrapy_focus.frontiers.sqlite.database import storage_error, verify
from scrapy_focus.jobs.doctor.folder import folder_of, open_readonly, user_of
from scrapy_focus.jobs.doctor.tail import read_tail
from scrapy_focus.jobs.job import FRONTIER
from scrapy_focus.jobs.journal import journals_in
from scrapy_focus.jobs.snapshots import versions

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from scrapy_focus.jobs.doctor.tail import Tail

_LAST = datetime(9999, 1, 1, tzinfo=UTC).timestamp()
_NO_ROW = (1 << 63) - 1  # no link has this number
_ATTEMPTS = 5  # to read between two checkpoints of a running crawl
_SENSELESS = (LookupError, ValueError, TypeError, AttributeError, ArithmeticError, RecursionError)
_LIMITS: dict[str, type[float]] = {"requests": int, "bytes": int, "seconds": float}
_LONGEST = 100  # characters of a rate
_LONGEST_SAID = 1000  # of a sentence from the goal
_MISSION = "mission: "  # prefix of its fields in a description


def read_status(jobdir: Path) -> dict[str, Any]:
    """Return the content of a JOBDIR as plain values for JSON; linear in the links, 15 s at ten million.

    Raises
    ------
    ResumeError
        If it has no crawl that this version can read.
    StorageError
        If it is too damaged to say even this.
    """
    folder = folder_of(jobdir)
    user = user_of(folder)
    links, notes, tail = _read(folder, busy=bool(user))
    try:
        crawl = json.loads(notes["crawl"])
        said = _say_crawl(crawl, tail) | _best_arms(crawl) | _tables(crawl) | _times(folder, notes)
    except _SENSELESS as error:
        raise StorageError(
            f"the state of the crawl in {folder / FRONTIER} cannot be read ({error!r}); see focus check"
        ) from error
    links["in_flight"] = len(tail.flying)
    links["found_since"] = tail.found
    links["picked_since"] = tail.events["pick"]
    damage = "" if user else tail.why
    return {
        "jobdir": str(jobdir),
        "folder": str(folder),
        "state": _state(user, tail),
        "process": int(user) if user.isdecimal() else None,
        "damage": damage,
        **said,
        "links": links,
        "events_since_checkpoint": tail.events.total(),
        "events": dict(sorted(tail.events.items())),
        "files": {name: found.st_size for name, found in _files(folder).items()},
    }


def _state(user: str, tail: Tail) -> str:
    if user:
        return "in use"
    if tail.why:
        return "damaged"
    if tail.events or tail.flying or tail.lost_bytes:
        return "killed"  # a crawl that stops writes a checkpoint, and nothing after it
    return "stopped"


def _read(folder: Path, *, busy: bool) -> tuple[dict[str, Any], dict[str, bytes], Tail]:
    """Read the last checkpoint, and the events since."""
    path = folder / FRONTIER
    verify(path)
    for _ in range(_ATTEMPTS):
        try:
            with closing(open_readonly(path)) as database:
                database.execute("BEGIN")
                notes = dict(database.execute("SELECT name, value FROM notes"))
                flying = [pick_id for (pick_id,) in database.execute("SELECT id FROM flying")]
                if "journal" not in notes:
                    raise ResumeError(f"nothing is stored in {folder} yet: it has no checkpoint")
                tail = read_tail(folder, int(notes["journal"]), flying)
                if busy and not tail.last:
                    continue  # another checkpoint was committed, and the journal of this one was removed
                return _count(database), notes, tail
        except (StorageError, OSError) as error:
            if not busy or not isinstance(error.__cause__ or error, FileNotFoundError):  # a journal that was removed
                raise
        except (sqlite3.Error, MemoryError, *_SENSELESS) as error:
            raise storage_error(path, error) from error
    raise StorageError(f"{folder} changes faster than it can be read; try again")


def _count(database: sqlite3.Connection) -> dict[str, Any]:
    """Count the links of a checkpoint by state, and find when the first sleeping one is due."""
    counters = dict(database.execute("SELECT name, value FROM counters"))
    woke = float(counters.get("woke", 0))
    waits = "FROM links WHERE row NOT IN (SELECT row FROM flying) AND row < ?"
    until = (
        int(counters.get("anew", 0)) or _NO_ROW
    )  # while links are placed again, those already placed are stored twice
    waiting, arms = database.execute(
        f"SELECT count(*), count(DISTINCT arm) {waits} AND after <= ?",
        (until, woke),
    ).fetchone()
    asleep, due = database.execute(
        f"SELECT count(*), min(after) {waits} AND after > ?",
        (until, woke),
    ).fetchone()
    keys = [np.fromiter(chain.from_iterable(database.execute("SELECT key FROM links")), np.int64)]
    states = [np.full(len(keys[0]), State.WAITING)]
    for state, blob in database.execute("SELECT state, keys FROM seen ORDER BY number DESC"):
        keys.append(np.frombuffer(blob, np.int64))
        states.append(np.full(len(keys[-1]), state))
    _, first = np.unique(np.concatenate(keys), return_index=True)  # queued or in flight first, then the latest state
    last = np.concatenate(states)[first]
    counts = {state: int((last == state).sum()) for state in (State.FETCHED, State.PROBED, State.GIVEN_UP)}
    return {
        "waiting": waiting,
        "arms": arms,
        "asleep": asleep,
        "next_due": None if due is None or due >= LAST else _iso(float(due)),
        "fetched": counts[State.FETCHED],
        "probed": counts[State.PROBED],
        "given_up": counts[State.GIVEN_UP],
    }


def _say_crawl(crawl: dict[str, Any], tail: Tail) -> dict[str, Any]:
    """Return what the notes and the journals say about a crawl."""
    described = {str(name): str(text) for name, text in dict(crawl["description"] or {}).items()}
    spider = described.pop("spider", "")
    mission = _take_mission(described)
    used, limits, left = _budget(crawl, tail)
    counts = {str(name): int(n) for name, n in {**crawl["counts"], **tail.counts}.items()}
    return {
        "spider": spider,
        "policy": described.pop("policy", "unknown"),
        "goal": described.pop("goal", "unknown"),
        "mission": mission,
        "parameters": described,
        "used": used,
        "limits": limits,
        "rate": str(crawl.get("rate") or "")[:_LONGEST],
        "said": [str(each)[:_LONGEST_SAID] for each in crawl.get("said") or ()],
        "alarm": str(crawl.get("alarm") or "")[:_LONGEST_SAID],
        "left": left,
        "outcomes": counts.get("outcomes", 0),
        "rewards": float(crawl["rewards"]) + float(tail.rewards),
        "counts": dict(sorted(counts.items())),
        "versions": _versions(crawl),
    }


def _take_mission(described: dict[str, str]) -> dict[str, str]:
    """Remove the fields of the mission from a description, and return them."""
    names = [name for name in described if name.startswith(_MISSION)]
    return {name.removeprefix(_MISSION): described.pop(name) for name in names}


def _budget(
    crawl: dict[str, Any], tail: Tail
) -> tuple[dict[str, float], dict[str, float | None], dict[str, float | None]]:
    """Return for each budget the amount used, the limit (``None``: no limit), and the rest."""
    given = crawl.get("limits") or {}
    so_far = {**crawl["used"], **tail.used}
    used: dict[str, float] = {}
    limits: dict[str, float | None] = {}
    left: dict[str, float | None] = {}
    for name, kind in _LIMITS.items():
        used[name] = kind(so_far[name])
        limits[name] = left[name] = None
        if given.get(name) is not None:
            limit = limits[name] = kind(given[name])
            left[name] = max(0, limit - used[name])
    return used, limits, left


def _best_arms(crawl: dict[str, Any]) -> dict[str, Any]:
    """Return the arms that earned most until the last checkpoint, or why they are unknown."""
    best = crawl["best_arms"]
    if isinstance(best, str):
        return {"best_arms": [], "best_arms_error": best}
    arms = [{"arm": str(name), "earned": float(earned), "pulls": int(pulls)} for name, earned, pulls in best]
    return {"best_arms": arms, "best_arms_error": ""}


def _tables(crawl: dict[str, Any]) -> dict[str, Any]:
    """Return the tables of the policy at the last checkpoint, or why they are unknown."""
    tables = crawl.get("tables", [])
    if isinstance(tables, str):
        return {"tables": [], "tables_error": tables}
    try:
        shown = [
            {"title": title, "columns": [*columns], "rows": [[*row] for row in rows]}
            for title, columns, rows in tables_in(tables)
        ]
        return {"tables": shown, "tables_error": ""}
    except PolicyError as error:
        return {"tables": [], "tables_error": f"the tables of the policy cannot be read: {error}"}


def _versions(crawl: dict[str, Any]) -> dict[str, dict[str, str]]:
    then = {str(name): str(version) for name, version in dict(crawl["versions"]).items()}
    return {"then": then, "now": versions()}


def _times(folder: Path, notes: dict[str, bytes]) -> dict[str, Any]:
    """Return when a job was created and written, as ISO times, and how many seconds ago."""
    now = datetime.now(UTC)
    made = notes.get("made")
    written = max(found.st_mtime for found in _files(folder).values())
    times = {
        "made": datetime.fromtimestamp(float(made), UTC) if made else None,
        "written": datetime.fromtimestamp(written, UTC),
    }
    said: dict[str, Any] = {name: time and time.isoformat(timespec="seconds") for name, time in times.items()}
    return said | {
        f"{name}_seconds_ago": time and max(0.0, (now - time).total_seconds()) for name, time in times.items()
    }


def _iso(at: float) -> str:
    """Return a time in ISO format; for a time after the year 9999, which ISO does not have, the year."""
    return datetime.fromtimestamp(min(max(at, 0.0), _LAST), UTC).isoformat(timespec="seconds")


def _files(folder: Path) -> dict[str, os.stat_result]:
    """Return the files of the crawl by name; a journal may be removed meanwhile."""
    found = {}
    for name in (
        FRONTIER,
        f"{FRONTIER}-wal",
        f"{FRONTIER}-index",
        *(f"journal.{number}" for number in journals_in(folder)),
    ):
        with suppress(FileNotFoundError):
            found[name] = (folder / name).stat()
    return found
