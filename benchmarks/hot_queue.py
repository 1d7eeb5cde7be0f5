"""How early a crawl with a hot queue visits the important pages of a topic: graphs 6 and 7 of Cho, Garcia-Molina, Page.

Measured: crawls without a network of pages with real texts, Wikispeedia and the documentation that ``sites.py`` fetched,
by each base (breadth-first, PageRank, back-links) without a hot queue and with one (``HotQueue``), within 0, 1, 2 and 3
clicks of a hot page. A page is hot if the topic's word is in its title or more than ten times in its text; and, counted
apart, if five other pages link to it, too. The tables have P_ST, the share of the hot pages that are visited, after 5, 10
and 20 % of the pages; the mean over several start pages, the home page first, the others drawn from those from which
most of the web can be reached.

Not measured: pages off the site, pages that fail or redirect (they are removed, with the links to them), time. Links
of Wikispeedia have the title of the article as their anchor, in alphabetical order. A page is sent as its title and
the word, as often as it has it. ::

    python benchmarks/hot_queue.py wikispeedia.tar.xz --word computer --word music --word war
    python benchmarks/hot_queue.py sites/ghc --word monad --word parser        # after: sites.py fetch ghc
"""

from __future__ import annotations

import argparse
import html
import json
from collections import deque
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from scrapy_focus import Crawl, HotQueue, Importance, Link, Outcome, State, memory_frontier
from scrapy_focus.core.abilities import Knows
from scrapy_focus.lab.recordings.html import decode, read_page
from scrapy_focus.lab.replay.importance_metrics import backlinks, crawl_and_stop_with_threshold, page_links
from scrapy_focus.learn.matching import Keywords
from scrapy_focus.policies.orderings import BreadthFirst
from scrapy_focus.web.html import title_and_text
from scrapy_focus.web.words import words_of
from sites import SITES, open_site
from wikispeedia import Page, read_web

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from scrapy_focus.core.policy import Policy

BASES = ("breadth", "pagerank", "backlinks")
DISTANCES = (None, 0, 1, 2, 3)  # clicks; None: no hot queue
MARKS = (0.05, 0.1, 0.2)  # of the pages
POPULAR = 5  # back-links of a page that is hot in the second sense
_TIMES = 10  # a word may be in a text that is not hot


class Web(NamedTuple):
    """Pages that can all be reached from the first one."""

    urls: list[str]
    titles: list[str]
    texts: list[str]
    links: list[dict[int, str]]  # of each page: its links to other pages, and the anchors

    def part(self, pages: Sequence[int]) -> Web:
        """Return some of the pages, and the links between them."""
        number = {page: i for i, page in enumerate(pages)}
        links = [{number[page]: anchor for page, anchor in self.links[i].items() if page in number} for i in pages]
        return Web(
            [self.urls[i] for i in pages], [self.titles[i] for i in pages], [self.texts[i] for i in pages], links
        )

    def reached(self, start: int) -> list[int]:
        """Return the pages that links lead to from one, nearest first."""
        seen, queue = {start: None}, deque([start])
        while queue:
            for page in self.links[queue.popleft()]:
                if page not in seen:
                    seen[page] = None
                    queue.append(page)
        return list(seen)

    def starts(self, n: int) -> list[int]:
        """Return the first page, and random others of the largest strongly connected part."""
        source, target = self._pairs()
        graph = csr_array((np.ones(len(source), np.int8), (source, target)), shape=(len(self.urls),) * 2)
        _, part = connected_components(graph, connection="strong")
        large = np.flatnonzero(part == np.bincount(part).argmax())
        return [0, *np.random.default_rng(0).choice(large, n - 1, replace=False).tolist()]

    def backlinks(self) -> NDArray[np.float64]:
        """Return how many other pages link to each, shape (n_pages,)."""
        n = len(self.urls)
        source, target = self._pairs()
        return backlinks(page_links(source, target, is_page=np.ones(n, np.bool_), redirect=np.full(n, -1, np.int64)))

    def _pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        pairs = np.array([(page, other) for page, links in enumerate(self.links) for other in links], np.int64)
        return pairs[:, 0], pairs[:, 1]


