"""Write a page that lists several crawls, with a link to the page of each.

What the crawls noted comes from the sites that they visited and is not trusted: the page has no script, escapes
everything, and its content security policy allows its own style only.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import quote

from scrapy_focus.core.errors import ConfigError, StorageError
from scrapy_focus.core.files import write_atomically
from scrapy_focus.core.printable import PARAGRAPH, counted, printable, reason_of
from scrapy_focus.core.shown_urls import bare
from scrapy_focus.finders.kit.page.folder import PAGE
from scrapy_focus.finders.kit.page.frame import made_environment, policy_of, source
from scrapy_focus.finders.kit.page.words import ending, number_of, said_of, size_text, span, starts_of, within

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from scrapy_focus.finders.kit.records.notes import Notes

_MADE_BY = "scrapy_focus, a list of crawls"  # the generator that the page names
_STARTS = 3  # start URLs that are named


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A crawl as the page shows it."""

    name: str  # of its folder
    link: str  # to its page, relative; "": it has none
    looked_for: str
    starts: str
    facts: dict[str, str]
    ending: str
    found: int  # finds of all crawls with the folder
    requests: int  # of the last one


def listed(folder: Path, notes: Notes, found: int, noun: str) -> Listed:
    """Return what the page shows of one crawl, from its notes and the number of its finds."""
    run, used = notes.last_run, notes.state.get("used")
    counts = {name: number_of(n) or 0 for name, n in used.items()} if isinstance(used, dict) else {}
    requests, urls = int(counts.get("requests", 0)), starts_of(run)
    facts = {"Found": counted(found, noun)}
    if counts:
        facts["Sent"] = f"{counted(requests, 'request')}, received {size_text(counts.get('bytes', 0))}"
        facts["Took"] = span(counts.get("seconds", 0))
    began, last = (said_of(facts_, "at") for facts_ in (notes.runs[0] if notes.runs else {}, notes.state or run))
    facts |= {"Began": _when(began), "As of": _when(last)}
    if notes.crawl > 1:
        facts["Crawls"] = f"{notes.crawl:,} with this folder"
    more = f" and {len(urls) - _STARTS:,} more" if len(urls) > _STARTS else ""
    about = said_of(run, "about")
    return Listed(
        name=printable(folder.name),
        link=f"{quote(folder.name)}/{PAGE}" if (folder / PAGE).is_file() else "",
        looked_for=printable(f"{said_of(run, 'types')} {about and f'about {about}'}".strip(), PARAGRAPH),
        starts=printable(", ".join(map(bare, urls[:_STARTS])) + more, PARAGRAPH),
        facts={name: fact for name, fact in facts.items() if fact},
        ending=ending(notes),
        found=found,
        requests=requests,
    )


def unreadable(folder: Path, error: Exception) -> Listed:
    """Return what the page shows of a crawl whose folder cannot be read."""
    said = within(f"It cannot be read: {printable(reason_of(error), PARAGRAPH)}.", folder)
    return Listed(
        name=printable(folder.name), link="", looked_for="", starts="", facts={}, ending=said, found=0, requests=0
    )


def write_overview(folder: Path, crawls: Sequence[Listed]) -> Path:
    """Write ``index.html`` with a list of the crawls in a folder, and return its path.

    Raises
    ------
    ConfigError
        If the folder has an ``index.html`` of another kind, which stays.
    StorageError
        If the page cannot be written.
    """
    path = folder / PAGE
    try:
        if path.exists() and _MADE_BY not in path.read_text(encoding="utf-8", errors="replace")[:2000]:
            raise ConfigError(
                f"{path} was not written by focus report, and stays; remove it, or move the crawls to another folder"
            )
        write_atomically(path, overview(folder.absolute().name, crawls))
    except OSError as error:
        raise StorageError(f"the page of {folder} cannot be written: {reason_of(error)}") from error
    return path


def overview(name: str, crawls: Sequence[Listed]) -> bytes:
    """Return the page for the crawls in a folder of this name."""
    style = source("sheets/style.css", "overview.css")
    found, requests = sum(each.found for each in crawls), sum(each.requests for each in crawls)
    text = made_environment().get_template("overview.html.jinja").render(
        title=f"Crawls in {printable(name)}", made_by=_MADE_BY, style=style, policy=policy_of(style), crawls=crawls,
        summary=f"{counted(len(crawls), 'crawl')}, {counted(found, 'find')}, {counted(requests, 'request')}.",
        made=datetime.now(UTC),
    )  # fmt: skip
    return text.encode(errors="backslashreplace")


def _when(at: str) -> str:
    """Return a noted time for people, ``""`` for none."""
    try:
        return f"{datetime.fromisoformat(at).astimezone(UTC):%d %B %Y, %H:%M} UTC" if at else ""
    except ValueError:
        return printable(at)
