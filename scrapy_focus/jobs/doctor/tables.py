"""What is wrong in the tables of a stored frontier, and how each of it is made well without losing a link.

SQLite's own check knows nothing of what a column may hold. Whatever would keep a crawl from going on, or let it take one
link for another, is found here, each with a cure: statements for a transaction that the caller commits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np

from scrapy_focus.core.types import State

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator

_MOST_ARMS = 1_000_000
_INT = 1 << 31  # numbers that are columns of 32 bits in memory
_AT_ONCE = 50_000  # rows

# What a link can do without, what must hold of it, and what it becomes otherwise.
_SPARE = {
    "depth": (f"typeof(depth) = 'integer' AND depth BETWEEN 0 AND {_INT - 1}", "0"),
    "origin": (f"typeof(origin) = 'integer' AND origin BETWEEN -1 AND {_MOST_ARMS - 1}", "-1"),
    "arm": (f"typeof(arm) = 'integer' AND arm BETWEEN 0 AND {_MOST_ARMS - 1}", "0"),
    "rank": ("typeof(rank) = 'real'", "0.0"),
    "method": ("ifnull(method, '') IN ('GET', 'HEAD')", "'GET'"),
    "memo": (
        "memo IS NULL OR typeof(memo) = 'blob' AND CASE (SELECT count(*) FROM counters WHERE name = 'width') "
        "WHEN 0 THEN length(memo) % 4 = 0 ELSE length(memo) = (SELECT value FROM counters WHERE name = 'width') END",
        "NULL",
    ),
}
_WIDEST = (1 << 16) - 1  # vector
# What it cannot do without: from these its request is made again.
_NEEDED = f"typeof(key) = 'integer' AND typeof(url) = 'text' AND url != '' AND typeof(payload) = 'blob' AND row BETWEEN 1 AND {_INT - 1}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that is not as it should be."""

    what: str  # a clause with numbers
    cure: Callable[[sqlite3.Connection], str] | None = None  # says what it did; None: there is none here
    harmless: bool = False  # a crawl goes on as if it was not there


def check_tables(database: sqlite3.Connection) -> Iterator[Finding]:
    """Yield what is wrong with links, hosts, picks, keys and counters; linear, half a minute at ten million links.

    What is yielded first may be the reason for what follows: cure it, and check again.
    """
    for table in ("notes", "counters"):
        yield from _names(database, table)
    yield from _width(database)
    yield from _hosts(database)
    yield from _links(database)
    yield from _duplicates(database)
    yield from _flying(database)
    yield from _seen(database)
    yield from _counters(database)


def _names(database: sqlite3.Connection, table: str) -> Iterator[Finding]:
    bad = _undecodable(database, "CAST(name AS BLOB)", "name", table)
    if bad:
        yield Finding(
            what=f"{_n(len(bad), 'name')} in the {table} cannot be read",
            cure=lambda db: (
                f"removed {_n(_delete(db, table, 'CAST(name AS BLOB)', bad), 'name')} that cannot be read from the {table}"
            ),
        )


def _links(database: sqlite3.Connection) -> Iterator[Finding]:
    useless = [row for (row,) in database.execute(f"SELECT row FROM links WHERE NOT ({_NEEDED})")]  # noqa: S608
    useless += _undecodable(database, "row", "url", "links")
    if useless:
        yield Finding(
            what=f"{_links_are(len(useless))} without a readable URL, key or request",
            cure=lambda db: (
                f"removed {_n(len(useless), 'link')} without a readable URL, key or request: "
                f"{_delete(db, 'links', 'row', useless)} lost"
            ),
        )
    for name, (well, _) in _SPARE.items():
        n = _one(database, f"SELECT count(*) FROM links WHERE NOT ({well})")  # noqa: S608
        if n:
            yield Finding(what=f"{_links_are(n)} with an impossible {name}", cure=partial(_reset, n=n, name=name))
    n = _one(database, "SELECT count(*) FROM links WHERE host NOT IN (SELECT host FROM hosts)")
    if n:
        yield Finding(what=f"{_links_are(n)} on a host that is not there", cure=lambda db: _new_hosts(db, n))


def _reset(database: sqlite3.Connection, *, n: int, name: str) -> str:
    well, default = _SPARE[name]
    database.execute(f"UPDATE links SET {name} = {default} WHERE NOT ({well})")  # noqa: S608
    return f"kept {_n(n, 'link')} with an impossible {name}, which is {default} from now on"


def _new_hosts(database: sqlite3.Connection, n: int) -> str:
    """Give the links on hosts that are not there the host that their URL has."""
    names = {name: host for host, name in database.execute("SELECT host, name FROM hosts")}
    rows = database.execute("SELECT row, url FROM links WHERE host NOT IN (SELECT host FROM hosts)").fetchall()
    next_ = 1 + _one(database, "SELECT ifnull(max(host), -1) FROM hosts")
    for row, url in rows:
        name = _host_of(url)
        if name not in names:
            names[name] = next_
            database.execute("INSERT INTO hosts VALUES (?, ?)", (next_, name))
            next_ += 1
        database.execute("UPDATE links SET host = ? WHERE row = ?", (names[name], row))
    return f"gave {_n(n, 'link')} the host that the URL has"


