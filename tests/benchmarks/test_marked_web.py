"""The made-up web with markup: what its HTML says to machines is what it is said to say, as often as settings promise."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import urllib.request
from collections import Counter, deque
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lxml import html
from parsel import Selector

from manyhosts import markup as marks
from manyhosts.entities import CONTENTS
from manyhosts.server import WebServer
from manyhosts.web import MadeUpWeb, WebPage
from scrapy_focus.web.entities import read_entities
from scrapy_focus.web.html import PlaceReader, html_text, page_links
from tests.made import HANG

pytestmark = pytest.mark.slow

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SETTINGS = ("2012", "2022")
DIGEST = """
import hashlib, numpy as np
from manyhosts.web import MadeUpWeb
web = MadeUpWeb(seed=5, hosts=2_000, markup="2022", pages=20_000, links=12)
digest = hashlib.sha256()
for url in web.some_pages(60, np.random.default_rng(0)):
    page = web.page(url, depth=2)
    digest.update(repr((url, page.entities, page.facts, page.html, page.links)).encode())
print(digest.hexdigest())
"""


@pytest.fixture(scope="module", params=SETTINGS)
def web(request: pytest.FixtureRequest) -> MadeUpWeb:
    return MadeUpWeb(seed=7, hosts=3_000, markup=request.param, pages=36_000, links=12)


def answers(web: MadeUpWeb, n: int, wanted: str = "") -> list[WebPage]:
    """Return pages of a web, breadth-first from some: all kinds, or those that describe a type."""
    urls = deque(web.some_pages(50, np.random.default_rng(1)))
    seen, pages = {*urls}, []
    while urls and len(pages) < n:
        page = web.page(urls.popleft(), depth=1)
        if page.status == 200 and (not wanted or wanted in page.entities):
            pages.append(page)
        new = [link.url for link in page.links if link.url not in seen]
        urls += new
        seen.update(new)
    return pages


def broken_pages(web: MadeUpWeb) -> list[WebPage]:
    """Return the pages of a web with an unreadable part."""
    plan, marked = web._plan, web._marked
    assert marked is not None
    pages = [
        web.page(web._url(host, page))
        for host in np.flatnonzero(marked.markup.says_so.any(1)).tolist()
        for page in range(int(plan.size[host]))
        if marked.markup.marked(host, page).broken
    ]
    return [page for page in pages if page.status == 200]


def read(page: WebPage) -> tuple[Counter[str], int]:
    """Return the types of entities, and how many facts, that extruct finds in the HTML of a page."""
    jsonld = pytest.importorskip("extruct.jsonld")
    microdata = pytest.importorskip("extruct.w3cmicrodata")
    root = html.fromstring(page.html.encode(), parser=html.HTMLParser(encoding="utf-8"))
    types: Counter[str] = Counter()
    facts = 0

    def look(value: Any) -> None:
        nonlocal facts
        if isinstance(value, list):
            for part in value:
                look(part)
        elif isinstance(value, dict):
            name = value.get("@type", value.get("type", []))
            types.update(each.rpartition("/")[2] for each in ([name] if isinstance(name, str) else name))
            inner = value.get("properties", value)
            for key, part in inner.items():
                if key == "@graph" or (not key.startswith("@") and key not in ("type", "properties")):
                    look(part)
        else:
            facts += 1

    for script in root.iter("script"):
        try:
            items = jsonld.JsonLdExtractor().extract_items(script)
        except ValueError:
            continue
        look(items)
    look(microdata.MicrodataExtractor().extract_items(root, page.url))
    return types, facts


def test_html_says_what_is_simulated(web: MadeUpWeb) -> None:
    """The entities and facts that extruct reads, and the goal does, are those of the page, on pages of all kinds."""
    pages = {page.url: page for page in answers(web, 300)}
    pages |= {page.url: page for content in CONTENTS for page in answers(web, 25, content)}
    broken = broken_pages(web)
    pages |= {page.url: page for page in broken[:: max(1, len(broken) // 60)]}
    told = {url: (Counter(page.entities), page.facts) for url, page in pages.items()}
    assert {url: read(page) for url, page in pages.items()} == told
    for page in pages.values():
        reading = read_entities(html.fromstring(page.html), page.html, page.url)
        assert tuple(name for entity in reading.entities for name in entity.types) == page.entities
        assert reading.facts == page.facts
    assert sum(not page.entities for page in pages.values()) > 50
    assert {*CONTENTS} < {name for page in pages.values() for name in page.entities}
    syntaxes = Counter(("ld+json" in page.html, "itemscope" in page.html) for page in pages.values())
    assert min(syntaxes.values()) > 5
    assert len(syntaxes) == 4


def test_some_markup_is_broken() -> None:
    """Scripts that are no JSON and properties of nothing are on a few percent of the pages that describe something."""
    web = MadeUpWeb(seed=7, hosts=6_000, markup="2022", pages=120_000)
    broken = broken_pages(web)
    assert 0.01 < len(broken) / web.described(CONTENTS).pages < 0.15
    assert any("ld+json" in page.html and "itemprop" not in page.html for page in broken)
    assert any("itemprop" in page.html and "ld+json" not in page.html for page in broken)
    for page in broken[::100]:
        assert read(page) == (Counter(page.entities), page.facts)
        reading = read_entities(html.fromstring(page.html), page.html, page.url)
        assert bool(reading.broken) == ("ld+json" in page.html)  # of properties of nothing, nobody knows that they are
        assert reading.facts == page.facts


@pytest.mark.parametrize("setting", SETTINGS)
def test_rates_are_those_of_the_setting(setting: str) -> None:
    """Webs of all seeds have about as many pages and domains with markup, and of each type, as their setting says."""
    rates = marks.SETTINGS[setting]
    for seed in range(3):
        web = MadeUpWeb(seed=seed, hosts=6_000, markup=setting, pages=120_000)
        plan = web._plan
        live = np.flatnonzero((plan.fate == 0) & (np.arange(plan.n_hosts) < plan.public))
        there = web.described()
        assert there.pages / there.of == pytest.approx(rates.pages, rel=0.12)
        assert there.domains / len(np.unique(plan.domain[live])) == pytest.approx(rates.domains, rel=0.12)
        for content, share in zip(CONTENTS, rates.types, strict=True):
            found = web.described([content])
            assert 0.8 * share < found.pages / found.of < 2.2 * share
        for chosen in ("Recipe", "Event"):
            assert 0.01 < web.described([chosen]).pages / there.of < 0.03
        assert 0.8 * there.pages < web.described(least=6).pages < 0.97 * there.pages  # some say very little
        assert web.described(["Organization"]).pages > 0.4 * there.pages


def test_described_counts_pages(web: MadeUpWeb) -> None:
    """What there is to be found is what asking for every page finds."""
    plan = web._plan
    pages = [
        web.page(web._url(host, page)) for host in range(plan.public) for page in range(min(plan.size[host], 4_000))
    ]
    recipes = [page for page in pages if "Recipe" in page.entities]
    found = web.described(["Recipe"])
    assert found.pages == len(recipes)
    assert found.entities == sum(page.entities.count("Recipe") for page in recipes)
    assert found.hosts == len({page.host for page in recipes})
    assert found.of == sum(page.status == 200 for page in pages)
    assert 30_000 < found.of < 36_000


def test_templates_have_it_or_do_not(web: MadeUpWeb) -> None:
    """In a section of a host nearly all or none of the pages describe what the section is about; single ones lack it."""
    plan, marked = web._plan, web._marked
    assert marked is not None
    shares = []
    for host in np.flatnonzero(plan.size > 100).tolist():
        for section in range(6):
            pages = [i for i in range(13 + section, int(plan.size[host]), 6) if not marked.markup.is_list(host, i)]
            shares.append(np.mean([marked.markup.marked(host, i).copies for i in pages]))
    assert np.mean(np.array(shares) == 0) > 0.4
    some = [share for share in shares if share > 0]
    assert len(some) > 10
    assert np.mean(np.array(some) > 0.8) > 0.6
    assert 0.02 < np.mean(np.array(some) == 1) < 0.5


def test_words_tell_something_and_not_all(web: MadeUpWeb) -> None:
    """A word for recipes in an address makes a recipe likelier, and many such pages describe none; others hide it."""
    pages = answers(web, 8_000)
    told = ("recipe", "/kitchen/", "/cooking/", "/food/")
    says = np.array([any(word in page.url for word in told) for page in pages])
    has = np.array(["Recipe" in page.entities for page in pages])
    assert 3 * has.mean() < has[says].mean() < 0.75
    assert 0.15 < says[has].mean() < 0.37
    anchors = Counter(
        "Recipe:" in link.anchor
        for page in pages[::4]
        for link in page.links
        if "Recipe" in web.page(link.url).entities
    )
    assert 0.01 < anchors[True] / anchors.total() < 0.2


def test_html_has_the_links_and_the_text_that_are_simulated(web: MadeUpWeb) -> None:
    """What a parser finds in the HTML is what ``links`` and ``text`` say, whichever was asked for first."""
    for page in answers(web, 200):
        links = page.links
        root = Selector(text=page.html, type="html").root
        reader = PlaceReader()
        found = [(url, *reader.place(element)) for url, element in page_links(root, page.url)]
        assert found == [(link.url, link.tag_path, link.anchor, link.context) for link in links]
        assert html_text(page.html) == " ".join(page.text.split())
        again = web.page(page.url, depth=1)
        assert again.html == page.html
        assert again.links == links
        assert len({link.url for link in links} | {page.url}) == len(links) + 1
        assert all(link.depth == 1 and link.url.startswith(f"http://{link.host}/") for link in links)


def test_links_have_one_key_and_addresses_one_spelling(web: MadeUpWeb) -> None:
    """The key of a link depends on its URL alone; another spelling of an address is a 404, as for any web."""
    keys: dict[str, int] = {}
    for page in answers(web, 300):
        assert all(keys.setdefault(link.url, link.key) == link.key for link in page.links)
        assert web.page(page.url + "#top").status == 200
        assert web.page(page.url + "x").status == 404
        assert (
            web.page(page.url.replace(f"{page.host}/", f"{page.host}/x", 1)).status == 404
        )  # another word, no other page
        assert web.page(page.url.replace("http://", "http://x.")).status == 0
    assert len({*keys.values()}) == len(keys) > 1_500
    fresh = MadeUpWeb(seed=7, hosts=3_000, markup=web.markup, pages=36_000, links=12)  # remembers no address
    for url, key in [*keys.items()][::7]:
        assert fresh.link(url).key == key
        assert fresh.page(url).status == web.page(url).status


def test_most_of_the_web_can_be_reached(web: MadeUpWeb) -> None:
    """From fifty pages nearly all others are found by following links, whose number is as configured."""
    urls = deque(web.some_pages(50, np.random.default_rng(0)))
    seen, pages, recipes, statuses, links = {*urls}, 0, 0, Counter[int](), 0
    while urls:
        page = web.page(urls.popleft())
        statuses[page.status] += 1
        recipes += "Recipe" in page.entities
        new = page.links
        pages, links = pages + bool(new), links + len(new)
        for url in [link.url for link in new] + [page.location] * bool(page.location):
            if url not in seen:
                seen.add(url)
                urls.append(url)
    assert links / pages == pytest.approx(12, rel=0.15)
    assert recipes > 0.9 * web.described(["Recipe"]).pages
    failed = statuses.total() - statuses[200]
    assert 0.02 < failed / statuses.total() < 0.12
    assert {*statuses} == {0, 200, 301, 403, 404}


def test_a_bounded_web_has_as_many_pages_as_asked_for() -> None:
    """The sum of the sizes of all hosts is what was asked for; half have a dozen or fewer, a few have hundreds."""
    size = MadeUpWeb(seed=2, hosts=6_000, markup="2012", pages=120_000)._plan.size
    assert 118_000 < size.sum() <= 120_000
    assert 8 <= np.median(size) <= 14
    assert (size > 300).sum() > 5
    assert size.max() < 5_000


def test_seeds_are_as_people_have_them(web: MadeUpWeb) -> None:
    """Some pages have markup and some do not; all exist; each generator gives others."""
    urls = web.some_pages(200, np.random.default_rng(0))
    assert urls == web.some_pages(200, np.random.default_rng(0)) != web.some_pages(200, np.random.default_rng(1))
    pages = [web.page(url) for url in urls]
    assert len({page.host for page in pages}) == 200
    assert all(page.status == 200 for page in pages if "/private/" not in page.url)
    there = web.described()
    share = np.mean([bool(page.entities) for page in pages])
    assert 0 < share < min(3 * there.pages / there.of, 0.7)


def test_the_same_in_each_process() -> None:
    """Another process, with other hashes of strings, makes the same pages to the byte."""
    digests = {
        subprocess.run(
            [sys.executable, "-c", DIGEST], env={**os.environ, "PYTHONHASHSEED": hashing}, cwd=BENCHMARKS,
            capture_output=True, text=True, check=True,
        ).stdout
        for hashing in ("1", "2")
    }  # fmt: skip
    assert len(digests) == 1
    assert len(digests.pop()) == 65


def test_a_web_without_markup_is_as_it_always_was() -> None:
    """Nothing on it is said to machines, and not a byte of it is other than before there was markup."""
    web, digest = MadeUpWeb(seed=5, hosts=3000), hashlib.sha256()
    for url in web.seeds("sailing", 8, np.random.default_rng(0)):
        page = web.page(url)
        digest.update(url.encode() + page.html.encode() + repr(page.links).encode())
        assert (page.entities, page.facts) == ((), 0)
    assert digest.hexdigest() == "d84b2718ad956c3d69a3f745f29eb2dbe243541a25e48959b3e63a6f82d9d333"


def test_topics_are_there_with_markup_too(web: MadeUpWeb) -> None:
    """A web with markup has its topics, seeds and examples for each, as any web."""
    urls = web.seeds("astronomy", 5, np.random.default_rng(0))
    assert all(web.is_relevant(url, "astronomy") for url in urls)
    texts = web.examples("astronomy", 20, np.random.default_rng(0))
    assert [len(of) for of in texts] == [20, 20]


def test_served_over_http(web: MadeUpWeb) -> None:
    """A client behind the proxy gets the pages with their markup, to the byte."""
    pages = answers(web, 3, "Recipe") + answers(web, 3)
    with WebServer(web) as server:
        client = urllib.request.build_opener(urllib.request.ProxyHandler({"http": server.url}))
        for page in pages:
            with client.open(page.url, timeout=HANG) as answer:
                assert answer.read().decode() == page.html
    assert all("schema.org" in page.html for page in pages[:3])


def test_served_from_the_command_line(tmp_path: Path) -> None:
    """The command serves a web with markup, and writes seeds for it."""
    command = [sys.executable, "-m", "manyhosts.server", "--port", "0", "--hosts", "2000", "--markup", "2022"]
    with subprocess.Popen(
        [*command, "--pages", "20000", "--folder", str(tmp_path)], cwd=BENCHMARKS, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().split()[0]
            urls = (tmp_path / "seeds.txt").read_text().split()
            web = MadeUpWeb(hosts=2_000, markup="2022", pages=20_000)
            assert urls == web.some_pages(50, np.random.default_rng(0))
            client = urllib.request.build_opener(urllib.request.ProxyHandler({"http": address}))
            with client.open(urls[0], timeout=HANG) as answer:
                assert answer.read().decode() == web.page(urls[0]).html
        finally:
            process.terminate()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"markup": "2018"}, "'2012' or '2022'"), ({"pages": 9_000}, "give markup="), ({"links": 10}, "give markup="),
        ({"markup": "2012", "pages": 3_999}, "at least 4000"), ({"markup": "2012", "links": 3}, "8 to 25"),
        ({"markup": "2012", "links": 26}, "8 to 25"),
    ],
)  # fmt: skip
def test_what_cannot_be_made_is_said(given: dict[str, Any], said: str) -> None:
    """Settings that are none, and sizes that do not fit, are errors that say what there is."""
    with pytest.raises(ValueError, match=said):
        MadeUpWeb(hosts=2_000, **given)


def test_what_cannot_be_counted_is_said() -> None:
    """Without a bound or without markup there is nothing to count; more seeds than hosts are not to be had."""
    for unbounded in (MadeUpWeb(hosts=2_000), MadeUpWeb(hosts=2_000, markup="2012")):
        with pytest.raises(ValueError, match="no markup, or no bound"):
            unbounded.described()
        with pytest.raises(ValueError, match="hosts that answer"):
            unbounded.some_pages(2_001, np.random.default_rng(0))


def test_an_unbounded_web_has_markup_too() -> None:
    """Without a bound, traps are endless and the shares of pages with markup are about those of the setting."""
    web = MadeUpWeb(seed=1, hosts=20_000, markup="2022")
    pages = answers(web, 3_000)
    share: float = np.mean([bool(page.entities) for page in pages])
    assert 0.3 < share < 0.65
    trap = next(host for host in range(20_000) if web._plan.kind[host] == 4 and web._plan.fate[host] == 0)
    page = web.page(f"http://{web._plan.name(trap)}/calendar/1")
    assert page.status == 200
    assert any("/calendar/" in link.url for link in page.links)
