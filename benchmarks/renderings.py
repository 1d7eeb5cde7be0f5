"""Which pages the default policy renders, compared with one that has a list: without a browser.

Measured: crawls of the synthetic scripted site where a GET brings the links of the HTML and a rendering those that
scripts make, as the plan of the site defines them. The policy, the crawl and the frontier are those of a live crawl.
*Work* is the cost for the machine, in plain pages; a rendering counts for 120 (100 to 150 were measured) and sends 3
requests. Areas are under the curve of the files found, over the requests of the policy with a list of the templates
that need a browser, and of those among them that need no plain page first. A file that scripts make (``blob:``) is an
item of its page; with ``--no-blobs`` it is nothing. Not measured: time, a browser, JSON behind pages, pages that a
browser loses. ::

    python benchmarks/renderings.py
    python benchmarks/renderings.py --mix 72 --seed 5 6 7 8 9 --in-flight 16
"""

from __future__ import annotations

import argparse
import zlib
from collections import deque
from dataclasses import dataclass, field
from functools import cache
from statistics import mean
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from lxml import etree

from scrapy_focus import Crawl, FilesGoal, Link, Mission, Outcome, memory_frontier
from scrapy_focus.core.outstanding import most_out
from scrapy_focus.lab.sites.scripted.plan import MIXES
from scrapy_focus.lab.sites.scripted.site import ScriptedSite
from scrapy_focus.policies.branching.policy import BranchingBandit
from scrapy_focus.policies.branching.renderings import MISSES, SHELLS, TRIES, Rendered, Templates
from scrapy_focus.web.html import PlaceReader, page_links

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy_focus import Pick, Policy
    from scrapy_focus.core.frontier import Frontier

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


class Web(Protocol):
    """What a GET and a rendering of each path bring."""

    def is_page(self, path: str) -> bool:
        """Whether there is a page, and no file."""

    def has_scripts(self, path: str) -> bool:
        """Whether a page has scripts."""

    def plain(self, path: str) -> list[Found]:
        """Return the links in the HTML of a page."""

    def rendered(self, path: str) -> list[Found]:
        """Return the links that a browser shows."""

    def items(self, path: str) -> int:
        """Return how many items only a browser shows."""


class World:
    """What a GET and a rendering of each page of a scripted site bring."""

    def __init__(self, site: ScriptedSite, *, blobs: bool = True) -> None:
        self.site = site
        self.blobs = blobs
        self._scripts: dict[str, bool] = {}
        self._plain: dict[str, list[Found]] = {}
        self._rendered: dict[str, list[Found]] = {}

    def is_page(self, path: str) -> bool:
        return not path.startswith(("/files/", "/export?"))

    def has_scripts(self, path: str) -> bool:
        if path not in self._scripts:
            self._scripts[path] = b"<script" in self.site.fetch(path).body
        return self._scripts[path]

    def plain(self, path: str) -> list[Found]:
        found = self._plain.get(path)
        if found is None:
            root, reader = etree.HTML(self.site.fetch(path).body), PlaceReader()
            elements = [(url, element) for url, element in page_links(root, ROOT + path) if element.tag == "a"]
            places = [(url.removeprefix(ROOT), reader.place(element)) for url, element in elements]
            found = self._plain[path] = [Found(to, place.anchor, place.tag_path) for to, place in places]
        return found

    def rendered(self, path: str) -> list[Found]:
        found = self._rendered.get(path)
        if found is None:
            nav = [each._replace(tag_path=f"{_APP}/nav/a") for each in self.plain("/")]
            known = {each.path: each for each in self.plain(path) or nav}
            found = [known.get(to) or _made(path, to) for to in self.site.rendered_links(path)]
            self._rendered[path] = found
        return found

    def items(self, path: str) -> int:
        return int(self.blobs and self.site.blob(path) is not None)


def _made(path: str, to: str) -> Found:
    """Return a link that scripts made."""
    if to.startswith("/export?"):
        return Found(to, "Download CSV", _BUTTON)
    if path.startswith("/collections/"):
        return Found(to, "Table", _MORE)
    if to.startswith("/app/") and "dataset" not in to:
        return Found(to, "Next page", _NEXT)
    return Found(to, "Download CSV", next(place for start, place in _MADE.items() if to.startswith(start)))


