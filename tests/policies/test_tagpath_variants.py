"""The variants of TagPath's classifier: its models, what they read of a link, and what queued links note for them."""

from __future__ import annotations

import pickle
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from scrapy_focus import FilesGoal, Link, Outcome, State
from scrapy_focus.lab.compare.specs import PolicySpec
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.lab.sites.portal.portal import TARGET_MIMES
from scrapy_focus.learn.text import N_PAIRS
from scrapy_focus.policies.tagpath.policy import FIRST, TARGETS, TagPath
from tests.made import fetch, page
from tests.policies.portal import recorded
from tests.policies.test_tagpath import LIST, MAIN, NAV, article, started

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy_focus import Placement


class Watched(TagPath):
    """Counts the labels whose features are those that the link had when it was found, by method and kind of queue."""

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        self.features: dict[int, list[int]] = {}
        self.same: Counter[tuple[str, bool]] = Counter()

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        for each in links:
            if each.state == State.NEW:
                self.features[each.key] = self._texts.found(each).tolist()
        return super().place(links, source)

    def _label(self, outcome: Outcome) -> bool:
        pick = outcome.pick
        assert self._noted(pick.url, pick.memo).tolist() == self.features[pick.key]
        self.same[pick.method, pick.arm >= FIRST] += 1
        return super()._label(outcome)


@pytest.mark.parametrize(
    "name", [f"URL_{features}-{model}" for features in ("ONLY", "CONT") for model in ("LR", "SVM", "NB", "PA")]
)
def test_a_variant_crawls_a_site(name: str) -> None:
    """Each finds everything, and its classifier tells most files from pages by what it reads."""
    policy = PolicySpec.parse(name).make()
    assert isinstance(policy, TagPath)
    site = recorded(200, 0)
    harvest = simulate(policy, FilesGoal(types=TARGET_MIMES), site)
    assert harvest.found[-1] == harvest.exhaustive.worth
    weights = policy.predictor._weights
    assert weights is not None
    assert len(weights) == N_PAIRS * (1 if "ONLY" in name else 4)
    assert all(block.any() for block in weights.reshape(-1, N_PAIRS))
    right = Counter(
        policy.predictor.predict(policy._texts.noted(url, "", np.zeros(0, np.float32))) == url.endswith(("csv", "xlsx"))
        for url in harvest.asked
    )
    assert right[True] > 0.6 * right.total()


@pytest.mark.parametrize("probe", [True, False])
def test_the_classifier_learns_what_it_predicts_from(probe: bool) -> None:
    """In a crawl with several in flight, each label has the features that the link had when it was found."""
    policy = Watched(features="context", classifier="bayes", batch=5, probe=probe)
    simulate(policy, FilesGoal(types=TARGET_MIMES), recorded(200, 0), concurrency=4, latency=1.0)
    assert policy.same["GET", True] > 20
    assert policy.same["GET", False] > 20
    assert (policy.same["HEAD", False] >= 5) == probe


def test_a_link_keeps_its_texts_where_a_head_says_nothing() -> None:
    """A link whose HEAD was refused is queued as a page, and the classifier still learns from all its texts."""
    policy = Watched(features="context")
    crawl = started(policy, trained=False)
    crawl.add([article(1)])
    fetch(crawl, article(2, LIST, anchor="About", context="About us"))
    crawl.report(page(crawl.next(), status=405, mime="text/plain"))
    assert fetch(crawl).method == "GET"
    assert policy.same == {("GET", True): 2, ("HEAD", False): 1}


def test_files_are_known_by_their_surroundings() -> None:
    """Where URLs say nothing, anchors tell files from pages: in context they are fetched first."""
    for features in ("url", "context"):
        policy = TagPath(features=features, probe=False, classifier="bayes")
        crawl = started(policy, trained=False)
        for i in range(policy.batch):
            text = "Download" if i % 2 else "About us"
            seen = Link(f"http://h/{i // 2}", i, anchor=text, tag_path=NAV)
            policy.predictor.observe(policy._texts.found(seen), bool(i % 2))
        crawl.add([article(1)])
        fetch(crawl, Link("http://h/x", 2, anchor="About", tag_path=MAIN), Link("http://h/y", 3, anchor="Download"))
        arms = {found.key: place.arm for arm in (TARGETS, FIRST + 1) for found, place in crawl.frontier.scan(arm)}
        assert (arms.get(3) == TARGETS) == (features == "context")
        assert arms.get(2) != TARGETS


@pytest.mark.parametrize("sensitive", [False, True])
def test_letters_have_a_case_only_as_published(sensitive: bool) -> None:
    """A classifier that learned files in capitals from pages in small letters tells them apart only then."""
    policy = TagPath(case_sensitive=sensitive, classifier="bayes", probe=False)
    for i in range(policy.batch):
        policy.predictor.observe(policy._texts.found(Link("REPORT" if i % 2 else "report", i)), bool(i % 2))
    assert policy.predictor.predict(policy._texts.found(Link("REPORT", 1))) == sensitive


def test_a_policy_from_before_the_variants_resumes() -> None:
    """What was stored then is the default variant."""
    policy = TagPath()
    started(policy)
    state = policy.__getstate__()
    for name in ("classifier", "features", "case_sensitive", "_texts"):
        del state[name]
    state["classifier"] = state.pop("predictor")
    older = TagPath.__new__(TagPath)
    older.__setstate__(pickle.loads(pickle.dumps(state)))
    assert (older.classifier, older.features, older.case_sensitive) == ("logistic", "url", False)
    assert older._classify(Link("http://h/files/table-1.pdf", 1, tag_path=LIST), seed=False) == TARGETS