def _duplicates(database: sqlite3.Connection) -> Iterator[Finding]:
    rows = database.execute("SELECT key, row FROM links WHERE typeof(key) = 'integer'")
    links = np.fromiter(rows, [("key", np.int64), ("row", np.int64)])
    links.sort(order=("key", "row"))
    again = np.flatnonzero(links["key"][1:] == links["key"][:-1]) + 1
    if not len(again):
        return
    flying = {row for (row,) in database.execute("SELECT row FROM flying")}
    later = set()
    for at in again.tolist():
        kept, row = int(links["row"][at - 1]), int(links["row"][at])
        later.add(kept if row in flying and kept not in flying else row)
    yield Finding(
        what=f"{_n(len(later), 'link')} {'waits' if len(later) == 1 else 'wait'} twice",
        cure=lambda db: f"removed {_n(_delete(db, 'links', 'row', later), 'second row')} of links that waited twice",
    )


def _hosts(database: sqlite3.Connection) -> Iterator[Finding]:
    bad = _undecodable(database, "host", "name", "hosts")
    bad += [
        host
        for (host,) in database.execute(
            "SELECT host FROM hosts WHERE typeof(name) != 'text' OR host < 0 OR host > 2147483646"
        )
    ]
    if bad:
        yield Finding(
            what=f"{_n(len(bad), 'host')} without a readable name",
            cure=lambda db: f"removed {_n(_delete(db, 'hosts', 'host', bad), 'host')} without a readable name",
        )
        return
    names = dict(database.execute("SELECT host, name FROM hosts ORDER BY host"))
    if list(names) == list(range(len(names))) and len(set(names.values())) == len(names):
        return
    first = {name: host for host, name in reversed(names.items())}
    yield Finding(
        what=f"the numbers or names of {_n(len(names), 'host')} have gaps, or come twice",
        cure=lambda db: _renumber(db, names, first),
    )


def _renumber(database: sqlite3.Connection, names: dict[int, str], first: dict[str, int]) -> str:
    """Number the hosts anew from 0 on, in order."""
    kept = sorted(first.values())
    new = {old: number for number, old in enumerate(kept)}
    database.execute("CREATE TEMP TABLE moved (old INTEGER PRIMARY KEY, new INTEGER NOT NULL)")
    database.executemany("INSERT INTO moved VALUES (?, ?)", [(old, new[first[name]]) for old, name in names.items()])
    n = _one(database, "SELECT count(*) FROM links WHERE host IN (SELECT old FROM moved WHERE old != new)")
    # a host that is not there may not become one that is
    database.execute("UPDATE links SET host = ifnull((SELECT new FROM moved WHERE old = host), -1)")
    database.execute("DROP TABLE moved")
    database.execute("DELETE FROM hosts")
    database.executemany("INSERT INTO hosts VALUES (?, ?)", [(new[old], names[old]) for old in kept])
    return f"numbered {_n(len(kept), 'host')} anew, and {_n(n, 'link')} on them"


def _flying(database: sqlite3.Connection) -> Iterator[Finding]:
    lost = [
        pick_id for (pick_id,) in database.execute("SELECT id FROM flying WHERE row NOT IN (SELECT row FROM links)")
    ]
    if lost:
        yield Finding(
            what=f"{_n(len(lost), 'pick')} in flight without {'its link' if len(lost) == 1 else 'their links'}",
            cure=lambda db: f"removed {_n(_delete(db, 'flying', 'id', lost), 'pick')} in flight whose links are lost",
        )
    wrong = "id < 1 OR typeof(chance) NOT IN ('null', 'real') OR id NOT IN (SELECT min(id) FROM flying GROUP BY row)"
    odd = [pick_id for (pick_id,) in database.execute(f"SELECT id FROM flying WHERE {wrong}")]  # noqa: S608
    odd = sorted(set(odd) - set(lost))
    if odd:
        yield Finding(
            what=f"{_n(len(odd), 'pick')} in flight twice, or with an impossible number or chance",
            cure=lambda db: f"let {_n(_delete(db, 'flying', 'id', odd), 'pick')} in flight wait again",
        )


