"""What is wrong with the files of a crawl: found by SQLite, by checksums, and by the frontier itself.

Each of them answers for something else. SQLite finds a page that makes no sense, and no wrong letter. Checksums hold
for rows, the notes of a checkpoint and the records of a journal. The frontier knows what must hold of links, hosts and
picks.

Nothing of a folder is run. So of the policy it is known whether it is what was stored, and not whether it can be read
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

_SHOWN = 3  # of what SQLite says of a malformed file
ANEW = "put a copy of the folder in its place, or begin anew with another JOBDIR"  # where there is no cure

_BEHIND = """
SELECT coalesce((SELECT value FROM counters WHERE name = 'row'), 1) <= (SELECT max(row) FROM links)
    OR coalesce((SELECT value FROM counters WHERE name = 'id'), 1) <= (SELECT max(id) FROM flying)
"""


class Cure(Enum):
    """What can be done, in the order in which it is: each may show what the next has to do."""

    REBUILD = auto()  # the SQLite file, of what can be read
    DROP_ROWS = auto()  # links that are not what was stored
    PLACE_ANEW = auto()  # all links, under a policy that begins to learn
    CUT_JOURNAL = auto()  # where it cannot be used any further


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that is not as it should be."""

    what: str  # a clause with numbers
    cure: Cure | None = None  # None: there is none here
    harmless: bool = False  # a crawl resumes as if it was not there


@dataclass(slots=True, kw_only=True)
class Checkup:
    """What was found in the folder of a crawl, after all repairs."""

    findings: list[Finding] = field(default_factory=list)
    has_policy: bool = False  # that could be dropped, and all else be kept
    tail: Tail | None = None  # what the journals hold; None: nobody can say which belong to the checkpoint
    done: list[str] = field(default_factory=list)  # repairs, in order
    copies: Path | None = None  # where the files are as they were before

    @property
    def found(self) -> list[str]:
        """Return what is wrong."""
        return [finding.what for finding in self.findings if not finding.harmless]

    @property
    def harmless(self) -> list[str]:
        """Return what is not as usual, and does no harm."""
        return [finding.what for finding in self.findings if finding.harmless]

    @property
    def is_well(self) -> bool:
        """Whether the crawl can resume, with all that was stored, or was left by a repair."""
        return not self.found

    @property
    def events(self) -> int:
        """Return how many events a resume reads from the journals."""
        return 0 if self.tail is None else self.tail.events.total()


def check_job(jobdir: Path, *, say: Callable[[str], object] = print) -> Checkup:
    """Verify all that is in a JOBDIR without changing it; ``say`` is given what is wrong, a line each.

    Reads everything, and holds in memory what a crawl does; linear in the links.

    Raises
    ------
    ResumeError
        If there is no crawl in it that this version can read, or a process uses it.
    StorageError
        If it cannot be read at all.
    """
    with locked(jobdir) as folder:
        return examine(folder, say)


def examine(folder: Path, say: Callable[[str], object]) -> Checkup:
    """Verify what is in a folder that this process has locked; see :func:`check_job`."""
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
        yield Finding(what=f"{wrong}; this is not repaired: {ANEW}")
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
        what = f"{journal_names(older)} {inflected(len(older), 'is', 'are')} needed no more"
        yield Finding(what=what, cure=Cure.CUT_JOURNAL, harmless=True)