@cache
def world(mix: int, seed: int, *, blobs: bool = True) -> World:
    """Return the world of a mix of the scripted site."""
    return World(ScriptedSite(mix=MIXES[mix], seed=seed), blobs=blobs)


class Told(Templates):
    """Knows which templates of a site need a browser."""

    def __init__(self, site: ScriptedSite, root: str = ROOT) -> None:
        super().__init__()
        for path in site.html_paths():
            known = Rendered(plain=TRIES, tried=TRIES, misses=MISSES, looks=20)
            if site.needs_browser(path):
                is_shell = not site.plain_links(path)
                known = Rendered(plain=SHELLS, shells=SHELLS * is_shell, tried=10**6, paid=10**6)
            self._put(self.of(root + path), known)

    def at_once(self, template: str) -> bool:
        return True


class Oracle(BranchingBandit):
    """The default policy, with a list of the templates that need a browser."""

    def __init__(self, site: ScriptedSite) -> None:
        super().__init__()
        self.site = site

    def open(self, frontier: Frontier, rng: np.random.Generator, mission: Mission) -> None:
        super().open(frontier, rng, mission)
        self.templates = Told(self.site)


@dataclass
class Run:
    """The requests and finds of a crawl."""

    rows: list[tuple[int, int, int]] = field(default_factory=lambda: [(0, 0, 0)])  # requests, work, files
    picks: list[tuple[str, str]] = field(default_factory=list)  # method and path, in the order of the answers
    rendered: list[str] = field(default_factory=list)  # paths

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

    def with_requests(self, requests: float) -> int:
        """Return the files found with so many requests."""
        return max(files for sent, _, files in self.rows if sent <= requests)

    def area(self, requests: float) -> float:
        """Return the mean number of files found, over so many requests."""
        return mean(self.with_requests(at) for at in np.linspace(0, requests, 200).tolist())


def crawl_web(
    web: Web, policy: Policy, *, mode: str = "learn", in_flight: int = 1, seed: int = 0, most: int = 20_000
) -> Run:
    """Crawl a site.

    Parameters
    ----------
    web
        The site.
    policy
        Who decides.
    mode
        ``"learn"``: pages say whether they have scripts; ``"never"``: none does; ``"always"``: a browser fetches all.
    in_flight
        Maximum picks in flight.
    seed
        Of the policy.
    most
        Requests, after which nothing more is chosen.
    """
    goal = FilesGoal(types=[CSV])
    crawl = Crawl(
        policy, frontier=memory_frontier, goal=goal, mission=Mission.of(goal, renders=mode == "learn"), seed=seed,
        strict=True, clock=lambda: 0.0,
    )  # fmt: skip
    crawl.add([link_to(Found("/", "", ""), 0)])
    return go_on(crawl, web, mode=mode, in_flight=in_flight, most=most)


def go_on(crawl: Crawl, web: Web, *, mode: str = "learn", in_flight: int = 1, most: int = 20_000) -> Run:
    """Continue a crawl, with so many requests more; see :func:`crawl_web`."""
    run = Run()
    out: deque[Pick] = deque()
    while True:
        while len(out) < min(in_flight, most_out(crawl.counts["outcomes"])) and run.requests < most:
            pick = crawl.next()
            if pick is None:
                break
            out.append(pick)
        if not out:
            break
        pick = out.popleft()
        outcome, links = answer(web, pick, mode)
        path = pick.url.removeprefix(ROOT)
        by_browser = outcome.requests > 1
        run.picks.append((pick.method, path))
        if by_browser:
            run.rendered.append(path)
        crawl.report(outcome, links)
        work = run.work + (RENDERING if by_browser else 1)
        run.rows.append((run.requests + outcome.requests, work, int(crawl.rewards)))
    return run


