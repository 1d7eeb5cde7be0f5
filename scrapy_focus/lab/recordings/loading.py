"""Reads a recording from SQLite into columns: all that a simulated crawl needs.

This takes about a microsecond a link, and is done once: the columns are kept beside the recording (``columns.py``).
So everything that follows from a recording alone, and takes time for each URL or link, is computed here: whether all
links have targets, the host and the extension of each URL, and the index of URLs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np

from scrapy_focus.lab.recordings.columns import joined
from scrapy_focus.lab.recordings.graph import read_links
from scrapy_focus.lab.recordings.renderings import read_renderings
from scrapy_focus.lab.recordings.texts import Packer, Sorter, hash_of, in_order, packed
from scrapy_focus.lab.recordings.versions import read_answers, read_histories
from scrapy_focus.web.mime import extension

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from scrapy_focus.lab.recordings.columns import Arrays

_AT_ONCE = 10_000  # rows
_TEXTS = ("tag_path", "anchor", "context")


def load(database: sqlite3.Connection, *, has_versions: bool, has_renderings: bool) -> Arrays:
    """Return the columns of a recording. Linear in its URLs and links.

    Raises
    ------
    ValueError
        If something that it refers to is missing. Invalid values may also raise other exceptions.
    """
    columns = _read_urls(database)
    n_urls = len(columns["depth"])
    tables = ["pages"] + ["versions"] * has_versions + ["renderings"] * has_renderings
    ends = {}
    for table in tables:
        ends[table] = int(database.execute(f"SELECT count(*) FROM {table}").fetchone()[0])  # noqa: S608 (constants)
    columns |= read_answers(database, tables)
    redirect = columns["answers.redirect"]
    if len(redirect) and not -1 <= redirect.min() <= redirect.max() < n_urls:
        raise ValueError("a page redirects to one that is not there")
    if has_versions:
        columns |= read_histories(database, n_urls)
    if has_renderings:
        columns |= read_renderings(database, n_urls)
    return columns | _read_all_links(database, n_urls, ends)


def _read_urls(database: sqlite3.Connection) -> Arrays:
    """Return URLs, their depths, hosts and extensions, and the index to find them."""
    urls, hosts, extensions = Packer(), _Hosts(), Sorter()
    lots: dict[str, list[NDArray[Any]]] = {"depth": [], "host": [], "extension": [], "hashes": []}
    n = 0
    for rows in _lots(database, "SELECT id, url, coalesce(depth, -1) FROM pages ORDER BY id"):
        numbers, texts, depths = zip(*rows, strict=True)
        if list(numbers) != list(range(n, n + len(numbers))):
            raise ValueError("pages are missing")
        n += len(numbers)
        urls.add(texts)
        lots["depth"].append(np.array(depths, np.int64))
        lots["host"].append(np.array(list(map(hosts, texts)), np.int32))
        lots["extension"].append(np.array([extensions(extension(url)) for url in texts], np.int32))
        lots["hashes"].append(np.array(list(map(hash_of, texts)), np.int64))
    known, order = in_order(joined(lots["hashes"], np.int64))
    return {
        "depth": joined(lots["depth"], np.int64),
        "host": joined(lots["host"], np.int32),
        "extension": joined(lots["extension"], np.int32),
        "hashes": known,
        "hashed": order,
        **packed("urls", urls.done()),
        **packed("hosts", hosts.names.names()),
        **packed("extensions", extensions.names()),
    }


class _Hosts:
    """Numbers the host names of URLs."""

    def __init__(self) -> None:
        self.names = Sorter()
        self._known: dict[str, int] = {}  # by the text between the slashes

    def __call__(self, url: str) -> int:
        netloc = url.split("/", 3)[2] if "//" in url else ""
        known = self._known.get(netloc)
        if known is None:
            known = self._known[netloc] = self.names(urlsplit(f"//{netloc}").hostname or "")
        return known


def _read_all_links(database: sqlite3.Connection, n_urls: int, counts: dict[str, int]) -> Arrays:
    """Return the links of all answers, those of the URLs first, and the texts that belong to them."""
    names = {"pages": "links", "versions": "version_links", "renderings": "rendering_links"}
    starts: list[NDArray[np.int64]] = [np.zeros(1, np.int64)]
    parts = []
    for table, n in counts.items():
        begins, columns = read_links(database, n, n_urls, table=names[table], columns=("target", *_TEXTS))
        starts.append(starts[-1][-1] + begins[1:])
        parts.append(columns)
    targets, *texts = parts[0] if len(parts) == 1 else map(np.concatenate, zip(*parts, strict=True))
    links = {"links.starts": np.concatenate(starts), "links.targets": targets}
    return links | _read_texts(database, *texts)


def _read_texts(
    database: sqlite3.Connection, paths: NDArray[np.int32], anchors: NDArray[np.int32], contexts: NDArray[np.int32]
) -> Arrays:
    """Return the strings of links, each once, and their numbers, which overwrite those of the table.

    Missing anchors and contexts have a number without a string: using it raises an error.
    """
    last = int(database.execute("SELECT coalesce(max(id), 0) FROM texts").fetchone()[0])
    beyond = last + 1
    if paths.max(initial=0) > last:
        raise ValueError("a tag path is not there")
    for column in (anchors, contexts):
        np.minimum(column, beyond, out=column)
    of_paths, of_texts = np.full(beyond + 1, -1, np.int32), np.full(beyond + 1, -1, np.int32)
    of_paths[paths] = of_texts[anchors] = of_texts[contexts] = 0
    wanted, packers = (of_paths.data, of_texts.data), (Packer(), Packer())
    found: tuple[list[int], list[int]] = ([], [])
    for rows in _lots(database, "SELECT id, text FROM texts WHERE id >= 0 ORDER BY id"):
        for is_wanted, packer, numbers in zip(wanted, packers, found, strict=True):
            some = [row for row in rows if is_wanted[row[0]] == 0]
            packer.add([text for _, text in some])
            numbers += [number for number, _ in some]
    if len(found[0]) != np.count_nonzero(of_paths == 0):
        raise ValueError("a tag path is not there")
    of_paths[found[0]] = np.arange(len(found[0]))
    of_texts[:] = len(found[1])
    of_texts[found[1]] = np.arange(len(found[1]))
    for column, numbers_of in ((paths, of_paths), (anchors, of_texts), (contexts, of_texts)):
        np.take(numbers_of, column, out=column, mode="clip")  # all are in it, and this needs no copy
    return {
        "links.tag_paths": paths,
        "links.anchors": anchors,
        "links.contexts": contexts,
        **packed("tag_paths", packers[0].done()),
        **packed("texts", packers[1].done()),
    }


def _lots(database: sqlite3.Connection, question: str) -> Iterator[list[tuple[Any, ...]]]:
    rows = database.execute(question)
    while some := rows.fetchmany(_AT_ONCE):
        yield some
