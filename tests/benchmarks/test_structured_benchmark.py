"""The benchmark of crawls for structured data: it counts what a crawl found, and resumes where it was."""

from __future__ import annotations

import json
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import pytest

import structured
from manyhosts.flying import steps
from manyhosts.web import MadeUpWeb
from scrapy_focus.core.crawl import Crawl
from scrapy_focus.frontiers.memory import memory_frontier
from scrapy_focus.policies.orderings import BreadthFirst
from structured_tables import Run, read, tables

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from manyhosts.web import WebPage
    from scrapy_focus.core.types import Outcome, Pick

pytestmark = pytest.mark.slow

WEB = {"budget": 1_200, "web_seed": 1, "n_hosts": 2_000, "n_pages": 30_000}
COMMAND = ["--hosts", "2000", "--pages", "30000", "--budget", "300", "--runs", "1", "--settings", "2022 any"]


def breadth_first(web: MadeUpWeb, setting: structured.Setting, seed: int, budget: int) -> tuple[int, int]:
    """Return how many pages are wanted among the first in the order of discovery, and entities on them."""
    urls = web.some_pages(structured.N_SEEDS, np.random.default_rng(seed))
    seen, pages, entities, asked, at = {*urls}, 0, 0, 0, 0
    while asked < budget:
        page = web.page(urls[at])
        at, asked = at + 1, asked + 1
        if page.location and page.location not in seen and asked < budget:
            seen.add(page.location)
            page, asked = web.page(page.location), asked + 1
        found = sum(name in setting.types for name in page.entities) if setting.types else len(page.entities)
        if found and page.facts >= setting.least:
            pages, entities = pages + 1, entities + found
        new = [link.url for link in page.links if link.url not in seen]
        urls += new
        seen.update(new)
    return pages, entities


@pytest.mark.parametrize("setting", ["2012 any", "2022 any", "one type"])
def test_counts_what_a_crawl_found(setting: str) -> None:
    """Precision and entities are those of the pages that breadth-first search asks for, failures in the number of pages."""
    run = structured.do(("breadth-first", setting, "none", 3, 1), **WEB)
    web = structured.open_web(4, structured.SETTINGS[setting].markup, 2_000, 30_000)
    pages, entities = breadth_first(web, structured.SETTINGS[setting], 3, 1_200)
    last = run.marks[-1]
    assert [mark.fetches for mark in run.marks] == [1_000, 1_200]
    assert (last.pages, last.entities) == (pages, entities)
    assert run.precision == pages / 1_200
    assert run.there == web.described(structured.SETTINGS[setting].types, structured.SETTINGS[setting].least)
    assert 0 < last.domains <= last.hosts < last.seen_hosts


def test_caps_and_requests_in_flight() -> None:
    """With a cap fewer pages of more domains are found; with many in flight other pages, and about as many."""
    free, capped, flying = (
        structured.do(("parent first", "2022 any", cap, 0, n), **WEB)
        for cap, n in (("none", 1), ("10", 1), ("none", 16))
    )
    assert capped.marks[-1].seen_hosts > free.marks[-1].seen_hosts
    assert free.pages / free.marks[-1].domains > capped.pages / capped.marks[-1].domains < 10
    assert flying.precision == pytest.approx(free.precision, rel=0.25)
    assert flying.pages != free.pages


@pytest.mark.parametrize(
    "name", ["random", "random host", "tree", "branching", "thompson, 0.1 hyperbolic", "published bayes best, 0"]
)
def test_policies_are_made_by_name(name: str) -> None:
    """Each kind of name makes a policy that crawls to the end of its budget."""
    run = structured.do((name, "one type", "none", 0, 1), **WEB | {"budget": 150})
    assert (run.fetches, run.ended) == (150, "budget_requests")


def test_a_static_classifier_knows_another_web() -> None:
    """It was trained elsewhere, and finds more than breadth-first search from the start."""
    runs = [structured.do((name, "one type", "none", 0, 1), **WEB) for name in (structured.STATIC, "breadth-first")]
    assert runs[0].pages > 1.5 * runs[1].pages


def test_names_say_what_the_bandit_is_made_with() -> None:
    """A score with the preset and the classifier before it."""
    web = structured.open_web(1, "2022", 2_000, 30_000)
    policy = structured.make_policy("published bayes best, 0.1 hyperbolic", "one type", "10", web)
    made = {name: getattr(policy, name) for name in ("preset", "classifier", "score", "explore", "decay", "per_domain")}
    assert [*made.values()] == ["cikm-2014", "bayes", "best", 0.1, "hyperbolic", 10]
    policy = structured.make_policy("bayes posterior x best, 0", "one type", "none", web)
    made = {name: getattr(policy, name) for name in ("preset", "classifier", "score", "explore", "decay", "per_domain")}
    assert [*made.values()] == ["", "bayes", "posterior x best", 0.0, "none", None]


