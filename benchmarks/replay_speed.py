"""How fast recorded sites are crawled: simulated requests for each minute of CPU, with a live crawl beside them.

Measured: CPU time (user and system) of whole simulated crawls of a site of 10,000 pages with 100 links each and 3,000
data files, by several policies, on one core; loading the recording is given apart. Beside it, the requests that
``scrapy crawl datasets`` of the example project sends in a minute of its CPU over HTTP on 127.0.0.1 to the same site, in
the same run. Not measured: memory. ::

    python benchmarks/replay_speed.py
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

from real_sites import crawl
from scrapy_focus import FilesGoal
from scrapy_focus.lab.recordings.format import RecordedSite
from scrapy_focus.lab.recordings.importers.folder import record_site
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.lab.replay.truth import SiteTruth
from scrapy_focus.lab.sites.portal.portal import Page
from scrapy_focus.lab.sites.server import SiteServer
from scrapy_focus.policies.branching import BranchingBandit
from scrapy_focus.policies.focused import Focused
from scrapy_focus.policies.orderings import BreadthFirst
from scrapy_focus.policies.tagpath.offline import TagPathOffline
from scrapy_focus.policies.tagpath.policy import TagPath

POLICIES = {
    "BreadthFirst": BreadthFirst, "BranchingBandit": BranchingBandit, "sleeping bandit (TagPath)": TagPath, "TP-OFF": TagPathOffline, "FOCUSED": Focused,
}  # fmt: skip
_PLACES = ("main", "teaser", "catalogue", "related", "text", "site")  # classes of the elements with links


class Dense:
    """Pages that link to a hundred others each; every tenth one links to data files too.

    Parameters
    ----------
    pages
        How many.
    links
        On each.
    """

    def __init__(self, pages: int, links: int) -> None:
        self.pages = pages
        rng = np.random.default_rng(0)
        self._links = rng.integers(pages, size=(pages, links))
        self._links[:, 0] = np.minimum(np.arange(pages) * 2 + 1, pages - 1)  # so that all can be reached
        self._links[:, 1] = np.minimum(np.arange(pages) * 2 + 2, pages - 1)

    def fetch(self, path: str) -> Page:
        """Answer a page, a file, or 404."""
        kind, _, number = path.strip("/").partition("/")
        if kind == "file":
            return Page.of(b"a,b\n" + number.encode(), mime="text/csv")
        page = int(number) if kind == "page" and number.isdecimal() else 0 if path == "/" else -1
        if not 0 <= page < self.pages:
            return Page.of(b"", status=404)
        items = [
            f'<div class="{_PLACES[target % 6]} box-{page % 40}"><a href="/page/{target}">{target}</a></div>'
            for target in self._links[page].tolist()
        ]
        if page % 10 == 7:
            items += [f'<td class="download"><a href="/file/{page}-{i}.csv">{i}</a></td>' for i in range(3)]
        return Page.of(f"<!DOCTYPE html><title>{page}</title><main>{''.join(items)}</main>".encode())


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--pages", type=int, default=10_000)
    parser.add_argument("--links", type=int, default=100)
    parser.add_argument("--live", type=int, default=1_000, help="requests of the live crawl")
    options = parser.parse_args()
    dense = Dense(options.pages, options.links)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "dense.sqlite")
        started = time.process_time()
        record_site(dense, path, root="http://127.0.0.1/")
        seconds = time.process_time() - started
        size = path.stat().st_size / 1e6
        started = time.process_time()
        site = RecordedSite(path)
        truth = SiteTruth(site, FilesGoal())
        loading = time.process_time() - started
        n_links = len(site.targets)
        print(f"{options.pages:,} pages, {n_links:,} links, {truth.exhaustive.worth:,.0f} files")
        print(f"recorded in {seconds:.0f} s of CPU ({1e6 * seconds / n_links:.0f} us a link); {size:.0f} MB")
        print(f"loaded in {loading:.1f} s\n\n| crawl | requests | CPU s | requests a minute |\n|---|--:|--:|--:|")
        for name, policy in POLICIES.items():
            started = time.process_time()
            harvest = simulate(policy(), FilesGoal(), site, truth=truth)
            _print(f"simulated, {name}", harvest.requests, time.process_time() - started)
    with SiteServer(dense) as server:
        before = _children()
        crawl(server.url, policy="scrapy_focus.policies.tagpath.TagPath", budget=options.live, seed=0)
        _print("live over HTTP, sleeping bandit (TagPath)", server.requests, _children() - before)


def _print(what: str, requests: int, seconds: float) -> None:
    print(f"| {what} | {requests:,} | {seconds:.1f} | {60 * requests / seconds:,.0f} |", flush=True)


def _children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
