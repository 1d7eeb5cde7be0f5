"""Folders of crawls, some of sites with hostile names."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from scrapy_focus.finders.important.link_book import LinkBook
from scrapy_focus.finders.kit.records.notes import Answer, NoteBook, link_key

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

SITE = "https://statistics.example.org"
EVIL = [
    "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</script><script>alert(2)</script>", "<!--<script>",
    "javascript:alert(1)", "\u202egnp.exe\u2066", "A" * 10_000, "{{7*7}}{% raw %}", "\ud800", "\0\x1b[31m", "=1+1",
    "'><svg onload=alert(3)>", "../../../etc/passwd", "/etc/passwd", "data:text/html,<script>alert(4)</script>",
]  # fmt: skip


def line(n: int, **more: Any) -> dict[str, Any]:
    """Return a line of a list."""
    return {
        "url": f"{SITE}/files/{n}.csv", "mime": "text/csv", "size": 1000 * n, "sha256": f"{n:064}",
        "page": f"{SITE}/publication/{n}", "anchor": f"Download ({n} kB)", "path": f"files/{n:064}/{n}.csv", **more,
    }  # fmt: skip


def make(folder: Path, lines: Iterable[dict[str, Any]], answers: Iterable[Answer] = (), **state: Any) -> Path:
    """Make a folder of a crawl; without answers, it has no notes."""
    folder.mkdir(exist_ok=True)
    (folder / "manifest.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    if answers:
        book = NoteBook(folder)
        book.begin({"roots": [f"{SITE}/"], "types": "csv", "budget": 100, "robots": True, "delay": 1.0, "resumable": True,
                    "at": "2026-03-04T05:06:07+00:00"})  # fmt: skip
        for answer in answers:
            book.outcome(answer, elsewhere=[], left_out=[])
        book.state({"at": "2026-03-04T05:06:08+00:00", **state})
        book.close()
    return folder


def topic_line(n: int, relevance: float = 0.75, **more: Any) -> dict[str, Any]:
    """Return a line of the list of a search for a topic."""
    return {
        "url": f"https://h{n}.example/bees", "title": f"Bees {n}", "relevance": relevance, "host": f"h{n}.example",
        "domain": "h.example", "language": "en-GB", "depth": 2, "why": "keyword in the URL", "fetched_at": "2026",
        "path": [{"url": f"{SITE}/", "anchor": "no"}, {"url": f"{SITE}/list", "anchor": f"Honey {n}"}], **more,
    }  # fmt: skip


def make_topic(folder: Path, lines: Iterable[dict[str, Any]], answers: Iterable[Answer] = (), **state: Any) -> Path:
    """Make a folder of a search for a topic."""
    make(folder, [], answers, **state)
    (folder / "manifest.jsonl").unlink()
    (folder / "pages.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    return folder


def entity_line(n: int, *types: str, number: int = 1, **more: Any) -> dict[str, Any]:
    """Return a line of the list of a search for structured data."""
    values = {"@type": [*types], "name": f"Soup {n}", "author": {"@type": "Person", "name": "Ann"}}
    return {
        "url": f"https://h{n}.example/soup/{n}", "number": number, "types": [*types], "syntax": "json-ld",
        "values": values, "host": f"h{n}.example", "domain": "h.example", "depth": 2, "page": f"{SITE}/list",
        "anchor": f"Soups {n}", "why": "a seed", "fetched_at": "2026", **more,
    }  # fmt: skip


def make_structured(
    folder: Path, lines: Iterable[dict[str, Any]], answers: Iterable[Answer] = (), **state: Any
) -> Path:
    """Make a folder of a search for structured data."""
    make(folder, [], answers, **state)
    (folder / "manifest.jsonl").unlink()
    (folder / "entities.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    return folder


def hostile_structured(folder: Path) -> Path:
    """Make a folder of a search for structured data with hostile names."""
    folder.mkdir(parents=True)
    lines = []
    for evil in EVIL:
        lines.append(entity_line(1, evil, url=f"{SITE}/{evil}", values={"name": evil}, anchor=evil, why=evil))
        lines.append(entity_line(2, "Recipe", evil, url=evil, page=evil, values=[evil, [[evil]]], syntax=evil))
        lines.append(entity_line(3, url=f"http://{evil}/", number=evil, types=evil, values=evil, host=evil))
        lines.append(entity_line(4, url=f"http://{evil}", types=[3, None, evil], values={"name": {"name": [evil]}}))
    answers = [hit(1, url=f"{SITE}/{evil}", anchor=f"Honey {evil}", page=evil, mime="text/html") for evil in EVIL]
    answers += [hit(2, url=f"http://{evil}/", mime="text/html", moved_to=evil) for evil in EVIL]
    return make_structured(folder, lines, answers, reason="finished", seen={evil: evil for evil in EVIL} | {EVIL[0]: 7})


def hit(n: int, **more: Any) -> Answer:
    """Return the outcome of a link to a file."""
    answer = Answer(
        url=f"{SITE}/files/{n}.csv", status=200, mime="text/csv", size=1000 * n, sent=1, files=1.0,
        page=f"{SITE}/publication/{n}", anchor=f"Download ({n} kB)",
    )  # fmt: skip
    return answer._replace(**more)


def hostile_topic(folder: Path) -> Path:
    """Make a folder of a search for a topic with hostile names."""
    folder.mkdir(parents=True)
    lines = []
    for evil in EVIL:
        lines.append(topic_line(1, url=f"{SITE}/{evil}", title=evil, host=evil, domain=evil, language=evil, why=evil))
        lines.append(topic_line(2, url=evil, path=[{"url": evil, "anchor": evil}], depth=evil, fetched_at=evil))
        lines.append(topic_line(3, url=f"http://{evil}/", relevance=evil, path=evil))
        lines.append(topic_line(4, url=f"http://{evil}", relevance=1e999, path=[evil]))
    answers = [hit(1, url=f"{SITE}/{evil}", anchor=f"Honey {evil}", page=evil, files=0.0) for evil in EVIL]
    return make_topic(folder, lines, answers, reason="finished", parameters=[{"host": evil} for evil in EVIL])


def hostile(folder: Path) -> Path:
    """Make a folder with hostile names."""
    folder.mkdir(parents=True)
    lines, answers = [], []
    for evil in EVIL:
        lines.append(line(1, url=f"{SITE}/{evil}", name=evil, path=f"files/{evil}"))
        lines.append(line(2, url=evil, anchor=evil, page=evil, path=evil, mime=evil))
        lines.append(line(3, url=f"http://{evil}/", state=evil, page=f"{SITE}/{evil}/"))
        answers += [
            hit(1, url=evil, anchor=evil, page=evil, mime=evil), hit(2, files=0.0, error=evil, why=evil, url=f"b{evil}"),
            hit(3, url=f"http://{evil}", anchor=evil, page=f"{SITE}/{evil}/", status=404, files=0.0, error="http_error"),
        ]  # fmt: skip
    make(folder, lines, answers, reason=EVIL[0], left=EVIL, cost=EVIL[1], waiting=EVIL[2], used=EVIL[3], limits=3)
    book = NoteBook(folder, resumes=True)
    book.begin({"roots": EVIL, "types": EVIL[0], "budget": EVIL[1], "delay": EVIL[2], "agent": EVIL[3], "at": EVIL})
    book.outcome(hit(4), elsewhere=EVIL, left_out=EVIL)
    for n, evil in enumerate(EVIL):  # pages with broken links
        book.outcome(
            hit(n, url=f"{SITE}/in/{evil}", mime="text/html"), links=[link_key(f"http://{bad}") for bad in EVIL]
        )
    book.state(
        {
            "reason": EVIL[0],
            "ending": EVIL[1],
            "left": [None, "x", {}],
            "cost": 1e400,
            "parameters": [
                {"host": evil, "name": evil, "pairs": 3, "links": 1 << 70, "is_believed": True} for evil in EVIL
            ]
            + [*EVIL],
        }
    )
    book.close()
    skips = [{"url": evil, "reason": evil, "page": evil, "anchor": evil} for evil in EVIL]
    (folder / "skipped.jsonl").write_text("".join(json.dumps(each) + "\n" for each in skips))
    return folder


def hostile_importance(folder: Path) -> Path:
    """Make a folder of a search for important pages with hostile names."""
    folder.mkdir(parents=True)
    book = LinkBook(folder, resumes=False)
    every = {n + 100: (f"{SITE}/{evil}", evil) for n, evil in enumerate(EVIL)}
    lines = []
    for n, evil in enumerate([*EVIL, "home"]):
        url = evil if n % 3 == 0 else f"{SITE}/{n}"
        book.note(
            n, url, came="page", at=f"{SITE}/at/{evil}" if n % 2 else "", links=every | {(n + 1) % 15: ("", evil)}
        )
        lines.append({
            "url": f"{SITE}/at/{evil}" if n % 2 else url, "title": evil, "depth": evil, "status": 1 << 80, "page": evil,
            "anchor": evil, "fetched_at": evil,
        })  # fmt: skip
    (folder / "pages.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    notes = NoteBook(folder)
    notes.begin({"spider": "important", "roots": EVIL, "types": EVIL[0], "resumable": True})
    notes.outcome(hit(1, url=f"{SITE}/{EVIL[0]}"))
    notes.state({"reason": "focus_budget_requests", "waiting": 3})
    notes.close()
    return folder