def _seen(database: sqlite3.Connection) -> Iterator[Finding]:
    bad = [n for (n,) in database.execute("SELECT number FROM seen WHERE typeof(keys) != 'blob' OR length(keys) < 8")]
    if bad:
        yield Finding(
            what=f"{_n(len(bad), 'block')} of known URLs cannot be read",
            cure=lambda db: (
                f"removed {_n(_delete(db, 'seen', 'number', bad), 'block')} of known URLs that cannot be "
                "read: these URLs may be fetched again"
            ),
        )
    n = _one(
        database, "SELECT count(*) FROM seen WHERE typeof(keys) = 'blob' AND length(keys) > 8 AND length(keys) % 8"
    )
    if n:
        yield Finding(what=f"{_n(n, 'block')} of known URLs ends within one", cure=_cut_seen)
    states = f"state NOT IN ({int(State.FETCHED)}, {int(State.PROBED)})"
    n = _one(database, f"SELECT count(*) FROM seen WHERE {states}")  # noqa: S608
    if n:
        yield Finding(
            what=f"{_n(n, 'block')} of known URLs in an impossible state", cure=lambda db: _fetched(db, n, states)
        )


def _cut_seen(database: sqlite3.Connection) -> str:
    done = database.execute(
        "UPDATE seen SET keys = substr(keys, 1, length(keys) / 8 * 8) WHERE length(keys) % 8 AND typeof(keys) = 'blob'"
    )
    return f"cut {_n(done.rowcount, 'block')} of known URLs behind the last whole one"


def _fetched(database: sqlite3.Connection, n: int, states: str) -> str:
    database.execute(f"UPDATE seen SET state = {int(State.FETCHED)} WHERE {states}")  # noqa: S608
    return f"took {_n(n, 'block')} of known URLs in an impossible state for fetched"


def _counters(database: sqlite3.Connection) -> Iterator[Finding]:
    rows = database.execute("SELECT CAST(name AS BLOB), value FROM counters WHERE typeof(value) = 'integer'")
    found = {name.decode(errors="replace"): value for name, value in rows}
    least = {
        "id": 1 + _one(database, "SELECT ifnull(max(id), 0) FROM flying"),
        "row": 1 + _one(database, "SELECT ifnull(max(row), 0) FROM links"),
        "arms": 1 + _one(database, "SELECT ifnull(max(arm), -1) FROM links WHERE typeof(arm) = 'integer'"),
    }
    most = {"id": 1 << 62, "row": _INT - 1, "arms": _MOST_ARMS}
    wrong = {}
    for name, value in least.items():
        is_well = value <= found.get(name, -1) <= most[name]
        if not is_well and (found or value > (name != "arms")):
            wrong[name] = value
    if wrong:
        said = ", ".join(f"{name} is {found.get(name)}, not {value:,} at least" for name, value in wrong.items())
        yield Finding(what=f"counters disagree with what they count: {said}", cure=lambda db: _count_anew(db, wrong))


def _width(database: sqlite3.Connection) -> Iterator[Finding]:
    """Find a width that is not that of most vectors; without one, the frontier keeps none."""
    row = database.execute("SELECT value FROM counters WHERE name = 'width'").fetchone()
    if row is None:
        return
    lengths = database.execute(
        "SELECT length(memo), count(*) FROM links WHERE typeof(memo) = 'blob' GROUP BY 1 ORDER BY 2 DESC LIMIT 1"
    ).fetchone()
    right = lengths[0] if lengths else row[0]
    if row[0] != right or not isinstance(right, int) or not 0 < right <= _WIDEST:
        right = right if isinstance(right, int) and 0 < right <= _WIDEST else 1
        yield Finding(
            what=f"links are said to have vectors of width {row[0]}, not {right:,}",
            cure=lambda db: _count_anew(db, {"width": right}),
        )


def _count_anew(database: sqlite3.Connection, right: dict[str, int]) -> str:
    database.executemany("INSERT OR REPLACE INTO counters VALUES (?, ?)", right.items())
    return f"counted anew: {', '.join(f'{name} {value:,}' for name, value in right.items())}"


def _undecodable(database: sqlite3.Connection, key: str, column: str, table: str) -> list[Any]:
    """Return the rows whose text is no UTF-8, which SQLite takes for text all the same."""
    factory, database.text_factory = database.text_factory, bytes
    try:
        rows = database.execute(f"SELECT {key}, {column} FROM {table} WHERE typeof({column}) = 'text'")  # noqa: S608
        bad: list[Any] = []
        while part := list(islice(rows, _AT_ONCE)):
            if not _decodes(b"\n".join(text for _, text in part)):
                bad += [number for number, text in part if not _decodes(text)]
        return bad
    finally:
        database.text_factory = factory


def _decodes(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _delete(database: sqlite3.Connection, table: str, column: str, numbers: Any) -> int:
    numbers = sorted(set(numbers))
    database.executemany(f"DELETE FROM {table} WHERE {column} = ?", [(number,) for number in numbers])  # noqa: S608
    return len(numbers)


def _one(database: sqlite3.Connection, question: str) -> int:
    return int(database.execute(question).fetchone()[0])


def _host_of(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _links_are(n: int) -> str:
    return f"{_n(n, 'link')} {'is' if n == 1 else 'are'} stored"


def _n(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
