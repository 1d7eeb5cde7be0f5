"""Small sites made by hand, as a simulated crawl meets them, and policies that write down what they see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from hypothesis import strategies as st

from scrapy_focus import Placement, Policy
from scrapy_focus.core.types import State
from scrapy_focus.lab.recordings.format import RecordedSite
from scrapy_focus.lab.recordings.writer import Answer, Rendering, SiteWriter

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from scrapy_focus import Link, Outcome, Pick
    from scrapy_focus.lab.replay.harvest import Harvest

HOST = "http://a.example"
CSV = "text/csv"
Fields = dict[str, Any]


def page(*hrefs: str, status: int = 200, text: str = "", **rest: Any) -> Fields:
    """A page with these links."""
    body = text + "".join(f'<p class="x"><a href="{href}">to {href}</a></p>' for href in hrefs)
    return {"status": status, "headers": {"Content-Type": "text/html"}, "body": body.encode(), **rest}


def file(content: str | int = "1", mime: str = CSV, *, status: int = 200, **rest: Any) -> Fields:
    """A file with this content, or with so many bytes."""
    body = content.encode() if isinstance(content, str) else b"x" * content
    return {"status": status, "headers": {"Content-Type": mime}, "body": body, **rest}


def moved(to: str, *, mime: str = "", status: int = 302, size: int = 0) -> Fields:
    """An answer that leads on."""
    headers = {"Location": to} | ({"Content-Type": mime} if mime else {})
    return {"status": status, "headers": headers, "body": b"", "size": size}


def refresh(to: str, *, status: int = 200) -> Fields:
    """A page that sends its visitors on."""
    return page(status=status, text=f'<meta http-equiv="refresh" content="0; url={to}">')


def failing(error: str = "failure: DownloadTimeoutError") -> Fields:
    """No response."""
    return {"error": error}


GONE = page(status=404)
BUSY = page(status=503)
FORBIDDEN = failing("ignored")


def size_of(answer: Fields) -> tuple[int, int]:
    """Return the bytes of the headers and of the body of an answer."""
    headers = sum(len(f"{name}: {value}\r\n") for name, value in answer.get("headers", {}).items())
    return headers, answer.get("size") or len(answer.get("body", b""))


def url_of(path: str) -> str:
    """Return the URL of a path; one with a host stays as it is."""
    return path if "//" in path else HOST + path


def site_of(
    folder: Path,
    answers: Mapping[str, Fields],
    *,
    roots: Sequence[str] = ("/",),
    bodies: bool = False,
    rendered: Mapping[str, Fields] | None = None,
) -> RecordedSite:
    """Record what each path answers, and what a browser shows. What is linked and has no answer was never recorded."""
    path, firsts = folder / "site.sqlite", [url_of(root) for root in roots]
    with SiteWriter(path, roots=firsts, bodies=bodies, renderings=rendered is not None, source="by hand") as writer:
        for name, fields in answers.items():
            writer.add(Answer(url=url_of(name), **fields))
        for name, fields in (rendered or {}).items():
            writer.add(Rendering(url=url_of(name), **fields))
        writer.finish()
    return RecordedSite(path)


#: Sites drawn at random: of each URL its kind, where it links, and where it leads.
KINDS = [
    "page",
    "page",
    "file",
    "copy",
    "moved",
    "refresh",
    "gone",
    "busy",
    "broken",
    "refused",
    "no",
    "off",
    "image",
    "?",
]
GRAPHS = st.lists(
    st.tuples(st.sampled_from(KINDS), st.lists(st.integers(0, 13), max_size=5), st.integers(0, 13)),
    min_size=1,
    max_size=14,
)


def graph(folder: Path, drawn: list[tuple[str, list[int], int]]) -> RecordedSite:
    """Record a site where anything may link or lead to anything, on two hosts."""

    def where(i: int) -> str:
        number = i % (len(drawn) + 1)
        host = "http://sub.a.example" if number % 4 == 3 else HOST
        return host + (f"/{number}" if number else "/")

    answers = {where(0): page(*(where(i) for i in range(1, min(4, len(drawn)) + 1)))}
    for i, (kind, links, to) in enumerate(drawn, 1):
        answer = {
            "page": page(*map(where, links)), "file": file(f"{i}" * i), "copy": file("copy"), "moved": moved(where(to)),
            "refresh": refresh(where(to)), "gone": GONE, "busy": BUSY, "broken": failing(), "no": FORBIDDEN,
            "refused": failing("failure: DownloadConnectionRefusedError"), "off": moved("http://b.example/"),
            "image": file(100_000 if to % 2 else 100, "image/png"), "?": None,
        }[kind]  # fmt: skip
        if answer is not None:
            answers[where(i)] = answer
    return site_of(folder, answers)


def course(harvest: Harvest, site: RecordedSite) -> list[str]:
    """Return the path of each request, in order; HEADs with their method."""
    urls = [site.urls[page].removeprefix(HOST) for page in harvest.pages[1:].tolist()]
    return [f"HEAD {url}" if head else url for url, head in zip(urls, harvest.heads[1:].tolist(), strict=True)]


class Watching(Policy):
    """First in, first out; with a HEAD first for some paths. Writes down the links it gets and what it learns."""

    reads_page: ClassVar[bool] = False

    def __init__(self, *, heads: Collection[str] = ()) -> None:
        self.heads = heads
        self.placed: list[Link] = []
        self.learnt: list[Outcome] = []
        self.seen: list[tuple[str, str]] = []  # what happened, in order
        self._found = 0.0

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        if source is not None and links[0].state == State.PROBED:
            return [Placement(0, 1.0)]
        self.placed += links
        placements = []
        for link in links:
            self._found -= 1
            path = link.url.removeprefix(HOST)
            placements.append(Placement(0, self._found, method="HEAD" if path in self.heads else "GET"))
        return placements

    def select(self, busy: Collection[str]) -> Pick | None:
        pick = self.frontier.pop(0, busy)
        if pick is not None:
            self.seen.append(("select", pick.url.removeprefix(HOST)))
        return pick

    def learn(self, outcome: Outcome) -> None:
        self.seen.append(("learn", outcome.pick.url.removeprefix(HOST)))
        self.learnt.append(outcome)

    @property
    def errors(self) -> dict[str, str]:
        """How each path ended that did not end well."""
        return {each.pick.url.removeprefix(HOST): each.error for each in self.learnt if each.error}


class Reading(Watching):
    """A :class:`Watching` that also reads the places of links."""

    reads_page: ClassVar[bool] = True


class Curious(Watching):
    """A :class:`Watching` that also gets links that are known; it leaves them where they are, waiting or done."""

    wants_known: ClassVar[frozenset[State]] = frozenset(State) - {State.NEW}

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        placements = super().place(links, source)
        return [place if link.state == State.NEW else None for link, place in zip(links, placements, strict=True)]
