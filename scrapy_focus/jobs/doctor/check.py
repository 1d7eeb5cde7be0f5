"""Finds damage in the files of a crawl: with SQLite, with checksums, and with the frontier itself.

Each of them detects different damage. SQLite finds a malformed page, but not a wrong letter. Checksums cover rows, the
notes of a checkpoint and the records of a journal. The frontier knows the invariants of links, hosts and picks.

No code from a folder is run. So for the policy we know whether it is what was stored, but not whether it can be read
where the crawl is to resume.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from scrapy_focus.core.errors import StorageError
from scrapy_focus.core.frontier import Ranks, Vectors
from scrapy_focus.core.printable import brief, counted, inflected
from scrapy_focus.frontiers.sqlite.database import sum_column, verify
from scrapy_focus.frontiers.sqlite.frontier import sqlite_frontier
from scrapy_focus.frontiers.sqlite.index import Index
from scrapy_focus.frontiers.sqlite.sums import sum_of_keys, sum_of_link
from scrapy_focus.jobs.checksums import SUMS, damaged
from scrapy_focus.jobs.doctor.folder import locked, open_readonly
from scrapy_focus.jobs.doctor.tail import read_tail
from scrapy_focus.jobs.job import FRONTIER
from scrapy_focus.jobs.journal import journals_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from scrapy_focus.jobs.doctor.tail import Tail

_SHOWN = 3  # messages of SQLite about a malformed file
ANEW = "restore the folder from a copy, or start again with another JOBDIR"  # if there is no cure

_BEHIND = """
SELECT coalesce((SELECT value FROM counters WHERE name = 'row'), 1) <= (SELECT max(row) FROM links)
    OR coalesce((SELECT value FROM counters WHERE name = 'id'), 1) <= (SELECT max(id) FROM flying)
"""


class Cure(Enum):
    """A repair, in the order of execution: each may find more work for the next."""

    REBUILD = auto()  # rebuild the SQLite file from the readable rows
    DROP_ROWS = auto()  # links with a wrong checksum
    PLACE_ANEW = auto()  # place all links again, under a new policy
    CUT_JOURNAL = auto()  # from where it becomes unusable


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A problem found in a folder."""

    what: str  # a clause with numbers
    cure: Cure | None = None  # None: none exists
    harmless: bool = False  # the crawl resumes as if it did not exist


@dataclass(slots=True, kw_only=True)
class Checkup:
    """The result of a check of a crawl's folder, after all repairs."""

    findings: list[Finding] = field(default_factory=list)
    has_policy: bool = False  # one that can be dropped while everything else is kept
    tail: Tail | None = None  # content of the journals; None: it is unknown which belong to the checkpoint
    done: list[str] = field(default_factory=list)  # repairs, in order
    copies: Path | None = None  # copies of the files before the repairs

    @property
    def found(self) -> list[str]:
        """Return the problems."""
        return [finding.what for finding in self.findings if not finding.harmless]

    @property
    def harmless(self) -> list[str]:
        """Return the harmless irregularities."""
        return [finding.what for finding in self.findings if finding.harmless]

    @property
    def is_well(self) -> bool:
        """Whether the crawl can resume, with everything that was stored or that a repair kept."""
        return not self.found

    @property
    def events(self) -> int:
        """Return how many events a resume reads from the journals."""
        return 0 if self.tail is None else self.tail.events.total()


def check_job(jobdir: Path, *, say: Callable[[str], object] = print) -> Checkup:
    """Verify a JOBDIR without changing it; ``say`` receives each problem as a line.

    Reads everything, and needs as much memory as the crawl; linear in the links.

    Raises
    ------
    ResumeError
        If it has no crawl that this version can read, or a process uses it.
    StorageError
        If it cannot be read at all.
    """
    with locked(jobdir) as folder:
        return examine(folder, say)


