"""The synthetic web of links: its shape, what can be reached, who is important; and crawls of it without a file."""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING

import numpy as np
import pytest

from linkweb.crawl import WebCrawl, crawl_web, key_of, number_of
from linkweb.web import LinkWeb
from scrapy_focus import FilesGoal, Placement, State
from scrapy_focus.jobs.job import Job
from scrapy_focus.lab.recordings.format import RecordedSite
from scrapy_focus.lab.recordings.writer import Answer, SiteWriter
from scrapy_focus.lab.replay.importance_metrics import backlinks, pagerank
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.policies.bases import Ordering
from scrapy_focus.policies.importance import Importance
from scrapy_focus.policies.orderings import BreadthFirst, Random

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from scrapy_focus.core.types import Link, Outcome

pytestmark = pytest.mark.slow

SEEDS = (1, 2)


class MostLinked(Ordering):
    """Links on most pages first, of equals those found first. It counts a start once more."""

    reads_page = False

    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()
        self.found: dict[int, int] = {}
        self.also: list[tuple[int, ...]] = []

    def rank(self, link: Link, source: Outcome | None) -> float:
        self.counts[link.key] += 1
        self.found[link.key] = len(self.found)
        return self._rank(link.key)

    def know(self, keys: Sequence[int], source: Outcome) -> None:
        for key in keys:
            self.counts[key] += 1
        waiting = [key for key, state in zip(keys, self.frontier.states(keys), strict=True) if state == State.WAITING]
        self.frontier.move(waiting, [Placement(0, self._rank(key)) for key in waiting])

    def learn(self, outcome: Outcome) -> None:
        self.also.append(outcome.also)

    def _rank(self, key: int) -> float:
        return self.counts[key] - self.found[key] * 1e-9


def columns(web: LinkWeb) -> list[list[int]]:
    """Return all of a web as lists."""
    return [column.tolist() for column in (web.starts, web.targets, web.hosts, web.redirects)]


def targets_of(web: LinkWeb, url: int) -> list[int]:
    return web.targets[web.starts[url] : web.starts[url + 1]].tolist()


def queue(web: LinkWeb, start: int) -> list[int]:
    """Return what a breadth-first crawl without redirects visits, with a plain queue."""
    seen, order, waiting = {start}, [], deque([start])
    while waiting:
        order.append(waiting.popleft())
        for target in targets_of(web, order[-1]):
            if target not in seen:
                seen.add(target)
                waiting.append(target)
    return order


def addresses(web: LinkWeb) -> list[str]:
    """Return the URLs of a web on one host, as a recording is of one site."""
    return [url.replace("http://", "http://web.test/") for url in web.urls]


def record(web: LinkWeb, start: int, path: Path) -> RecordedSite:
    """Record a web as pages in HTML."""
    urls = addresses(web)
    with SiteWriter(path, roots=[urls[start]]) as writer:
        for url in range(web.n_urls):
            if web.redirects[url] >= 0:
                writer.add(Answer(url=urls[url], status=302, headers={"Location": urls[web.redirects[url]]}))
                continue
            body = "".join(f'<p><a href="{urls[target]}">x</a></p>' for target in targets_of(web, url))
            html = f"<html><body>{body}</body></html>".encode()
            writer.add(Answer(url=urls[url], status=200, headers={"Content-Type": "text/html"}, body=html))
        writer.finish()
    return RecordedSite(path)


# The web


@pytest.mark.parametrize("options", [{}, {"clusters": 2}, {"aliases": 0.2}])
def test_a_seed_makes_a_web(options: dict[str, float]) -> None:
    """Equal arguments make the same web, another seed makes another one."""
    first, again, other = (columns(LinkWeb.make(500, seed=seed, **options)) for seed in (1, 1, 2))
    assert first == again != other


@pytest.mark.parametrize("seed", SEEDS)
def test_the_shape_of_a_web(seed: int) -> None:
    """As many pages as asked for, hosts in a row; each link once, none to the page itself; the shares that are said."""
    web = LinkWeb.make(30_000, seed=seed)
    assert web.n_urls == 30_000
    assert (np.diff(web.hosts) >= 0).all()
    sizes = np.bincount(web.hosts)
    assert sizes.min() >= 1
    assert sizes.max() > 20 * np.median(sizes)
    source = np.repeat(np.arange(web.n_urls), np.diff(web.starts))
    assert (source != web.targets).all()
    assert len(np.unique(source * web.n_urls + web.targets)) == web.n_links == web.starts[-1]
    within = web.hosts[source] == web.hosts[web.targets]
    first = np.searchsorted(web.hosts, np.arange(len(sizes)))[web.hosts]
    home = web.targets == first[web.targets]
    assert 0.6 < within.mean() < 0.8  # three of four, fewer after dropping repeated links
    assert 0.6 < home[~within].mean() < 0.85  # those of small hosts come by chance, too
    assert (web.targets - first[web.targets])[within].mean() < 0.4 * sizes[web.hosts[source]][within].mean()
    counts = np.log(np.diff(web.starts)[np.diff(web.starts) > 0])
    assert np.exp(counts.mean()) < 0.8 * np.exp(counts).mean()  # a long tail
    assert len(set(web.urls)) == web.n_urls
    assert web.urls[int(first[5])] == f"http://h{web.hosts[5]}.test/"


