"""The made-up web: the same in each process, HTML as simulated, topics that a classifier finds and sometimes misses."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from parsel import Selector

from manyhosts.web import TOPICS, MadeUpWeb, WebPage
from scrapy_focus.core.types import Link
from scrapy_focus.topic.relevance import LinearRelevance
from scrapy_focus.web.html import PlaceReader, html_text, page_links

pytestmark = pytest.mark.slow

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
TOPIC = "beekeeping"
DIGEST = """
import hashlib, numpy as np
from manyhosts.web import MadeUpWeb
web = MadeUpWeb(seed=5, hosts=3000)
digest = hashlib.sha256()
for url in web.seeds("sailing", 8, np.random.default_rng(0)):
    digest.update(url.encode() + web.page(url).html.encode() + repr(web.page(url).links).encode())
print(digest.hexdigest())
"""


@pytest.fixture(scope="module")
def web() -> MadeUpWeb:
    return MadeUpWeb(seed=3, hosts=12_000)


@pytest.fixture(scope="module")
def pages(web: MadeUpWeb) -> list[WebPage]:
    """Return the answers to some hundred URLs around the seeds of a topic, and around those in turn."""
    rng = np.random.default_rng(1)
    urls = dict.fromkeys(web.seeds(TOPIC, 12, rng))
    for _ in range(2):
        found = sorted({link.url for url in urls for link in web.page(url).links} - urls.keys())
        urls |= dict.fromkeys(found[k] for k in rng.permutation(len(found))[:300])
    return [web.page(url, depth=1) for url in urls]


def well(pages: list[WebPage]) -> list[WebPage]:
    """Return the pages among some answers."""
    return [page for page in pages if page.status == 200]


def test_the_same_in_each_process() -> None:
    """Another process, with other hashes of strings, makes the same pages; another seed makes others."""
    digests = {
        subprocess.run(
            [sys.executable, "-c", DIGEST.replace("seed=5", f"seed={seed}")],
            env={**os.environ, "PYTHONHASHSEED": hashing}, cwd=BENCHMARKS, capture_output=True, text=True, check=True,
        ).stdout
        for seed, hashing in ((5, "1"), (5, "2"))
    }  # fmt: skip
    assert len(digests) == 1
    here = MadeUpWeb(seed=5, hosts=3000)
    digest, other = hashlib.sha256(), MadeUpWeb(seed=6, hosts=3000)
    for url in here.seeds("sailing", 8, np.random.default_rng(0)):
        digest.update(url.encode() + here.page(url).html.encode() + repr(here.page(url).links).encode())
    assert digests == {digest.hexdigest() + "\n"}
    assert here.seeds("sailing", 8, np.random.default_rng(0)) != other.seeds("sailing", 8, np.random.default_rng(0))


def test_html_has_the_links_that_are_simulated(pages: list[WebPage]) -> None:
    """What a parser finds in the HTML is what ``links`` says: URLs, their order, tag paths, anchors, contexts."""
    for page in well(pages):
        root = Selector(text=page.html, type="html").root
        reader = PlaceReader()
        found = [(url, *reader.place(element)) for url, element in page_links(root, page.url)]
        assert found == [(link.url, link.tag_path, link.anchor, link.context) for link in page.links]


def test_html_has_the_text_that_is_simulated(pages: list[WebPage]) -> None:
    """What readers see of the HTML is ``text``."""
    for page in well(pages):
        assert html_text(page.html) == " ".join(page.text.split())


def test_links_have_keys_and_depth(web: MadeUpWeb, pages: list[WebPage]) -> None:
    """A link has the depth asked for and its host; its key depends on its URL alone; no page links to itself or twice."""
    keys: dict[str, int] = {}
    for page in well(pages):
        urls = [link.url for link in page.links]
        assert len(urls) == len(set(urls))
        assert page.url not in urls
        for link in page.links:
            assert link.depth == 1
            assert link.url.startswith(f"http://{link.host}/")
            assert keys.setdefault(link.url, link.key) == link.key
            assert 0 <= link.key < 1 << 63
    assert len(set(keys.values())) == len(keys) > 5000
    url = next(iter(keys))
    assert web.link(url) == Link(url, keys[url], url.split("/")[2])


def test_pages_have_as_many_links_as_pages_have(pages: list[WebPage]) -> None:
    """There are 25 to 45 links on an average page, some of which leave its host; most anchors are meaningful."""
    links = [page.links for page in well(pages)]
    assert 25 < np.mean([len(of) for of in links]) < 45
    leaving = np.mean([link.host != page.host for page in well(pages) for link in page.links])
    assert 0.2 < leaving < 0.6
    assert all(link.anchor and link.tag_path for of in links for link in of)


def test_a_few_percent_fail(pages: list[WebPage]) -> None:
    """Of the linked pages, some are gone, some moved to another host, some forbidden, some without address."""
    shares = {status: np.mean([page.status == status for page in pages]) for status in (0, 200, 301, 403, 404)}
    assert sum(shares.values()) == pytest.approx(1)
    assert 0.85 < shares[200] < 0.98
    assert all(0.001 < share < 0.06 for status, share in shares.items() if status != 200)
    for page in pages:
        assert bool(page.error) == (page.status in (0, 403, 404))
        assert bool(page.location) == (page.status == 301)
        assert page.status == 200 or not (page.topics or page.links)


def test_redirects_lead_to_another_host(web: MadeUpWeb, pages: list[WebPage]) -> None:
    """A host that moved sends its visitors to one that answers."""
    moved = [page for page in pages if page.location]
    targets = [web.page(page.location) for page in moved]
    assert all(target.status == 200 and target.host != page.host for page, target in zip(moved, targets, strict=True))


@pytest.mark.parametrize(
    "url",
    [
        "http://nowhere.example/", "http://bababa.bababa.bababa.example/", "http://../", "http:///", "nonsense", "http://x.test",
        "http://baba-bababa.example/node/1", "http://99999999999999999.example/", "http://é.example/",
    ],
)  # fmt: skip
def test_hosts_that_do_not_exist(web: MadeUpWeb, url: str) -> None:
    """There is no answer from a host that does not exist, whatever its name."""
    page = web.page(url)
    assert (page.status, page.error) == (0, "failure: CannotResolveHostError")
    assert not page.links
    assert not page.text
    with pytest.raises(ValueError, match="no address of this web"):
        web.link(url)


def test_an_address_has_one_spelling(web: MadeUpWeb, pages: list[WebPage]) -> None:
    """Of a page that exists, any other spelling is a 404; a fragment is not part of the address."""
    for page in well(pages)[:60]:
        assert web.page(page.url + "#top").status == 200
        assert web.page(page.url + "x").status == 404
        assert web.page(page.url + "/").status == 404
        assert web.page(page.url.replace("http://", "http://x.")).status == 0


def test_robots_txt_forbids_the_log_in(web: MadeUpWeb, pages: list[WebPage]) -> None:
    """Each host has a robots.txt, and what it forbids is what answers 403."""
    page = web.page(f"http://{well(pages)[0].host}/robots.txt")
    assert (page.status, page.mime) == (200, "text/plain")
    assert "Disallow: /private/" in page.html
    assert all(("/private/" in other.url) == (other.status == 403) for other in pages if other.status in (200, 403))


def test_seeds_are_relevant_and_apart(web: MadeUpWeb) -> None:
    """Seeds are about their topic, on different domains, and none links to another; each generator gives others."""
    for topic in ("astronomy", "herbs"):
        seeds = web.seeds(topic, 20, np.random.default_rng(2))
        assert seeds != web.seeds(topic, 20, np.random.default_rng(3))
        assert all(topic in web.page(url).topics for url in seeds)
        assert len({url.split("/")[2].rsplit(".", 2)[-2] for url in seeds}) == 20
        assert not {link.url for url in seeds for link in web.page(url).links} & {*seeds}


def test_a_classifier_is_good_and_not_perfect(web: MadeUpWeb, pages: list[WebPage]) -> None:
    """One that learned from the examples finds most pages on the topic, and errs on some that are not."""
    positive, negative = web.examples(TOPIC, 300, np.random.default_rng(4))
    assert len(positive) == len(negative) == 300
    model = LinearRelevance().fit(positive + negative, [True] * 300 + [False] * 300)
    crawled = well(pages)[::2]
    says = model.score([page.text for page in crawled]) >= 0.5
    truth = np.array([TOPIC in page.topics for page in crawled])
    assert truth.sum() > 50
    assert 0.85 < says[truth].mean() < 1
    assert 0.03 < says[~truth].mean() < 0.35
    links = [link for page in crawled for link in page.links][::9]
    on_topic = np.array([TOPIC in web.page(link.url).topics for link in links])
    best = np.argsort(-model.score([link.anchor for link in links]), kind="stable")[: len(links) // 10]
    assert 1.2 * on_topic.mean() < on_topic[best].mean() < 0.9  # anchors help, and mislead


def test_examples_are_from_elsewhere(web: MadeUpWeb, pages: list[WebPage]) -> None:
    """No text that a crawl sees is an example, and the same generator gives the same examples."""
    texts = web.examples(TOPIC, 100, np.random.default_rng(0))
    assert texts == web.examples(TOPIC, 100, np.random.default_rng(0))
    assert not {*texts[0], *texts[1]} & {page.text for page in pages}


def test_keywords_are_in_pages_of_their_topic(web: MadeUpWeb) -> None:
    """The keywords of a topic are on most pages about it, in the language of the page, and on few others."""
    positive, negative = web.examples(TOPIC, 200, np.random.default_rng(0))
    words = {*web.keywords(TOPIC, 15), *web.keywords(TOPIC, 15, language="qx")}
    has = [[bool(words & {*text.lower().replace(".", "").split()}) for text in texts] for texts in (positive, negative)]
    assert np.mean(has[0]) > 0.9
    assert np.mean(has[1]) < 0.5
    assert not {*web.keywords(TOPIC)} & {*web.keywords(TOPIC, language="qx")}


def test_related_topics_share_words(web: MadeUpWeb) -> None:
    """A classifier for a topic mistakes pages on related topics more often than others."""
    assert web.related("optics") == ("weather", "spaceflight", "astronomy")
    positive, negative = web.examples("optics", 150, np.random.default_rng(4))
    model = LinearRelevance().fit(positive + negative[-100:], [True] * 150 + [False] * 100)  # these have no topic
    unrelated = ("gardening", "herbs", "fishing", "diving")
    topics = ("optics", *web.related("optics"), *unrelated)
    scores = {topic: model.score(web.examples(topic, 40, np.random.default_rng(9))[0]).mean() for topic in topics}
    others = [scores[topic] for topic in unrelated]
    assert scores["optics"] > max(scores[topic] for topic in web.related("optics"))
    assert np.mean([scores[topic] for topic in web.related("optics")]) > np.mean(others) + 0.05


def test_hosts_on_a_topic_are_many_and_small_and_a_few_large() -> None:
    """Sizes follow a power law: most hosts about a topic are small, and the large ones have most pages."""
    web = MadeUpWeb(seed=1, hosts=50_000)
    size = web.relevant_hosts(TOPIC)
    assert size.hosts > size.domains > 2_000
    assert size.pages > 50_000
    small = web.relevant_hosts("herbs")
    assert 300 < small.hosts < size.hosts / 1.5
    plan = web._plan
    sizes = np.sort(plan.size[(plan.kind == 0) & (plan.topic == 0)])
    assert np.median(sizes) < 20
    assert sizes[-len(sizes) // 100 :].sum() > sizes.sum() / 3
    assert (sizes > 1_000).sum() > 10
    # the median of those above a size, over that size, is the same at all sizes
    tails = [np.median(sizes[sizes > least]) / least for least in (20, 100, 500)]
    assert max(tails) < 1.5 * min(tails)


def test_a_calendar_has_no_end(web: MadeUpWeb) -> None:
    """The pages of a trap lead on to more of their kind for ever."""
    plan = web._plan
    host = int(np.flatnonzero((plan.kind == 4) & (plan.fate == 0))[0])
    url, seen = f"http://{plan.name(host)}/calendar/1", set()
    for _ in range(50):
        seen.add(url)
        url = next(link.url for link in web.page(url).links if "/calendar/" in link.url and link.host == plan.name(host)
                   and link.url not in seen)  # fmt: skip
    assert web.page(url).status == 200
    assert web.page(f"http://{plan.name(host)}/calendar/{1 << 40}").status == 404


def test_names_tell_hosts_apart() -> None:
    """Every host has a unique name, which finds it again; some domains have several hosts."""
    plan = MadeUpWeb(seed=8, hosts=2_500)._plan
    names = [plan.name(host) for host in range(2_500)]
    assert len({*names}) == 2_500
    assert [plan.host_of(name) for name in names] == [*range(2_500)]
    domains = {".".join(name.split(".")[-2:]) for name in names}
    assert 1_000 < len(domains) < 2_300
    assert {name.rpartition(".")[2] for name in names} == {"example", "test"}


@pytest.mark.parametrize("hosts", [0, 1_999, 250_001])
def test_a_web_has_a_sensible_size(hosts: int) -> None:
    """Invalid values are refused, with the valid ones."""
    with pytest.raises(ValueError, match=f"hosts={hosts}"):
        MadeUpWeb(hosts=hosts)


def test_the_smallest_and_the_largest_web_work() -> None:
    """At both ends there are seeds and examples for each topic."""
    for hosts in (2_000, 250_000):
        web = MadeUpWeb(seed=2, hosts=hosts)
        for topic in TOPICS[:: len(TOPICS) // 3] if hosts > 2_000 else TOPICS:
            assert len(web.seeds(topic, 5, np.random.default_rng(0))) == 5
            assert [len(texts) for texts in web.examples(topic, 20, np.random.default_rng(0))] == [20, 20]


def test_what_cannot_be_given_is_said(web: MadeUpWeb) -> None:
    """A topic that is none, and more seeds than there are, are errors that say what there is."""
    with pytest.raises(ValueError, match="beekeeping, gardening"):
        web.keywords("bees")
    with pytest.raises(ValueError, match="no 100000 seeds"):
        web.seeds("herbs", 100_000, np.random.default_rng(0))