def examine(folder: Path, say: Callable[[str], object]) -> Checkup:
    """Verify a folder that this process has locked; see :func:`check_job`."""
    checkup = Checkup()
    for finding in _findings(folder, checkup):
        checkup.findings.append(finding)
        say(f"{'note' if finding.harmless else 'wrong'}: {finding.what}")
    return checkup


def _findings(folder: Path, checkup: Checkup) -> Iterator[Finding]:
    path = folder / FRONTIER
    if malformed := _malformed(path):
        yield Finding(what=malformed, cure=Cure.REBUILD)
        return
    with closing(open_readonly(path)) as database:
        try:
            notes = dict(database.execute("SELECT name, value FROM notes"))
            flying = [pick_id for (pick_id,) in database.execute("SELECT id FROM flying")]
            stamp = dict(database.execute("SELECT name, value FROM counters")).get("stamp", 0)
            is_empty = not notes and not database.execute("SELECT 1 FROM links UNION SELECT 1 FROM seen").fetchone()
        except sqlite3.Error as error:
            yield Finding(what=f"{path.name} is malformed: {error}", cure=Cure.REBUILD)
            return
        if is_empty:
            yield _without_checkpoint(folder)
            return
        if changed := _said_of(database):
            yield Finding(what=changed, cure=Cure.DROP_ROWS)
            return
    if wrong := wrong_links(path) or _unreliable(notes):
        yield Finding(what=f"{wrong}; this cannot be repaired: {ANEW}")
        return
    if unusable := Index(path).wrong(stamp):
        what = f"{path.name}-index is not used ({unusable}): the next run reads all links one by one"
        yield Finding(what=what, harmless=True)
    yield from _policy(notes)
    checkup.has_policy = "policy" in notes
    checkup.tail = read_tail(folder, int(notes["journal"]), flying)
    yield from _journals(checkup.tail)


def _journals(tail: Tail) -> Iterator[Finding]:
    if tail.why:
        yield Finding(what=tail.why + lost_of(tail), cure=Cure.CUT_JOURNAL)
    if older := tail.older:
        what = f"{journal_names(older)} {inflected(len(older), 'is', 'are')} no longer needed"
        yield Finding(what=what, cure=Cure.CUT_JOURNAL, harmless=True)


def _malformed(path: Path) -> str:
    """Return why SQLite cannot read a file properly, ``""`` if it can.

    Raises
    ------
    ResumeError
        If another version wrote it.
    """
    try:
        verify(path)
        with closing(open_readonly(path)) as database:
            database.execute("PRAGMA cell_size_check = ON")
            said = [str(row[0]) for row in database.execute(f"PRAGMA quick_check({_SHOWN + 1})")]
    except (sqlite3.Error, StorageError) as error:
        return f"{path.name} is malformed: {error}"
    lines = [line for text in said for line in text.splitlines() if not line.startswith("***")]
    more = " and more" if len(lines) > _SHOWN else ""
    if said == ["ok"]:
        return ""
    return f"{path.name} is malformed: {'; '.join(lines[:_SHOWN])}{more}"


def changed_links(database: sqlite3.Connection) -> list[tuple[int, str]]:
    """Return row and URL of each link with a wrong checksum."""
    columns = f"row, CAST(url AS BLOB), typeof(url) = 'text', {sum_column(database)}, key, host, depth, origin, payload"
    rows = database.execute(f"SELECT {columns} FROM links")  # noqa: S608
    changed = []
    for row, spelled, is_text, stored, key, host, depth, origin, payload in rows:
        url = spelled.decode(errors="replace")  # a single wrong bit may make it invalid UTF-8
        if stored is not None and not (is_text and stored == sum_of_link(key, url, host, depth, origin, payload)):
            changed.append((row, url))
    return changed


def changed_blocks(database: sqlite3.Connection) -> list[int]:
    """Return the numbers of the blocks of known keys with a wrong checksum."""
    rows = database.execute(f"SELECT number, keys, {sum_column(database)} FROM seen")  # noqa: S608
    return [number for number, keys, stored in rows if stored is not None and stored != sum_of_keys(keys)]