def test_what_can_be_reached_is_what_links_lead_to() -> None:
    """Against a plain queue; a redirect leads on; the part that is reached is whole, and as linked as before."""
    web = LinkWeb.make(2_000, seed=3, aliases=0.1)
    home = int(np.searchsorted(web.hosts, np.argmax(np.bincount(web.hosts))))
    seen, waiting = {home}, deque([home])
    while waiting:
        url = waiting.popleft()
        leads = [int(web.redirects[url])] if web.redirects[url] >= 0 else targets_of(web, url)
        waiting.extend(target for target in leads if target not in seen)
        seen.update(leads)
    assert set(web.reachable(home).tolist()) == seen
    part, start = web.reached()
    assert len(seen) <= part.n_urls < web.n_urls
    assert len(part.reachable(start)) == part.n_urls
    kept = np.sort(web.reachable(home))
    part = web.part(kept)
    for number, url in enumerate(kept.tolist()):
        assert [int(kept[target]) for target in targets_of(part, number)] == targets_of(web, url)
        leads = int(part.redirects[number])
        assert (int(kept[leads]) if leads >= 0 else -1) == web.redirects[url]
    alias = int(np.flatnonzero(web.redirects >= 0)[0])
    assert web.part(np.array([0, alias])).n_urls == 1 + (web.redirects[alias] == 0)


def test_a_dense_cluster_has_one_way_in() -> None:
    """All pages of it link to each other, and one link leads to it from outside, as without it no page would."""
    web = LinkWeb.make(2_000, seed=4, clusters=3, cluster_pages=25)
    plain = LinkWeb.make(2_000, seed=4)
    assert web.n_urls == plain.n_urls + 75
    source = np.repeat(np.arange(web.n_urls), np.diff(web.starts))
    for cluster in range(3):
        first = 2_000 + 25 * cluster
        pages = set(range(first, first + 25))
        for page in pages:
            assert pages - {page} <= set(targets_of(web, page))
        into = [
            (a, b) for a, b in zip(source.tolist(), web.targets.tolist(), strict=True) if b in pages and a not in pages
        ]
        assert len(into) == 1
        assert into[0][1] == first
        assert into[0][0] < 2_000
    back = web.targets[(source >= 2_000)]
    assert (back < 2_000).any()
    many = LinkWeb.make(2_000, seed=4, clusters=1, cluster_pages=25, ways_in=8)
    source = np.repeat(np.arange(many.n_urls), np.diff(many.starts))
    into = many.targets[(source < 2_000) & (many.targets >= 2_000)]
    assert set(into.tolist()) == {2_000}
    assert 1 < len(into) <= 8  # a page may be drawn twice


def test_importance_follows_aliases(tmp_path: Path) -> None:
    """Back-links and PageRank are those of the same web as a recorded site; an alias has none."""
    web, start = LinkWeb.make(400, seed=5, aliases=0.3).reached()
    site = record(web, start, tmp_path / "web.sqlite")
    number = [site.ids[url] for url in addresses(web)]
    assert (web.redirects >= 0).sum() > 20
    for measure in (backlinks, pagerank):
        ours = measure(web.page_links())
        assert ours == pytest.approx(measure(site)[number])
        assert not ours[web.redirects >= 0].any()
    assert pagerank(web.page_links())[web.redirects < 0].mean() == pytest.approx(1)
    linking: list[set[int]] = [set() for _ in range(web.n_urls)]
    for url in range(web.n_urls):
        for target in targets_of(web, url):
            linking[web.redirects[target] if web.redirects[target] >= 0 else target].add(url)
    assert backlinks(web.page_links()).tolist() == [len(pages - {url}) for url, pages in enumerate(linking)]


# Crawls


