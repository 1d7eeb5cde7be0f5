"""What other sites taught, as the start of a crawl: its file, and what a crawl makes of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from scrapy_focus import ConfigError, Crawl, Link, memory_frontier
from scrapy_focus.goals.files import FilesGoal
from scrapy_focus.goals.pages import PagesGoal
from scrapy_focus.learn.hashed import N_FEATURES, feature
from scrapy_focus.learn.modelfile import write_model
from scrapy_focus.policies.branching import BranchingBandit
from scrapy_focus.policies.branching.prior import BUILT_IN, PRIOR, read_prior, write_prior
from scrapy_focus.web.words import words_of


def started(policy: BranchingBandit, *, files: bool = True) -> BranchingBandit:
    """Return the policy of a crawl that began."""
    goal = FilesGoal(types=["text/csv"]) if files else PagesGoal()
    Crawl(policy, goal=goal, frontier=memory_frontier, seed=0)
    return policy


def test_a_prior_is_read_as_it_was_written(tmp_path: Path) -> None:
    weights = np.zeros(N_FEATURES)
    weights[[3, 65_535]] = 1.5, -2.0
    write_prior(tmp_path / "prior.npz", weights)
    features, read = read_prior(str(tmp_path / "prior.npz"))
    assert features.tolist() == [3, 65_535]
    assert read.tolist() == [1.5, -2.0]


def test_the_prior_of_the_package_is_small_and_prefers_downloads() -> None:
    features, weights = read_prior(BUILT_IN)
    known = dict(zip(features.tolist(), weights.tolist(), strict=True))
    assert all(known[feature("url", word)] > 0 for word in ("daten", "download", "publicaciones"))
    assert all(known[feature("anchor", part)] > 0 for part in words_of("Daten, download, données, データ"))
    assert (Path(__file__).parents[2] / "scrapy_focus/policies/branching/prior.npz").stat().st_size < 300_000


def test_the_models_start_from_it_where_types_are_looked_for() -> None:
    features, weights = read_prior(BUILT_IN)
    policy = started(BranchingBandit())
    assert policy.leads.weights[features].tolist() == weights.tolist()
    assert not started(BranchingBandit(prior="")).leads.weights.any()
    assert not started(BranchingBandit(), files=False).leads.weights.any()


def test_the_first_choice_follows_it(tmp_path: Path) -> None:
    """A hundred links of one list, of which one has a word that led to files on other sites."""
    weights = np.zeros(N_FEATURES)
    weights[feature("url", "atlas")] = 8.0
    write_prior(tmp_path / "prior.npz", weights)
    names = [f"page-{number}" for number in range(99)]
    names.insert(70, "atlas")
    links = [Link(f"http://a.test/{name}", key, "a.test", 1, "", "html/body/a") for key, name in enumerate(names)]
    firsts = set()
    for prior in (str(tmp_path / "prior.npz"), ""):
        crawl = Crawl(
            BranchingBandit(prior=prior, explore=0.0),
            goal=FilesGoal(types=["text/csv"]),
            frontier=memory_frontier,
            seed=0,
        )
        crawl.add(links)
        pick = crawl.next()
        assert pick is not None
        firsts.add((prior != "", pick.url))
    assert (True, "http://a.test/atlas") in firsts
    assert (False, "http://a.test/atlas") not in firsts


def test_a_file_that_is_no_prior_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.npz").write_text("no numbers")
    arrays = {"features": np.arange(3, dtype=np.uint16), "weights": np.ones(2)}
    write_model(tmp_path / "short.npz", {}, arrays, PRIOR)
    write_model(tmp_path / "large.npz", {}, {**arrays, "weights": np.full(3, np.inf)}, PRIOR)
    for name, said in (
        ("text", "is not a prior"), ("short", "no weight for each"), ("large", "no weight for each"),
        ("absent", "there is no file"),
    ):  # fmt: skip
        with pytest.raises(ConfigError, match=said):
            BranchingBandit(prior=str(tmp_path / f"{name}.npz"))
    with pytest.raises(ConfigError, match="65,536 weights"):
        write_prior(tmp_path / "prior.npz", np.zeros(3))
