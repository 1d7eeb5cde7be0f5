"""What is wrong with what a checkpoint holds besides links: the numbers of the crawl, and the policy with what it learned."""

from __future__ import annotations

import json
import pickle
from importlib import import_module
from typing import TYPE_CHECKING, Any

from scrapy_focus.core.policy import Policy, import_path
from scrapy_focus.jobs.checksums import SUMS, damaged, summed
from scrapy_focus.jobs.description import differences
from scrapy_focus.jobs.doctor.tables import Finding
from scrapy_focus.jobs.journal import journals_in
from scrapy_focus.jobs.recovery import versions

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator
    from pathlib import Path

# What the JSON of a crawl holds, how it looks, and what it becomes where it does not. No description: whichever comes is
# the right one.
_PARTS: dict[str, tuple[Callable[[Any], bool], Any]] = {
    "description": (lambda x: x is None or _has(x, policy=str, goal=str), None),
    "versions": (lambda x: _all(x, str), {}),
    "budget": (lambda x: _has(x, requests=int, bytes=int, seconds=float), {"requests": 0, "bytes": 0, "seconds": 0.0}),
    "plateau": (
        lambda x: (
            x is None
            or _has(x, average=(float, type(None)), below=int, requests=int, targets=float)
            or _has(x, since=(int, type(None)), targets=float)
        ),
        None,
    ),
    "counts": (lambda x: _all(x, int), {}),
    "fallbacks": (lambda x: _is(x, int), 0),
    "rewards": (lambda x: _is(x, float), 0.0),
    "found_at": (lambda x: isinstance(x, list) and all(_is_pair(pair, int, float) for pair in x), []),
    "recovered": (lambda x: isinstance(x, list) and all(_is(key, int) for key in x), []),
    "log": (lambda x: x is None or _is_pair(x, str, int), None),
}


def check_notes(database: sqlite3.Connection, folder: Path) -> Iterator[Finding]:
    """Yield what is wrong with the notes; whatever is put right keeps the links."""
    notes = _read(database)
    numbers = journals_in(folder)
    if not notes and not database.execute("SELECT 1 FROM links UNION SELECT 1 FROM seen").fetchone():
        if any((folder / f"journal.{number}").stat().st_size for number in numbers):
            yield Finding(
                what=f"the last checkpoint is lost{_there(numbers)}, and nothing else; put back frontier.sqlite-wal if it was "
                "removed, or begin anew with another JOBDIR"
            )
        else:
            yield Finding(what="it has no checkpoint yet: the crawl will begin anew", harmless=True)
        return
    changed = damaged(notes)
    try:
        if "journal" in changed:
            raise ValueError("it is not what was stored")
        int(notes["journal"])
    except (KeyError, ValueError, TypeError):
        first = min(numbers, default=1)
        yield Finding(
            what=f"the last checkpoint is lost, or the number of its journal{_there(numbers)}",
            cure=lambda db: _note(
                db, "journal", b"%d" % first, f"took journal.{first} for the first one to go on with"
            ),
        )
    state, wrong = _state(notes.get("crawl"), trusted="crawl" not in changed)
    if wrong:
        yield Finding(
            what=f"the numbers of the crawl are damaged: {', '.join(wrong)} cannot be relied on",
            cure=lambda db: _note(db, "crawl", json.dumps(state).encode(), _said_anew(wrong)),
        )
    yield from _policy(database, notes.get("policy"), state, trusted="policy" not in changed)
    if rest := set(changed) - {"crawl", "journal", "policy"}:
        yield Finding(
            what=f"the checksum of the note {' and '.join(sorted(rest))} is not right",
            cure=lambda db: f"took the note {' and '.join(sorted(rest))} as it is",
        )


def _read(database: sqlite3.Connection) -> dict[str, Any]:
    names = "CAST(name AS BLOB)", "CASE typeof(value) WHEN 'text' THEN NULL ELSE value END"
    rows = database.execute(f"SELECT {', '.join(names)} FROM notes")  # noqa: S608
    return {name.decode(errors="replace"): value for name, value in rows}


def sum_anew(database: sqlite3.Connection) -> None:
    """Bring the checksums in line with the notes, after a repair."""
    notes = {name: value for name, value in _read(database).items() if isinstance(value, bytes)}
    if notes:
        database.execute("INSERT OR REPLACE INTO notes VALUES (?, ?)", (SUMS, summed(notes)[SUMS]))