def _malformed(path: Path) -> str:
    """Say why SQLite cannot read a file well, ``""`` if it can.

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
    """Return row and URL of each link that is not what was stored, by its checksum."""
    columns = f"row, CAST(url AS BLOB), typeof(url) = 'text', {sum_column(database)}, key, host, depth, origin, payload"
    rows = database.execute(f"SELECT {columns} FROM links")  # noqa: S608
    changed = []
    for row, spelled, is_text, stored, key, host, depth, origin, payload in rows:
        url = spelled.decode(errors="replace")  # one wrong bit, and it is UTF-8 no more
        if stored is not None and not (is_text and stored == sum_of_link(key, url, host, depth, origin, payload)):
            changed.append((row, url))
    return changed


def changed_blocks(database: sqlite3.Connection) -> list[int]:
    """Return the numbers of the blocks of known keys that are not what was stored, by their checksums."""
    rows = database.execute(f"SELECT number, keys, {sum_column(database)} FROM seen")  # noqa: S608
    return [number for number, keys, stored in rows if stored is not None and stored != sum_of_keys(keys)]


def _said_of(database: sqlite3.Connection) -> str:
    """Say which rows are not what was stored, ``""`` if all are."""
    links, blocks = changed_links(database), changed_blocks(database)
    shown = ", ".join(f"row {row}, {brief(url)}" for row, url in links[:_SHOWN])
    more = ", ..." if len(links) > _SHOWN else ""
    said = [f"{counted(len(links), 'link')} ({shown}{more})"] if links else []
    if blocks:
        said.append(f"{counted(len(blocks), 'block')} of known keys")
    return f"{' and '.join(said)}: not what was stored, by checksum" if said else ""


def _without_checkpoint(folder: Path) -> Finding:
    journals = journals_in(folder)
    if any((folder / f"journal.{number}").stat().st_size for number in journals):
        return Finding(
            what=f"the last checkpoint is lost, and {journal_names(journals)} there without it; put back "
            f"{FRONTIER}-wal if it was removed, or begin anew with another JOBDIR"
        )
    return Finding(what="it has no checkpoint yet: the crawl will begin anew", harmless=True)


def wrong_links(path: Path) -> str:
    """Say why what is in the file of a frontier does not fit together, ``""`` if it does; nothing of it changes."""
    try:
        with closing(open_readonly(path)) as database:  # while it is open, a frontier leaves its log where it is
            if database.execute(_BEHIND).fetchone()[0]:
                return "its counters are behind what they count, so that new links would take the place of old ones"
            counters = dict(database.execute("SELECT name, value FROM counters"))
            width = counters.get("width", 0)
            keeps = Vectors(width) if width else Ranks()
            frontier = sqlite_frontier(path, keeps, anew=bool(counters.get("anew")), by_rows=True)
            try:
                frontier.check()
            finally:
                frontier.close()
    except Exception as error:  # whatever follows from values that nobody wrote
        return f"the links do not fit together: {error.__cause__ or error}"
    return ""


def _unreliable(notes: Mapping[str, Any]) -> str:
    """Say which notes cannot be relied on, ``""`` if all can but the policy and what the goal learned, for which there
    is a cure.
    """
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
    return f"the {' and '.join(sorted(wrong))} of the last checkpoint cannot be relied on"


def _policy(notes: Mapping[str, bytes]) -> Iterator[Finding]:
    """Yield what is wrong with the stored policy: it is not there, or is not what was stored."""
    changed = damaged(notes)
    if "policy" not in notes and "policy" not in changed:
        yield Finding(what="there is no policy: the next run places all links anew and begins to learn", harmless=True)
    elif changed:
        learned = "what the goal learned" if changed == ["goal"] else "the policy"
        yield Finding(
            what=f"{learned} cannot be relied on: the {' and '.join(changed)} of the last checkpoint is not what was "
            "stored",
            cure=Cure.PLACE_ANEW,
        )


def lost_of(tail: Tail) -> str:
    """Say what of the journals cannot be used, ``""`` if all can."""
    if not tail.lost_bytes:
        return ""
    kinds = ", ".join(f"{n:,} {kind}" for kind, n in sorted(tail.lost.items()))
    later = f", {journal_names(tail.later)} with them" if tail.later else ""
    what = f"{counted(tail.lost.total(), 'whole event')} in them" + (f" ({kinds})" if kinds else "")
    return f"; {tail.lost_bytes:,} bytes cannot be used{later}, {what}"


def journal_names(numbers: list[int]) -> str:
    """Return the names of the files of some journals."""
    return ", ".join(f"journal.{number}" for number in numbers)