def _said_of(database: sqlite3.Connection) -> str:
    """Describe the rows with a wrong checksum, ``""`` if there are none."""
    links, blocks = changed_links(database), changed_blocks(database)
    shown = ", ".join(f"row {row}, {brief(url)}" for row, url in links[:_SHOWN])
    more = ", ..." if len(links) > _SHOWN else ""
    said = [f"{counted(len(links), 'link')} ({shown}{more})"] if links else []
    if blocks:
        said.append(f"{counted(len(blocks), 'block')} of known keys")
    return f"{' and '.join(said)}: wrong checksum" if said else ""


def _without_checkpoint(folder: Path) -> Finding:
    journals = journals_in(folder)
    if any((folder / f"journal.{number}").stat().st_size for number in journals):
        return Finding(
            what=f"the last checkpoint is lost, and {journal_names(journals)} useless without it; put back "
            f"{FRONTIER}-wal if it was removed, or start again with another JOBDIR"
        )
    return Finding(what="it has no checkpoint yet: the crawl will start from the beginning", harmless=True)


def wrong_links(path: Path) -> str:
    """Return why the content of a frontier's file is inconsistent, ``""`` if it is not; changes nothing."""
    try:
        with closing(open_readonly(path)) as database:  # while it is open, a frontier does not merge its log
            if database.execute(_BEHIND).fetchone()[0]:
                return "its counters are too low, so that new links would overwrite old ones"
            counters = dict(database.execute("SELECT name, value FROM counters"))
            width = counters.get("width", 0)
            keeps = Vectors(width) if width else Ranks()
            frontier = sqlite_frontier(path, keeps, anew=bool(counters.get("anew")), by_rows=True)
            try:
                frontier.check()
            finally:
                frontier.close()
    except Exception as error:  # whatever invalid values lead to
        return f"the links are inconsistent: {error.__cause__ or error}"
    return ""


def _unreliable(notes: Mapping[str, Any]) -> str:
    """Name the unreliable notes, ``""`` for none; policy and goal are ignored, as there is a cure for them."""
    wrong = {*damaged(notes)} - {"policy", "goal", SUMS}
    try:
        dict(json.loads(notes["crawl"])["description"] or {})
    except (KeyError, ValueError, TypeError, RecursionError):
        wrong.add("crawl")
    try:
        int(notes["journal"])
    except (KeyError, ValueError, TypeError):
        wrong.add("journal")
    if not wrong:
        return ""
    return f"the {' and '.join(sorted(wrong))} of the last checkpoint is unreliable"


def _policy(notes: Mapping[str, bytes]) -> Iterator[Finding]:
    """Yield problems of the stored policy: it is missing, or has a wrong checksum."""
    changed = damaged(notes)
    if "policy" not in notes and "policy" not in changed:
        yield Finding(what="there is no policy: the next run places all links again and starts to learn", harmless=True)
    elif changed:
        learned = "what the goal learned" if changed == ["goal"] else "the policy"
        yield Finding(
            what=f"{learned} is unreliable: the {' and '.join(changed)} of the last checkpoint has a wrong checksum",
            cure=Cure.PLACE_ANEW,
        )


def lost_of(tail: Tail) -> str:
    """Describe the unusable part of the journals, ``""`` for none."""
    if not tail.lost_bytes:
        return ""
    kinds = ", ".join(f"{n:,} {kind}" for kind, n in sorted(tail.lost.items()))
    later = f", {journal_names(tail.later)} included" if tail.later else ""
    what = f"{counted(tail.lost.total(), 'whole event')} in them" + (f" ({kinds})" if kinds else "")
    return f"; {tail.lost_bytes:,} bytes cannot be used{later}, {what}"


def journal_names(numbers: list[int]) -> str:
    """Return the names of the files of some journals."""
    return ", ".join(f"journal.{number}" for number in numbers)
