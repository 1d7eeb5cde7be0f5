"""The notes of a crawl: the outcome of each link that it followed, and its state at intervals.

The page of a crawl must be the same after a kill and a resume as after a crawl without interruption. So each outcome
is written before the crawl counts it: everything that the crawl knows is in the notes. A page that was fetched again
because of a kill has two lines, and the last one counts. Each run writes a separate file, which never changes once the
run has ended, and whose end may be cut.

When a page is read, it is not known which of its links are broken. So its line also has the keys of its links. Those
of a menu are the same on each page, and compress to almost nothing.
"""

from __future__ import annotations

import json
import re
import zlib
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from scrapy_focus.core.printable import printable_json, printable_logger

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

logger = printable_logger(__name__)

NOTES = Path(".focus", "log")  # in the output folder
_NAME = re.compile(r"(\d{1,9})-(\d{1,9})\.jsonl\.gz")
_LEVEL = 3  # of compression: 40 bytes and 11 microseconds per outcome
_GZIP = 31  # wbits of the format in zlib
_CHUNK = 1 << 16  # bytes
_LONGEST_LINE = 1 << 20  # bytes
_LONGEST = 1000  # characters of an anchor or a reason

_TEXTS = ("url", "method", "mime", "error", "why", "page", "anchor", "moved_to")

Kind = Literal["run", "outcome", "state"]


class Answer(NamedTuple):
    """The outcome of one link that was followed."""

    url: str
    method: str = "GET"
    status: int | None = None  # HTTP status; None: there was no response
    mime: str = ""
    size: int = 0  # bytes
    sent: int = 0  # requests sent for it, including redirects, retries and HEADs
    files: float = 0.0  # number of finds
    error: str = ""  # why there is no usable page, as in outcomes
    why: str = ""  # why it was not requested, in words
    page: str = ""  # URL of the page with the link
    anchor: str = ""  # text of the link
    moved_to: str = ""  # URL of the page that was received, if different


class Referrers(NamedTuple):
    """The pages that contain a link."""

    pages: list[str]  # URLs of the first ones
    number: int  # number of all


@dataclass(frozen=True, slots=True, kw_only=True)
class Notes:
    """The notes of the last crawl of a folder."""

    crawl: int  # from 1; 0: there are none
    runs: list[dict[str, Any]]  # the facts that each run noted when it began
    answers: list[Answer]  # one per link, in the order of their first lines
    state: dict[str, Any]  # the last state of the crawl
    elsewhere: list[str] = field(default_factory=list)  # hosts that links lead to, but that are not crawled
    left_out: list[str] = field(default_factory=list)  # extensions of links that were not followed
    unchecked: dict[str, str] = field(default_factory=dict)  # hosts with unchecked certificates, and what is wrong
    damaged: int = 0  # lines that could not be read

    @property
    def last_run(self) -> dict[str, Any]:
        """The facts that the last run noted; empty without notes."""
        return self.runs[-1] if self.runs else {}


class NoteBook:
    """Writes the notes of one run.

    Parameters
    ----------
    folder
        The output folder.
    resumes
        Whether the run resumes the last crawl.
    crawl
        The number of the crawl; by default, from the existing notes.

    Raises
    ------
    OSError
        If the notes cannot be written; raised by each method.
    """

    def __init__(self, folder: Path, *, resumes: bool = False, crawl: int | None = None) -> None:
        runs = _runs_in(folder)
        last = max((number for number, _, _ in runs), default=0)
        self.crawl = crawl if crawl is not None else max(1, last if resumes else last + 1)
        for number, _, path in runs:
            if number == self.crawl and not resumes:  # of a failed crawl, which does not count
                path.unlink()
        run = 1 + max((run for number, run, _ in runs if number == self.crawl), default=0)
        path = folder / NOTES / f"{self.crawl}-{run}.jsonl.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        self._packer = zlib.compressobj(_LEVEL, wbits=_GZIP)
        self._file = path.open("xb", buffering=0)

    def begin(self, facts: Mapping[str, Any]) -> None:
        """Note the arguments of a run."""
        self._write("run", facts)

    def outcome(
        self, answer: Answer, *, elsewhere: Sequence[str] = (), left_out: Sequence[str] = (),
        links: Sequence[str] = (),
    ) -> None:  # fmt: skip
        """Note the outcome of a link; afterwards, a kill of the process does not lose it.

        ``elsewhere`` and ``left_out`` are new hosts and extensions of links, such as those on its page; ``links`` are
        keys of the links of its page.
        """
        short = answer._replace(anchor=answer.anchor[:_LONGEST], why=answer.why[:_LONGEST])
        fields: dict[str, Any] = {
            name: value
            for name, value in zip(Answer._fields, short, strict=True)
            if value != Answer._field_defaults.get(name)
        }
        more = {"elsewhere": [*elsewhere], "left_out": [*left_out]}
        fields |= {name: value for name, value in more.items() if value}
        if links:
            fields["links"] = " ".join(links)
        self._write("outcome", fields)

    def state(self, facts: Mapping[str, Any]) -> None:
        """Note the state of the crawl; the last one counts."""
        self._write("state", facts)

    def close(self) -> None:
        """End the notes of this run. Idempotent."""
        if not self._file.closed:
            try:
                self._file.write(self._packer.flush())
            finally:
                self._file.close()

    def _write(self, kind: Kind, fields: Mapping[str, Any]) -> None:
        line = printable_json({"kind": kind, **fields}, default=str) + "\n"
        self._file.write(self._packer.compress(line.encode()) + self._packer.flush(zlib.Z_SYNC_FLUSH))