def _there(numbers: list[int]) -> str:
    return (
        f": there {'is' if len(numbers) == 1 else 'are'} {', '.join(f'journal.{number}' for number in numbers)}"
        if numbers
        else ""
    )


def _state(note: Any, *, trusted: bool) -> tuple[dict[str, Any], list[str]]:
    """Return the numbers of a crawl with those that cannot be read set anew, and the names of these.

    Where a byte is wrong somewhere, the description is not compared with anything any more: a crawl could never go on.
    """
    try:
        read = json.loads(note)
    except (ValueError, TypeError):
        read = None
    state = read if isinstance(read, dict) else {}
    wrong = [name for name, (is_well, _) in _PARTS.items() if name not in state or not is_well(state[name])]
    if not trusted and "description" not in wrong:
        wrong.insert(0, "description")
    return {**state, **{name: _PARTS[name][1] for name in wrong}}, wrong


def _said_anew(wrong: list[str]) -> str:
    said = f"set {', '.join(wrong)} of the crawl to nothing, and took its other numbers as they are"
    if "description" in wrong:
        said += "; start it with the settings that it had, as they will not be compared"
    if "budget" in wrong:
        said += "; its budget begins anew"
    return said


def _policy(database: sqlite3.Connection, blob: Any, state: dict[str, Any], *, trusted: bool) -> Iterator[Finding]:
    links = "SELECT 1 FROM links WHERE arm != 0 OR origin != -1 OR memo IS NOT NULL OR method != 'GET' LIMIT 1"
    if blob is None:
        if database.execute(links).fetchone():
            yield Finding(what="there is no policy, and links wait in its arms", cure=lambda db: _begin_anew(db, state))
        else:
            yield Finding(
                what="there is no policy: the next run places all links anew and begins to learn", harmless=True
            )
        return
    path = (state["description"] or {}).get("policy")
    try:
        if not trusted:
            raise ValueError("it is not what was stored")
        policy = pickle.loads(blob)  # noqa: S301 (the user's own job directory)
        cls = type(policy)
        if not isinstance(policy, Policy) or (path and path != import_path(cls)):
            raise TypeError(f"it is a {import_path(cls)}")
    except Exception as error:
        what = f"the policy cannot be read: {type(error).__name__}: {error}"
        if isinstance(error, (ImportError, AttributeError)) and not (path and _is_there(path)):
            yield Finding(
                what=f"{what}; {path or 'its class'} is not there: run this where the crawl runs, in the folder of its project"
            )
            return
        if changed := differences(state["versions"], versions()):
            what += f" ({changed}; it may be readable with the versions that wrote it)"
        yield Finding(what=what, cure=lambda db: _begin_anew(db, state))


def _begin_anew(database: sqlite3.Connection, state: dict[str, Any]) -> str:
    """Drop the policy, and what it noted of links: its arms mean nothing to another one."""
    database.execute("DELETE FROM notes WHERE name = 'policy'")
    n = database.execute("UPDATE links SET arm = 0, origin = -1, memo = NULL, method = 'GET', rank = -row").rowcount
    database.execute("UPDATE counters SET value = ? WHERE name = 'arms'", (int(n > 0),))
    learned = state["counts"].get("outcomes", 0)
    return (
        f"dropped the policy, which cannot be read: what it learned from {learned:,} outcomes is lost, and where {n:,} links "
        "stood on their pages; all of them wait, and the next run places them anew as if they were given by hand"
    )


def _note(database: sqlite3.Connection, name: str, value: bytes, said: str) -> str:
    database.execute("INSERT OR REPLACE INTO notes VALUES (?, ?)", (name, value))
    return said


def _is_there(path: str) -> bool:
    """Whether a class can be imported."""
    module, _, name = path.rpartition(".")
    try:
        return hasattr(import_module(module), name)
    except Exception:  # whatever the module does
        return False


def _is(value: Any, kind: Any) -> bool:
    kinds = kind if isinstance(kind, tuple) else (kind,)
    return isinstance(value, (*kinds, int) if float in kinds else kinds) and not isinstance(value, bool)


def _has(value: Any, **kinds: Any) -> bool:
    return isinstance(value, dict) and all(_is(value.get(name), kind) for name, kind in kinds.items())


def _all(value: Any, kind: type) -> bool:
    return isinstance(value, dict) and all(_is(each, kind) for each in value.values())


def _is_pair(value: Any, *kinds: type) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_is, value, kinds))
