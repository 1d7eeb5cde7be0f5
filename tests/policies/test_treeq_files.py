"""TRES adapted to files: what is fetched at once, which pages are relevant, and what it learns from them."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import numpy as np
import pytest

from scrapy_focus import ConfigError, Crawl, FilesGoal, memory_frontier
from scrapy_focus.lab.recordings.format import RecordedSite
from scrapy_focus.lab.recordings.importers.folder import record_site
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.lab.replay.truth import SiteTruth
from scrapy_focus.lab.sites.portal.portal import StatisticsPortal
from scrapy_focus.policies.treeq.files import TERMS, OracleTreeQ
from tests.made import failure, fetch, file, link, links, page

if TYPE_CHECKING:
    from pathlib import Path


class Small:
    """Page 1 links to pages 2, 3 and 4, page 2 to the targets 10 and 11, page 3 to the picture 20.

    The link 5 redirects to page 2, 7 to the target 10, and 6 is dead.
    """

    to = {1: [2, 3, 4], 2: [10, 11], 3: [20, 1], 5: [2], 7: [10]}
    kinds = {5: "redirect", 6: "dead", 7: "redirect", 10: "target", 11: "target", 20: "other"}

    def kind(self, url):
        return self.kinds.get(int(url.rpartition("/")[2]), "page")

    def targets(self):
        return links(10, 11)

    def leads_to(self, key):
        return self.to.get(key, [])


def crawl_of(policy: OracleTreeQ) -> Crawl:
    """Return a crawl of the small site, before its seed."""
    policy.inform(Small())
    return Crawl(policy, frontier=memory_frontier, goal=FilesGoal(), seed=0, strict=True)


def test_what_is_no_page_is_fetched_at_once() -> None:
    """Targets and pictures leave before all pages, first in first out; dead links and redirects are queued as pages."""
    crawl = crawl_of(OracleTreeQ())
    crawl.add(links(1))
    fetch(crawl, *links(2, 20, 6, 11, 5, 10))
    order = []
    while (pick := crawl.next()) is not None:
        at_once = crawl.policy.explain(pick).get("kind") == "no page"
        crawl.report(
            file(pick) if pick.key in (10, 11) else page(pick, mime="image/png" if pick.key == 20 else "text/html")
        )
        order.append((pick.key, at_once))
    assert order[:3] == [(20, True), (11, True), (10, True)]
    assert sorted(order[3:]) == [(2, False), (5, False), (6, False)]
    assert crawl.rewards == 2


def test_a_page_is_relevant_if_it_links_to_a_target() -> None:
    """By hand: page 2 earns 1, before its targets are fetched and after; page 1, page 3 and the failure of 4 earn 0.

    The seed counts as 1 before it is fetched (as released). Link 5, which redirects to page 2, earns 1, and 7, which
    redirects to a target, earns 0. Failures are no experience of the published rules. So the experiences are 1 (seed),
    0, 1, 0, 1 and 0: the mean is 0.5.
    """
    policy = OracleTreeQ(rules={"max_depth": 0})
    crawl = crawl_of(policy)
    crawl.add(links(1))
    fetch(crawl, *links(2, 3, 4, 5, 7))
    found = {2: links(10, 11), 3: links(20), 5: links(10, 11)}
    while (pick := crawl.next()) is not None:
        if pick.key >= 7:
            crawl.report(file(pick, also=(10,) if pick.key == 7 else ()))
        elif pick.key == 4:
            crawl.report(failure(pick))
        else:
            crawl.report(page(pick, also=(2,) if pick.key == 5 else ()), found[pick.key])
    assert policy.tree.counts.tolist() == [6]
    assert policy.tree.means.tolist() == [pytest.approx(0.5)]


def test_links_of_a_relevant_page_are_known_as_such() -> None:
    """The first feature of a link, whether its page is relevant, is 1 behind page 2 and 0 behind page 3."""
    policy = OracleTreeQ()
    crawl = crawl_of(policy)
    crawl.add(links(1))
    fetch(crawl, *links(2, 3))
    picks = [crawl.next(), crawl.next()]
    for pick in picks:
        crawl.report(page(pick), links(28 + pick.key))
    vectors = crawl.frontier.vectors([30, 31])
    assert policy.layout.names[0] == "parent relevant"
    assert vectors[:, 0].tolist() == [63, 0]
    assert "relevant share of its host" in policy.layout.names
    assert not vectors[:, policy.layout.names.index("relevant share of its host")].any()  # as released


def test_files_teach_nothing() -> None:
    """Neither the tree nor the network learns from what was fetched at once."""
    policy = OracleTreeQ()
    crawl = crawl_of(policy)
    crawl.add(links(1))
    fetch(crawl, *links(10, 11))
    before = policy.results, policy.tree.counts.sum()
    for _ in range(2):
        crawl.report(file(crawl.next()))
    assert (policy.results, policy.tree.counts.sum()) == before


def test_a_busy_host_keeps_its_files() -> None:
    """A file of a busy host stays queued, and others are not chosen in its place; one that was released comes first."""
    crawl = crawl_of(OracleTreeQ())
    crawl.add(links(1))
    fetch(crawl, *links(10, 11))
    assert crawl.next(["h"]) is None
    pick = crawl.next()
    crawl.release(pick.id)
    assert [crawl.next().key for _ in range(2)] == [pick.key, 11] == [10, 11]


def test_files_are_still_first_after_a_resume() -> None:
    """A stored policy, informed again, continues with the files that were queued."""
    policy = OracleTreeQ()
    crawl = crawl_of(policy)
    crawl.add(links(1))
    fetch(crawl, *links(2, 10))
    copy = pickle.loads(pickle.dumps(policy))
    copy.inform(Small())
    copy.attach(crawl.frontier)
    assert copy.select(()).key == 10


class Text:
    """A page with a text."""

    url, status, headers, kind = "http://h/9", 200, {}, ""

    def __init__(self, text: str) -> None:
        self.text = f"<html><body><p>{text}</p></body></html>"


class Tables:
    """A classifier for which texts about tables are relevant."""

    digest = "tables"

    def score(self, texts):
        return np.array([0.5 if "tables" in text else 0.25 for text in texts])


def test_a_classifier_judges_instead_of_the_truth() -> None:
    """With one, page 3 is relevant if its text is, and page 2 is not; links get the probability of their words."""
    policy = OracleTreeQ(relevance=Tables())
    crawl = crawl_of(policy)
    crawl.add(links(1))
    fetch(crawl, link(2, anchor="railways"), link(3, anchor="download tables"), page=Text("railways"))
    probability = policy.layout.names.index("probability")
    assert crawl.frontier.vectors([2, 3])[:, probability].tolist() == [16, 32]
    for pick in [crawl.next(), crawl.next()]:
        text = Text("download csv tables" if pick.key == 3 else "railways")
        crawl.report(page(pick, page=text), links(pick.key + 40))
    assert crawl.frontier.vectors([42, 43])[:, 0].tolist() == [0, 63]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> RecordedSite:
    """A recorded portal with 200 pages."""
    path: Path = tmp_path_factory.mktemp("recorded") / "portal.sqlite"
    record_site(StatisticsPortal(pages=200, endless=False), path, root="http://portal.example/")
    return RecordedSite(path)


def test_a_crawl_finds_everything(site: RecordedSite) -> None:
    """It requests the whole site, and a file as soon as a page with a link to it was fetched."""
    truth = SiteTruth(site, FilesGoal(), ignored=())
    harvest = simulate(OracleTreeQ(rules={"warmup": 20}), FilesGoal(), site, ignored=(), truth=truth)
    assert harvest.coverage == 1
    assert harvest.requests == truth.exhaustive.requests
    targets = {each.key for each in truth.targets()}
    due: set[int] = set()  # files with a link that was seen
    fetched: set[int] = set()
    for at in harvest.pages[1:].tolist():
        assert not (due & targets) - fetched or truth.kind(site.urls[at]) in ("target", "other", "redirect")
        fetched.add(at)
        due |= set(truth.leads_to(at).tolist())


def test_there_are_74_terms() -> None:
    """As many as in the paper, each once, and each can be found in a text."""
    assert len(set(TERMS)) == len(TERMS) == 74
    policy = OracleTreeQ()
    crawl = crawl_of(policy)
    crawl.add(links(1))
    fetch(crawl, *[link(100 + i, anchor=f"the {term} of it") for i, term in enumerate(TERMS)], link(99, anchor="of it"))
    column = policy.layout.names.index("keyword in the anchor")
    found = crawl.frontier.vectors([*range(100, 174), 99])[:, column].tolist()
    assert found == [63] * 74 + [0]


@pytest.mark.parametrize(
    "params", [{"preset": "tres"}, {"keywords": ["?"]}, {"rules": {"gama": 1}}, {"mode": "best"}, {"relevance": "none"}]
)
def test_wrong_parameters_are_refused(params: dict[str, object]) -> None:
    """They raise an error when they enter."""
    with pytest.raises(ConfigError):
        OracleTreeQ(**params)