def wikispeedia(path: Path) -> Web:
    """Return the articles that can be reached from that on the United States."""
    web = read_web(path, None)
    urls = [f"http://wikispeedia.example/wiki/{name}" for name in web.names]
    links = [{page: web.titles[page] for page in targets} for targets in web.targets]
    whole = Web(urls, web.titles, web.texts, links)
    return whole.part(whole.reached(web.names.index("United_States")))


def documentation(name: str, folder: Path) -> Web:
    """Return the pages of a site of ``sites.py`` that can be reached from its first one."""
    site, host = open_site(name, folder), "http://docs.example"
    found = {host + SITES[name].start: 0}
    web = Web([], [], [], [])
    queue = deque(found)
    is_page: list[bool] = []
    while queue:
        url = queue.popleft()
        page = site.fetch(url.removeprefix(host))
        is_page.append(page.status == 200 and "html" in page.mime)
        title, text, links = "", "", {}
        if is_page[-1]:
            headers = {"Content-Type": page.mime}
            title, text = title_and_text(decode(page.body, headers)[0])
            for link in read_page(url, headers, page.body).links:
                if link.url.startswith(f"{host}/"):
                    if link.url not in found:
                        queue.append(link.url)
                    links[found.setdefault(link.url, len(found))] = link.place.anchor
        web.urls.append(url)
        web.titles.append(title)
        web.texts.append(text)
        web.links.append(links)
    whole = web.part([number for number, html_page in enumerate(is_page) if html_page])
    return whole.part(whole.reached(0))


def crawl(web: Web, pages: Sequence[Page], policy: Policy, *, start: int, budget: int, seed: int = 0) -> list[int]:
    """Return the pages in the order of arrival, one in flight."""
    crawl = Crawl(policy, frontier=memory_frontier, goal=lambda outcome: 0.0, seed=seed, strict=True)
    wanted = {State.NEW, *policy.wants_known}
    crawl.add([Link(web.urls[start], start, "host", 0)])
    came: list[int] = []
    while len(came) < budget and (pick := crawl.next()) is not None:
        crawl.sent(pick.id)
        keys = list(web.links[pick.key])
        states = dict(zip(keys, crawl.knows(keys), strict=True))
        links = [
            Link(web.urls[key], key, "host", pick.depth + 1, anchor)
            for key, anchor in web.links[pick.key].items()
            if states[key] in wanted
        ]
        known = [key for key in keys if states[key] not in wanted] if isinstance(policy, Knows) else []
        page = pages[pick.key]
        crawl.report(Outcome(pick, status=200, mime="text/html", size=len(page.text), page=page), links, known)
        came.append(pick.key)
    crawl.close()
    return came


def policies(word: str | None) -> Iterator[tuple[str, int | None, Policy]]:
    """Return each base with each distance, and the policy; for no word, those without a hot queue."""
    for base, distance in product(BASES, DISTANCES):
        if word is None and distance is None:
            yield base, None, BreadthFirst() if base == "breadth" else Importance(by=base)
        elif word is not None and distance is not None:
            yield base, distance, HotQueue(words=[word], base=base, max_distance=distance, times=_TIMES)


def short_pages(web: Web, word: str, times: Sequence[int]) -> list[Page]:
    """Return the pages as they are sent: with their titles, and the word as often as each has it."""
    body = "<html><head><title>{}</title></head><body><p>{}</p></body></html>"
    return [
        Page(url, body.format(html.escape(title), f"{word} " * min(n, _TIMES + 1)))
        for url, title, n in zip(web.urls, web.titles, times, strict=True)
    ]