def read_notes(folder: Path) -> Notes:
    """Return the notes of the last crawl in a folder, running, ended or killed; linear in its outcomes.

    Unreadable lines are counted.

    Raises
    ------
    OSError
        If a file of the notes cannot be read.
    """
    crawl, paths = _last_crawl(folder)
    runs: list[dict[str, Any]] = []
    answers: dict[tuple[str, str], Answer] = {}
    state: dict[str, Any] = {}
    elsewhere: dict[str, None] = {}
    left_out: dict[str, None] = {}
    unchecked: dict[str, str] = {}
    damaged = 0
    for path in paths:
        for name in ("reason", "ending"):  # of a run that ended, and was resumed
            state.pop(name, None)
        for line in _lines_of(path):
            fields = _fields(line)
            kind = fields.pop("kind", None)
            if kind == "run":
                runs.append(fields)
            elif kind == "state":
                unchecked |= _words(fields.pop("unchecked", None))
                state = fields
            elif kind == "outcome":
                elsewhere.update(dict.fromkeys(_texts(fields.pop("elsewhere", None))))
                left_out.update(dict.fromkeys(_texts(fields.pop("left_out", None))))
                if (answer := _answer(fields)) is not None:
                    answers[answer.url, answer.method] = answer
                damaged += answer is None
            else:
                damaged += 1
    return Notes(
        crawl=crawl, runs=runs, answers=[*answers.values()], state=state, elsewhere=[*elsewhere],
        left_out=[*left_out], unchecked=unchecked, damaged=damaged,
    )  # fmt: skip


def began_with(folder: Path) -> dict[str, str]:
    """Return the arguments that must not change when the last crawl of a folder resumes; ``{}`` if not noted.

    Raises
    ------
    OSError
        If the notes cannot be read.
    """
    _, paths = _last_crawl(folder)
    for path in paths:
        fields = _fields(next(_lines_of(path), b""))
        if isinstance(fixed := fields.get("fixed"), dict):
            return {str(name): str(value) for name, value in fixed.items()}
    return {}


@lru_cache(maxsize=1 << 14)
def link_key(url: str) -> str:
    """Return the key of a link with this URL: 40 bits of a digest."""
    return blake2b(url.encode(errors="surrogatepass"), digest_size=5).hexdigest()


def read_referrers(folder: Path, keys: Collection[str], most: int) -> dict[str, Referrers]:
    """Return the pages of the last crawl that contain links with these keys, up to `most` each; linear in its outcomes.

    Raises
    ------
    OSError
        If a file of the notes cannot be read.
    """
    wanted = frozenset(keys)
    if not wanted:
        return {}
    pages: dict[str, list[str]] = {key: [] for key in wanted}
    numbers: Counter[str] = Counter()
    seen: set[str] = set()
    _, paths = _last_crawl(folder)
    for url, links in chain.from_iterable(map(_pages_with_links, paths)):
        if url in seen:
            continue
        seen.add(url)
        for key in wanted.intersection(links.split()):
            numbers[key] += 1
            if len(pages[key]) < most:
                pages[key].append(url)
    return {key: Referrers(pages[key], number) for key, number in numbers.items()}


def _pages_with_links(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the URL of each page of a run, and the keys of its links, separated by spaces."""
    for line in _lines_of(path):
        if b'"links"' not in line:  # searching is faster than parsing
            continue
        fields = _fields(line)
        url, links = fields.get("moved_to") or fields.get("url"), fields.get("links")
        if isinstance(url, str) and isinstance(links, str):
            yield url, links


def _last_crawl(folder: Path) -> tuple[int, list[Path]]:
    """Return the number of the last crawl, 0 if there was none, and the files of its runs in their order."""
    runs = sorted(_runs_in(folder))
    crawl = max((number for number, _, _ in runs), default=0)
    return crawl, [path for number, _, path in runs if number == crawl]


def _runs_in(folder: Path) -> list[tuple[int, int, Path]]:
    """Return crawl, run and path of each file of notes."""
    try:
        paths = [*(folder / NOTES).iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    found = [(_NAME.fullmatch(path.name), path) for path in paths]
    return [(int(name[1]), int(name[2]), path) for name, path in found if name is not None]


def _lines_of(path: Path) -> Iterator[bytes]:
    """Yield the whole lines of a compressed file, up to where it is cut or damaged."""
    unpacker, rest = zlib.decompressobj(wbits=_GZIP), b""
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            try:
                *lines, rest = (rest + unpacker.decompress(chunk)).split(b"\n")
            except zlib.error as error:
                logger.warning("%s is damaged, and was read up to that point: %s", path, error)
                return
            yield from lines
            if len(rest) > _LONGEST_LINE:
                logger.warning("%s is damaged: it has a line of more than %d bytes", path, _LONGEST_LINE)
                return


def _fields(line: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


def _answer(fields: dict[str, Any]) -> Answer | None:
    """Return a noted outcome; ``None`` if it is malformed."""
    try:
        answer = Answer(**{name: fields[name] for name in Answer._fields if name in fields})  # a later version has more
        is_sound = (
            all(isinstance(getattr(answer, name), str) for name in _TEXTS)
            and all(isinstance(number, int) for number in (answer.size, answer.sent, answer.status or 0))
            and isinstance(answer.files, (int, float))
        )
        return answer if is_sound else None
    except TypeError:  # no URL
        return None


def _texts(value: Any) -> list[str]:
    return [str(text) for text in value] if isinstance(value, list) else []


def _words(value: Any) -> dict[str, str]:
    return {str(name): str(text) for name, text in value.items()} if isinstance(value, dict) else {}
