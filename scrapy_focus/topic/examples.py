"""Example pages from folders: on a topic, and off it."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.files import write_atomically
from scrapy_focus.topic.repeated import Repeated
from scrapy_focus.web.html import html_blocks

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from os import PathLike

_PAGES = frozenset({".html", ".htm", ".xhtml"})
_TYPES = _PAGES | {".txt"}
_SEVERAL = 3  # files with a block that is removed: it belongs to a site, not to a page
_BLOCKS = 1_000_000
_SHOWN = 5  # files that a message names


class Examples(NamedTuple):
    """Texts, whether each is on the topic, the file of each, and the skipped files without text."""

    texts: list[str]
    labels: list[bool]
    files: list[Path]
    empty: list[Path]


def read_examples(positive: str | PathLike[str], negative: str | PathLike[str]) -> Examples:
    """Return the examples in two folders, those on the topic first, each folder in the order of names.

    Blocks that are in several of all these files are removed: menus, footers.

    Raises
    ------
    ConfigError
        If a folder does not exist, has no example, or a file cannot be read.
    """
    if Path(positive).resolve() == Path(negative).resolve():
        raise ConfigError(
            f"{positive} is both, the folder of pages on the topic and of those that are not; give two folders"
        )
    found = Examples([], [], [], [])
    read = [(read_blocks(positive), True), (read_blocks(negative), False)]
    repeated = _repeated(blocks for pages, _ in read for blocks in pages.values())
    for (pages, label), folder in zip(read, (positive, negative), strict=True):
        for file, blocks in pages.items():
            if not blocks:
                found.empty.append(file)
                continue
            found.texts.append(repeated.left("", blocks))
            found.labels.append(label)
            found.files.append(file)
        if not any(pages.values()):
            raise ConfigError(f"none of the {len(pages)} files in {folder} has text; put example pages there")
    return found


class Given(NamedTuple):
    """Texts that are on the topic, and texts that are not; either may be missing."""

    positives: list[str]
    negatives: list[str]

    def write(self, path: Path) -> None:
        """Store them, so that their sources need not be read again; ``OSError`` if that fails."""
        write_atomically(path, gzip.compress(json.dumps(self._asdict()).encode(), mtime=0))

    @classmethod
    def stored(cls, path: Path) -> Given:
        """Return what was written to a file.

        Raises
        ------
        ConfigError
            If it cannot be read.
        """
        try:
            fields = json.loads(gzip.decompress(path.read_bytes()))
            return cls(*([str(text) for text in fields[name]] for name in cls._fields))
        except (OSError, EOFError, ValueError, zlib.error, KeyError, TypeError) as error:
            raise ConfigError(f"the examples in {path} cannot be read: {error}; begin anew") from error


def read_given(positive: str | PathLike[str] = "", negative: str | PathLike[str] = "") -> Given:
    """Return the examples in one folder or two, each in the order of names; ``""`` for none.

    Raises
    ------
    ConfigError
        If a folder does not exist, has no example, or a file cannot be read.
    """
    if positive and negative:
        texts, labels, *_ = read_examples(positive, negative)
        on = sum(labels)
        return Given(texts[:on], texts[on:])
    return Given(_some(positive), _some(negative))


def _some(folder: str | PathLike[str]) -> list[str]:
    """Return the texts in a folder, one at least; ``[]`` for none."""
    if not folder:
        return []
    texts = read_texts(folder)
    found = [text for text in texts.values() if text]
    if not found:
        raise ConfigError(f"none of the {len(texts)} files in {folder} has text; put example pages there")
    return found


def read_texts(folder: str | PathLike[str]) -> dict[Path, str]:
    """Return the text of each file that :func:`read_blocks` reads, without the blocks that are in several of them."""
    pages = read_blocks(folder)
    repeated = _repeated(pages.values())
    return {file: repeated.left("", blocks) for file, blocks in pages.items()}


def read_blocks(folder: str | PathLike[str]) -> dict[Path, list[str]]:
    """Return the text of each ``.txt``, ``.html`` and ``.htm`` in a folder and its sub-folders, by file, in the order
    of names, block by block.

    Of HTML it is the title and the visible text, and a block is a paragraph, item or cell; of other files it is a
    line. The encoding follows from a byte order mark or a ``<meta>``, or else it is UTF-8 if valid, or Windows-1252.

    Raises
    ------
    ConfigError
        If the folder does not exist, has no such file, or a file cannot be read.
    """
    path = Path(folder)
    if not path.is_dir():
        raise ConfigError(f"{path} is not a folder; name one with example pages, .txt, .html or .htm")
    files = sorted(file for file in path.rglob("*") if file.suffix.lower() in _TYPES and file.is_file())
    if not files:
        others = sorted(file.name for file in path.rglob("*") if file.is_file())
        there = f"there is only {', '.join(others[:_SHOWN])}" if others else "it is empty"
        raise ConfigError(f"{path} has no example pages, .txt, .html or .htm ({there}); put some there")
    return {file: _blocks_of(file) for file in files}


def _repeated(pages: Iterable[Sequence[str]]) -> Repeated:
    """Return a memory for the blocks of all pages, which may be of any sites."""
    repeated = Repeated(pages=_SEVERAL, blocks_of_host=_BLOCKS, blocks=_BLOCKS)
    for blocks in pages:
        repeated.add("", blocks)
    return repeated


def _blocks_of(file: Path) -> list[str]:
    """Return the text of one ``.txt`` or HTML file, with single spaces; ``ConfigError`` if it cannot be read."""
    from w3lib.encoding import html_to_unicode, read_bom

    try:
        data = file.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"the example {file} cannot be read: {error.strerror}; make it readable, or take it away"
        ) from error
    if file.suffix.lower() in _PAGES:
        return html_blocks(html_to_unicode(None, data, auto_detect_fun=_guessed)[1])
    encoding, mark = read_bom(data)
    text = data[len(mark or b"") :].decode(encoding or _guessed(data), "replace")
    return [line for each in text.splitlines() if (line := " ".join(each.split()))]


def _guessed(data: bytes) -> str:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"