def measure(web: Web, words: Sequence[str], n_starts: int) -> Iterator[dict[str, Any]]:
    """Crawl, and return the result of each crawl: P_ST after each of ``MARKS``, for both senses of hot."""
    said = {word: Keywords([word]) for word in words}
    counts: dict[str, list[int]] = {word: [] for word in words}
    hot: dict[str, list[bool]] = {word: [] for word in words}
    for title, text in zip(web.titles, web.texts, strict=True):
        in_title, in_text = words_of(title), words_of(text)
        for word in words:
            counts[word].append(said[word].count(in_text))
            hot[word].append(said[word].found(in_title) or counts[word][-1] > _TIMES)
    linked = web.backlinks()
    facts = {word: (np.array(hot[word]), np.array(hot[word]) & (linked >= POPULAR)) for word in words}
    at = [round(mark * len(web.urls)) - 1 for mark in MARKS]

    def judged(word: str, base: str, distance: int | None, start: int, came: Sequence[int]) -> dict[str, Any]:
        found: dict[str, Any] = {"word": word, "base": base, "distance": distance, "start": web.urls[start]}
        for name, is_hot in zip(("hot", "popular"), facts[word], strict=True):
            found[f"n_{name}"] = int(is_hot.sum())
            found[name] = crawl_and_stop_with_threshold(came, is_hot.astype(float), 1.0)[at].tolist()
        return found

    for start in web.starts(n_starts):
        pages = short_pages(web, "", [0] * len(web.urls))
        for base, _, policy in policies(None):
            came = crawl(web, pages, policy, start=start, budget=at[-1] + 1)
            yield from (judged(word, base, None, start, came) for word in words)
        for word in words:
            pages = short_pages(web, word, counts[word])
            for base, distance, policy in policies(word):
                came = crawl(web, pages, policy, start=start, budget=at[-1] + 1)
                yield judged(word, base, distance, start, came)


def table(runs: Sequence[Mapping[str, Any]], sense: str) -> str:
    """Return Markdown: P_ST after 5/10/20 % by base, distance and word, the mean over the starts and over the words."""
    words = list(dict.fromkeys(str(run["word"]) for run in runs))
    n_hot = {run["word"]: run[f"n_{sense}"] for run in runs}
    lines = ["| base | clicks | " + " | ".join(f"{word} ({n_hot[word]})" for word in words) + " | mean |"]
    lines.append("|---|--:" + "|--:" * (len(words) + 1) + "|")
    for base, distance in product(BASES, DISTANCES):
        chosen = [run for run in runs if (run["base"], run["distance"]) == (base, distance)]
        means = [np.mean([run[sense] for run in chosen if run["word"] == word], axis=0) for word in words]
        cells = [" ".join(f"{value:.0f}" for value in mean) for mean in (*means, np.mean(means, axis=0))]
        lines.append(f"| {base} | {'no hot queue' if distance is None else distance} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """The command line, see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("path", type=Path, help="the archive or folder of Wikispeedia, or FOLDER/NAME of sites.py")
    parser.add_argument("--word", action="append", required=True, help="topic; repeat it for each")
    parser.add_argument("--starts", type=int, default=3, help="start pages")
    parser.add_argument("--json", type=Path, help="write a line for each crawl and word there")
    options = parser.parse_args()
    web = (
        documentation(options.path.name, options.path.parent)
        if options.path.name in SITES
        else wikispeedia(options.path)
    )
    print(f"{options.path.name}: {len(web.urls):,} pages, {sum(map(len, web.links)):,} links", flush=True)
    runs = []
    for run in measure(web, options.word, options.starts):
        runs.append(run)
        if options.json is not None:
            with options.json.open("a", encoding="utf-8") as file:
                print(json.dumps(run), file=file)
    for sense, said in (("hot", "Hot pages"), ("popular", f"Hot pages with {POPULAR} back-links or more")):
        print(f"\n{said}, P_ST after 5, 10 and 20 %:\n\n{table(runs, sense)}")


if __name__ == "__main__":
    main()