@pytest.mark.parametrize("seed", SEEDS)
def test_keys_and_numbers(seed: int) -> None:
    """Each URL has a unique key of 63 bits, which finds it again."""
    numbers = np.random.default_rng(seed).integers(1 << 40, size=200).tolist()
    keys = [key_of(number) for number in numbers]
    assert [number_of(key) for key in keys] == numbers
    assert all(0 <= key < 1 << 63 for key in keys)
    web, start = LinkWeb.make(300, seed=seed).reached()
    crawl = WebCrawl(web, BreadthFirst(), start=start)
    crawl.go()
    assert set(crawl.crawl.knows([key_of(url) for url in range(web.n_urls)])) == {State.FETCHED}
    crawl.close()


@pytest.mark.parametrize("concurrency", [1, 16])
def test_a_breadth_first_crawl_is_a_queue(concurrency: int) -> None:
    """All pages arrive, in the order of a plain queue, however many are in flight, as the first one arrives first."""
    web, start = LinkWeb.make(1_000, seed=6).reached()
    assert crawl_web(web, BreadthFirst(), start=start, concurrency=concurrency).tolist() == queue(web, start)


def test_with_many_in_flight_choices_know_less() -> None:
    """An order that depends on what was seen differs with 16 in flight, and visits the same pages."""
    web, start = LinkWeb.make(1_000, seed=6).reached()
    one, many = (crawl_web(web, MostLinked(), start=start, concurrency=n).tolist() for n in (1, 16))
    assert one != many
    assert sorted(one) == sorted(many) == list(range(web.n_urls))


def test_each_link_of_a_page_comes_once_new_or_known() -> None:
    """A policy that wants known links gets the keys of all links to pages that were seen before."""
    web, start = LinkWeb.make(500, seed=7).reached()
    policy = MostLinked()
    crawl_web(web, policy, start=start)
    counts = np.bincount(web.targets, minlength=web.n_urls)
    found = np.array([policy.counts[key_of(url)] for url in range(web.n_urls)])
    counts[start] += 1  # which the crawl starts with
    assert found.tolist() == counts.tolist()


def test_seeds_and_budgets() -> None:
    """A seed gives the same random order again; a budget counts requests, those of redirects too."""
    web, start = LinkWeb.make(600, seed=8, aliases=0.3).reached()
    orders = [crawl_web(web, Random(), start=start, seed=seed).tolist() for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]
    crawl = WebCrawl(web, BreadthFirst(), start=start, budget=100)
    order = crawl.go()
    assert crawl.crawl.budget.requests_used == 100
    assert 50 < len(order) < 100
    crawl.close()


def test_a_crawl_pauses_between_pages() -> None:
    """Crawling 10 pages, and then the others, is crawling all of them."""
    web, start = LinkWeb.make(300, seed=9).reached()
    crawl = WebCrawl(web, BreadthFirst(), start=start)
    assert crawl.go(10).tolist() == queue(web, start)[:10]
    assert crawl.go().tolist() == queue(web, start)
    crawl.close()


@pytest.mark.parametrize("aliases", [0.0, 0.3])
def test_the_order_is_that_of_a_simulated_crawl(tmp_path: Path, aliases: float) -> None:
    """Crawls of a recording of the web ask for the same pages in the same order, also where URLs redirect."""
    web, start = LinkWeb.make(400, seed=10, aliases=aliases).reached()
    site = record(web, start, tmp_path / "web.sqlite")
    for policy in (BreadthFirst, MostLinked, Random, Importance):
        harvest = simulate(policy(), FilesGoal(), site, ignored=())
        asked = [site.urls[page] for page in harvest.pages[1:]]
        pages = [url for url in asked if site.redirect[site.ids[url]] < 0]
        assert [addresses(web)[url] for url in crawl_web(web, policy(), start=start)] == pages
        assert len(pages) == len(set(pages)) == (web.redirects < 0).sum()


def test_outcomes_name_the_pages_that_redirects_lead_to() -> None:
    """An outcome has the key of the page in ``also``, whether the page was new or not."""
    web, start = LinkWeb.make(400, seed=11, aliases=0.4).reached()
    policy = MostLinked()
    crawl_web(web, policy, start=start)
    named = [number_of(key) for also in policy.also for key in also]
    assert named
    assert sorted(named) == sorted(web.redirects[web.redirects >= 0].tolist())


def test_a_stored_crawl_resumes(tmp_path: Path) -> None:
    """A crawl in a job that was closed on its way gives the remaining pages in its next run."""
    web, start = LinkWeb.make(400, seed=12).reached()
    first = WebCrawl(web, BreadthFirst(), start=start, job=Job(tmp_path / "job"))
    begun = first.go(50).tolist()
    first.close()
    second = WebCrawl(web, BreadthFirst(), start=start, job=Job(tmp_path / "job"))
    assert begun + second.go().tolist() == queue(web, start)
    second.close()