def answer(web: Web, pick: Pick, mode: str) -> tuple[Outcome, list[Link]]:
    """Return the outcome of a pick, and its links."""
    path = pick.url.removeprefix(ROOT)
    if not web.is_page(path):
        return Outcome(pick=pick, status=200, mime=CSV, size=30_000, seconds=0.01), []
    page = Outcome(pick=pick, status=200, mime="text/html", size=10_000, seconds=0.01)
    if mode == "always" or pick.method == "RENDER":
        page = page._replace(seconds=0.3, requests=SENT, received=RECEIVED, items=float(web.items(path)))
        return page, [link_to(found, pick.depth + 1) for found in web.rendered(path)]
    page = page._replace(scripted=mode == "learn" and web.has_scripts(path))
    return page, [link_to(found, pick.depth + 1) for found in web.plain(path)]


def link_to(found: Found, depth: int) -> Link:
    """Return the link that was found."""
    key = zlib.crc32(found.path.encode())
    return Link(ROOT + found.path, key, ROOT, depth, found.anchor, found.tag_path, found.anchor)


def compare(mix: int, seeds: Sequence[int], in_flight: int, *, blobs: bool) -> None:
    """Print the finds of the policy on a mix of the site, beside those that it is compared with."""
    runs: dict[str, list[Run]] = {name: [] for name in ("told", "learned", "all", "none")}
    for seed in seeds:
        web = world(mix, seed, blobs=blobs)
        policies = {"told": (Oracle(web.site), "learn"), "learned": (BranchingBandit(), "learn"),
                    "all": (BranchingBandit(), "always"), "none": (BranchingBandit(), "never")}  # fmt: skip
        for name, (policy, mode) in policies.items():
            runs[name].append(crawl_web(web, policy, mode=mode, in_flight=in_flight, seed=seed))
    print(f"\nmix {mix}, seeds {min(seeds)} to {max(seeds)}, {in_flight} in flight")
    print("         files rendered requests    work | of told: files (least) requests  work (most) |"
          " work of all | files at 25, 50, 75 %, area")  # fmt: skip
    for name, of in runs.items():
        pairs = list(zip(of, runs["told"], strict=True))
        shares, works = ([getattr(a, x) / getattr(b, x) for a, b in pairs] for x in ("files", "work"))
        requests = mean(a.requests / b.requests for a, b in pairs)
        of_all = mean(a.work / b.work for a, b in zip(of, runs["all"], strict=True))
        at = [mean(a.with_requests(part * b.requests) / b.files for a, b in pairs) for part in (0.25, 0.5, 0.75)]
        area = mean(a.area(b.requests) / b.files for a, b in pairs)
        print(
            f"{name:8}{mean(r.files for r in of):6.0f}{mean(len(r.rendered) for r in of):9.1f}"
            f"{mean(r.requests for r in of):9.0f}{mean(r.work for r in of):8.0f} |"
            f"{mean(shares):15.3f} ({min(shares):.3f}) {requests:8.3f} {mean(works):6.3f} ({max(works):.3f}) |"
            f"{of_all:12.3f} | " + " ".join(f"{share:.2f}" for share in at) + f"  {area:.3f}"
        )
    for seed, run in zip(seeds, runs["learned"], strict=True):
        needless, missed = wasted(world(mix, seed).site, run)
        print(f"   seed {seed}: rendered {len(run.rendered)}, needlessly {needless}, missed {missed}")


def wasted(site: ScriptedSite, run: Run) -> tuple[int, int]:
    """Return how many pages were rendered needlessly, and how many that need it were not."""
    needed = {path for path in site.html_paths() if site.needs_browser(path)}
    return len([path for path in run.rendered if path not in needed]), len(needed - set(run.rendered))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mix", type=int, nargs="+", choices=sorted(MIXES), default=sorted(MIXES))
    parser.add_argument("--seed", type=int, nargs="+", default=[5, 6, 7, 8, 9], help="0 to 4 were used to choose rules")
    parser.add_argument("--in-flight", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--blobs", action=argparse.BooleanOptionalAction, default=True)
    args = parser.parse_args()
    for in_flight in args.in_flight:
        for mix in args.mix:
            compare(mix, args.seed, in_flight, blobs=args.blobs)


if __name__ == "__main__":
    main()