def test_the_oracle_finds_more_than_anyone() -> None:
    """It asks for nothing but wanted pages while it knows of some, and finds more than links of wanted pages first."""
    oracle, other = (structured.do((name, "2022 any", "none", 0, 1), **WEB) for name in ("oracle", "parent first"))
    assert oracle.precision > 0.9
    assert oracle.pages > other.pages


@pytest.mark.parametrize("name", ["breadth", "posterior", "posterior, 2", "best, 0.1 slow", "published random"])
def test_a_name_that_is_none_is_said(name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A wrong name of a policy ends the command with a sentence, before anything is run."""
    with pytest.raises(SystemExit):
        structured.main(["--policies", name, "--output", str(tmp_path / "runs.json")])
    assert f"{name!r} is not a policy" in capsys.readouterr().err


def test_resumes_and_prints_tables(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Each run is kept, existing ones are not repeated, and the table has a row for each policy."""
    output = tmp_path / "runs.json"
    structured.main([*COMMAND, "--policies", "breadth-first", "--output", str(output)])
    assert capsys.readouterr().out.count("* - breadth-first") == 1
    first = json.loads(output.read_text())["runs"]
    structured.main([*COMMAND, "--policies", "breadth-first", "random", "--output", str(output)])
    printed = capsys.readouterr()
    assert "random 2022 any" in printed.err
    assert "breadth-first" not in printed.err
    runs = read(output)
    assert [run.policy for run in runs] == ["breadth-first", "random"]
    assert json.loads(output.read_text())["runs"][0] == first[0]
    structured.main([*COMMAND, "--tables-only", "--output", str(output)])
    assert capsys.readouterr().out == printed.out == tables(runs, [*structured.SETTINGS]) + "\n"
    with pytest.raises(SystemExit):
        structured.main(["--output", str(output)])
    assert "another budget" in capsys.readouterr().err


def test_says_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    """The webs can be described without a crawl, and the policies be listed."""
    structured.main([*COMMAND, "--describe"])
    web = structured.open_web(1, "2022", 2_000, 30_000)
    assert f"{web.described(least=6).pages:,}" in capsys.readouterr().out
    structured.main(["--list-policies"])
    assert "posterior x best, 0.1 hyperbolic" in capsys.readouterr().out


def test_tables_have_means_and_spreads() -> None:
    """Runs of several seeds make one row, of means and standard deviations."""
    runs = [structured.do(("random", "2022 any", "none", seed, 1), **WEB | {"budget": 200}) for seed in range(2)]
    values = [run.pages / 200 for run in runs]
    assert f"{np.mean(values):.3f} ± {np.std(values, ddof=1):.3f}" in tables(runs, [*structured.SETTINGS])
    assert isinstance(runs[0], Run)


class Polite(BreadthFirst):
    """Breadth-first, with a look at which hosts are asked at the same time."""

    def __init__(self) -> None:
        super().__init__()
        self.flying: Counter[str] = Counter()
        self.most = 0

    def select(self, busy: Collection[str]) -> Pick | None:
        pick = super().select(busy)
        if pick is not None:
            self.flying[pick.host] += 1
            self.most = max(self.most, self.flying[pick.host])
        return pick

    def learn(self, outcome: Outcome) -> None:
        self.flying[outcome.pick.host] -= 1


def polite(in_flight: int) -> tuple[Polite, list[WebPage]]:
    """Crawl 3,000 pages and return the policy, and the pages."""
    web, policy = MadeUpWeb(seed=1, hosts=2_000, markup="2022", pages=20_000, links=10), Polite()
    goal = structured.Wanted(structured.Setting("2022"))
    crawl = Crawl(policy, frontier=memory_frontier, goal=goal, seed=0, strict=True)
    crawl.add([web.link(url) for url in web.some_pages(50, np.random.default_rng(0))])
    return policy, [step.page for step in islice(steps(crawl, web, in_flight), 3_000)]


def test_asks_for_no_page_twice() -> None:
    """The target of a redirect is not requested again; a redirect to a known page is not followed."""
    _, pages = polite(1)
    assert len({page.url for page in pages}) == len(pages) == 3_000
    assert 0 < sum(page.location != "" for page in pages) < len(pages) / 50


def test_asks_for_one_page_of_a_host_at_a_time() -> None:
    """A host has one request in flight, whatever others have."""
    policy, pages = polite(16)
    assert policy.most == 1
    assert policy.flying.total() == 15  # when the last page came, the others were on their way
    assert len(pages) == 3_000
