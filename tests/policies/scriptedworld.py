"""Crawls of the synthetic scripted site, simulated without a browser: how many files, by how many renderings."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from lxml import etree

from scrapy_focus import Crawl, FilesGoal, Link, Outcome, memory_frontier
from scrapy_focus.core.outstanding import most_out
from scrapy_focus.policies.branching.policy import BranchingBandit
from scrapy_focus.sites.scripted.plan import MIXES
from scrapy_focus.sites.scripted.site import ScriptedSite
from scrapy_focus.web.html import PlaceReader, page_links

if TYPE_CHECKING:
    from scrapy_focus import Pick

ROOT = "http://scripted.example"
RENDERING = 120  # plain pages that a rendering costs the machine
SENT = 3  # requests of a rendering
RECEIVED = 20_000  # bytes of one
CSV = "text/csv"

_APP = "html/body/div#root"
_MADE = {"/app/": f"{_APP}/ul.results/li/a", "/files/": f"{_APP}/ul.resources/li/a"}
_MORE, _BUTTON, _NEXT = "html/body/ul.more/li/a", "html/body/button#export", f"{_APP}/a.next"


class Found(NamedTuple):
    """A link of a page."""

    path: str
    anchor: str
    tag_path: str


class World:
    """What a GET and a rendering of each page of a scripted site bring."""

    def __init__(self, site: ScriptedSite) -> None:
        self.site = site
        self._plain: dict[str, list[Found]] = {}
        self._rendered: dict[str, list[Found]] = {}

    def plain(self, path: str) -> list[Found]:
        """Return the links of the HTML."""
        found = self._plain.get(path)
        if found is None:
            root = etree.HTML(self.site.fetch(path).body)
            reader = PlaceReader()
            found = [
                Found(url.removeprefix(ROOT), place.anchor, place.tag_path)
                for url, element in page_links(root, ROOT + path)
                if element.tag == "a"
                for place in [reader.place(element)]
            ]
            self._plain[path] = found
        return found

    def rendered(self, path: str) -> list[Found]:
        """Return the links that a browser shows."""
        found = self._rendered.get(path)
        if found is None:
            plain = {each.path: each for each in self.plain(path)}
            nav = {each.path: each._replace(tag_path=f"{_APP}/nav/a") for each in self.plain("/")}
            known = plain or nav
            found = [known.get(each) or self._made(path, each) for each in self.site.rendered_links(path)]
            self._rendered[path] = found
        return found

    def _made(self, path: str, link: str) -> Found:
        """Return a link that scripts made."""
        if link.startswith("/export?"):
            return Found(link, "Download CSV", _BUTTON)
        if path.startswith("/collections/"):
            return Found(link, "Table", _MORE)
        if link.startswith("/app/") and "dataset" not in link:
            return Found(link, "Next page", _NEXT)
        return Found(link, "Download CSV", next(place for start, place in _MADE.items() if link.startswith(start)))


@cache
def world(mix: int, seed: int) -> World:
    """Return the world of a mix of the scripted site."""
    return World(ScriptedSite(mix=MIXES[mix], seed=seed))


@dataclass
class Run:
    """What a crawl asked for and found."""

    rows: list[tuple[int, int, int]] = field(default_factory=lambda: [(0, 0, 0)])  # requests, work, files
    gets: int = 0
    rendered: list[str] = field(default_factory=list)

    @property
    def files(self) -> int:
        """Files found."""
        return self.rows[-1][2]

    @property
    def requests(self) -> int:
        """Requests sent."""
        return self.rows[-1][0]

    @property
    def work(self) -> int:
        """What it cost the machine, in plain pages."""
        return self.rows[-1][1]

    def found_with(self, requests: float) -> int:
        """Return the files found with so many requests."""
        return max(files for sent, _, files in self.rows if sent <= requests)

    def area(self, requests: float, files: int) -> float:
        """Return the mean share of the files found, over so many requests."""
        return float(np.mean([self.found_with(at) for at in np.linspace(0, requests, 200)])) / files


def crawl_world(
    where: World, policy: BranchingBandit, *, mode: str = "learn", in_flight: int = 1, seed: int = 0, most: int = 10**9
) -> Run:
    """Crawl a scripted site.

    Parameters
    ----------
    where
        The site.
    policy
        Who decides.
    mode
        ``"learn"``: pages say whether they have scripts; ``"never"``: none does; ``"always"``: a browser fetches all.
    in_flight
        Picks that are out at most.
    seed
        Of the policy.
    most
        Requests.
    """
    crawl = Crawl(
        policy, frontier=memory_frontier, goal=FilesGoal(types=[CSV]), seed=seed, strict=True, explain=True,
        clock=lambda: 0.0,
    )  # fmt: skip
    crawl.add([Link(f"{ROOT}/", key_of("/"), ROOT, 0)])
    run = Run()
    out: deque[Pick] = deque()
    while True:
        while len(out) < min(in_flight, most_out(crawl.counts["outcomes"])) and run.requests < most:
            pick = crawl.next()
            if pick is None:
                break
            out.append(pick)
        if not out:
            return run
        pick = out.popleft()
        outcome, links = answer(where, pick, mode)
        is_page = outcome.mime == "text/html"
        by_browser = is_page and (mode == "always" or pick.method == "RENDER")
        run.gets += not by_browser
        if by_browser:
            run.rendered.append(pick.url.removeprefix(ROOT))
        crawl.report(outcome, links)
        run.rows.append(
            (run.requests + outcome.requests, run.work + (RENDERING if by_browser else 1), int(crawl.rewards))
        )


def answer(where: World, pick: Pick, mode: str) -> tuple[Outcome, list[Link]]:
    """Return what fetching a pick comes to, and its links."""
    path = pick.url.removeprefix(ROOT)
    page = where.site.fetch(path)
    if page.mime != "text/html":
        return Outcome(pick=pick, status=page.status, mime=page.mime, size=page.size, items=1.0, seconds=0.01), []
    by_browser = mode == "always" or pick.method == "RENDER"
    links = [
        Link(ROOT + each.path, key_of(each.path), ROOT, pick.depth + 1, each.anchor, each.tag_path, each.anchor)
        for each in (where.rendered(path) if by_browser else where.plain(path))
    ]
    outcome = Outcome(
        pick=pick, status=200, mime="text/html", size=page.size, seconds=0.3 if by_browser else 0.01,
        scripted=mode == "learn" and b"<script" in page.body, requests=SENT if by_browser else 1,
        received=RECEIVED if by_browser else page.size,
    )  # fmt: skip
    return outcome, links


_keys: dict[str, int] = {}


def key_of(path: str) -> int:
    """Return the key of a path."""
    return _keys.setdefault(path, len(_keys) + 1)
