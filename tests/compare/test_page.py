"""The page of a comparison: that it says what came out, to people, without anything else, whatever names it gets."""

from __future__ import annotations

import json
import math
import re
from configparser import ConfigParser
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from compared import comparison

from scrapy_focus import FilesGoal
from scrapy_focus.lab.compare.page import page
from scrapy_focus.lab.compare.repeat import Repeat
from scrapy_focus.lab.compare.specs import PolicySpec, known_policies, paper_names
from scrapy_focus.lab.compare.tables import summary_json
from scrapy_focus.lab.compare.words import goal_text, policy_text
from scrapy_focus.lab.replay.metrics import METRICS
from scrapy_focus.web.wanted import parse_types
from tests.pages import Reader

if TYPE_CHECKING:
    from scrapy_focus.lab.compare.comparison import Comparison

REPEAT = Repeat(
    made=datetime(2026, 3, 4, tzinfo=UTC), command="scrapy focus-compare 'a b.sqlite'", versions={"scrapy_focus": "1.2"}
)
EVIL = "<script>alert(1)</script>\"'&"


@pytest.fixture(scope="module")
def made() -> Comparison:
    nan, inf = math.nan, math.inf
    return comparison(
        {
            "portal": {"SB-CLASSIFIER": [20.0, 22.0, 21.0], "BFS": [50.0] * 3, "OMNISCIENT": [10.0] * 3},
            "blog": {"SB-CLASSIFIER": [70.0, 71.0, 72.0], "BFS": [50.0] * 3, "OMNISCIENT": [10.0] * 3},
            "shop": {"SB-CLASSIFIER": [inf, 40.0, nan], "BFS": [50.0] * 3, "OMNISCIENT": [10.0] * 3},
        },
        budget=150,
    )


@pytest.fixture(scope="module")
def reader(made: Comparison) -> Reader:
    return Reader(page(made, metric="requests_90", repeat=REPEAT))


def test_the_page_stands_alone(reader: Reader) -> None:
    """Nothing is loaded from anywhere: no scripts, no pictures, no styles; only the sites are linked."""
    assert not reader.all("script") + reader.all("link") + reader.all("img") + reader.all("iframe")
    for tag, attributes in reader.elements:
        assert "src" not in attributes
        if tag == "a":
            assert attributes["href"] == "https://example.org/a?b&c"
        else:
            for name in ("href", "xlink:href"):
                assert (attributes.get(name) or "#").startswith("#")
    style = "".join(re.findall(r"<style>.*?</style>", page_of(reader), re.DOTALL))
    assert "url(" not in style
    assert "@import" not in style


def page_of(reader: Reader) -> str:
    return reader.rawdata or "".join(reader.words)


def test_the_result_comes_first_and_is_honest(reader: Reader) -> None:
    """It says by how much and where a policy is better, where it is worse, and that OMNISCIENT is not a crawl."""
    result = reader.text.partition("What was compared")[0]
    assert (
        "SB-CLASSIFIER needs 23 % fewer requests than BFS to find 90 % of what there is (geometric mean over the 2 of "
        "3 sites where both always get there): it is clearly better on 1 of 3 (portal), clearly worse on blog, "
        "no difference is clear on shop." in result
    )
    assert "OMNISCIENT, which is given the answers beforehand" in result
    assert "1 of 27 runs failed" in result


def test_everything_is_explained(reader: Reader) -> None:
    """The words, the curves, every metric, and how to repeat it, are on the page."""
    for words in (
        "is called a policy",
        "Request",
        "Target",
        "Seed",
        "Higher and further left is better",
        "Each crawl was stopped after 150 requests",
    ):
        assert words in reader.text
    for metric in METRICS.values():
        assert metric.description in reader.text
        assert metric.unit in reader.text
    assert REPEAT.command in reader.text
    assert "scrapy_focus.policies.tagpath.TagPath" in reader.text
    assert "4 March 2026" in reader.text.replace("04", "4")


def test_policies_are_explained(reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each policy of the package has a sentence that needs no knowledge, one of a user has its docstring."""
    assert "Takes links in the order of discovery" in reader.text
    texts = [policy_text(PolicySpec.parse(name)) for name in [*paper_names(), *known_policies()]]
    assert all(len(text) > 30 and ":class:" not in text for text in texts)
    assert policy_text(PolicySpec.parse("eager=TagPath:alpha=0.5")).endswith("Here with alpha=0.5.")
    rank = "    def rank(self, link, source):\n        return 0\n"
    (tmp_path / "told_policies.py").write_text(
        "from scrapy_focus import Ordering\n"
        f'class Told(Ordering):\n    """Short first.\n\n    More.\n    """\n{rank}class Silent(Ordering):\n{rank}'
        f'class Plain(Told):\n    """Of rank 0."""\n    summary = "Takes what is short."\n{rank}'
        f"class Heir(Plain):\n{rank}"
        f'class Verb(Ordering):\n    """Has a method of that name."""\n    def summary(self):\n        return 0\n{rank}'
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    said = {"Told": "Short first.", "Silent": "", "Plain": "Takes what is short.", "Heir": "",
            "Verb": "Has a method of that name."}  # fmt: skip
    for name, sentence in said.items():
        assert policy_text(PolicySpec.parse(f"told_policies.{name}")) == sentence


def test_tables_show_spread_and_what_was_never_reached(reader: Reader, made: Comparison) -> None:
    """Cells have mean and deviation; what was not reached is counted, failures too; the best is marked."""
    assert "21.0 ± 1.0" in reader.text
    assert "> budget (1 of 2 seeds), else 40.0 (1 failed)" in reader.text
    assert "ValueError: <oh & no>" in reader.text
    html = page(made, metric="requests_90", repeat=REPEAT, plots=False)
    assert '<td class="best">21.0 ± 1.0</td>' in html
    assert '<td class="best">10.0' not in html
    assert '<th scope="col">OMNISCIENT\N{NO-BREAK SPACE}*</th>' in html


def test_the_first_requests_have_tables(reader: Reader) -> None:
    """What the first 100, 300 and 1,000 requests found is shown, and without the link floor no loss."""
    shown = reader.text.partition("The first requests")[2].partition("Site by site")[0]
    assert all(f"Found after {requests} requests" in shown for requests in ("100", "300", "1,000"))
    assert "Where requests are lost" not in reader.text


def test_rewards_of_groups_are_averaged_over_the_seeds() -> None:
    """Only policies with groups are listed; a seed with fewer groups counts as 0, one without a table not at all."""
    made = comparison({"s": {"SB-CLASSIFIER": [20.0, 22.0, 21.0], "BFS": [50.0] * 3}})
    assert "Rewards of groups" not in page(made, metric="requests_90", repeat=REPEAT, plots=False)
    rows = [(2.0, 3.0, 1.0, 4.0, 2.0), (1.0, 1234.0, 0.0, 1234.0), ()]
    made.runs[:3] = [replace(run, rewards=row) for run, row in zip(made.runs, rows, strict=False)]
    assert made.rewards("s", "SB-CLASSIFIER") == [1.5, 618.5, 0.5, 619.0, 1.0]
    assert made.rewards("s", "BFS") == []
    shown = Reader(page(made, metric="requests_90", repeat=REPEAT, plots=False)).text
    shown = shown.partition("Rewards of groups of links")[2].partition("All metrics")[0]
    assert shown.split("10th")[1].split()[:8] == ["s", "SB-CLASSIFIER", "1.5", "618", "0.5", "619", "1", "-"]
    [of_site] = json.loads(summary_json(made, "requests_90", REPEAT, []))["rewards"]
    assert of_site == {
        "site": "s", "policy": "SB-CLASSIFIER", "groups": 1.5, "mean": 618.5, "sd": 0.5, "best": [619.0, 1.0],
    }  # fmt: skip


def test_losses_stand_next_to_the_link_floor() -> None:
    """With the link floor the page says how many requests more a policy needed in each stage."""
    made = comparison({"s": {"BFS": [50.0, 60.0], "LINK-FLOOR": [10.0, 10.0]}}, metric="late_requests")
    html = page(made, metric="requests_90", repeat=REPEAT, plots=False)
    assert "Where requests are lost" in html
    cells = re.findall(r"<td[^>]*>(.*?)</td>", html.partition('id="loss"')[2].partition("</section>")[0])
    assert cells == ["BFS", "0", "0", "45"]


def test_it_can_be_read_without_seeing_it(reader: Reader) -> None:
    """Tables have headers with a scope, figures a title, sections a heading, and ids are unique."""
    for attributes in reader.all("th"):
        assert attributes["scope"] in ("col", "row")
    for attributes in reader.all("svg"):
        assert attributes["role"] == "img"
        assert attributes["aria-labelledby"]
    ids = [value for _, attributes in reader.elements if (value := attributes.get("id"))]
    assert len(ids) == len(set(ids))
    for _, attributes in reader.elements:
        for name in (attributes.get("aria-labelledby") or "").split():
            assert name in ids
    assert reader.all("html")[0]["lang"] == "en"
    assert len(reader.all("h1")) == len(reader.all("main")) == 1
    assert "Requests until 90 %, in % of an exhaustive crawl: SB-CLASSIFIER: 21.0 ± 1.0; BFS: 50.0 ± 0.0" in reader.text
    assert len(reader.all("svg")) == 3 * 2 + 1


def test_names_are_only_names() -> None:
    """A site, policy or error with markup in it is shown as it is, and does nothing."""
    evil = comparison({EVIL: {f"{EVIL.replace('=', '')}=BFS": [1.0, math.nan], "BFS": [2.0, 2.0]}})
    facts = evil.sites[EVIL]
    assert facts is not None
    facts.roots[:] = ["javascript:alert(1)"]
    for plots in (True, False):
        html = page(evil, metric="requests_90", repeat=REPEAT._replace(command=EVIL), plots=plots)
        read = Reader(html)
        assert not read.all("script")
        assert not read.all("a")
        assert "<script" not in html
        assert EVIL in read.text


def test_no_address_breaks_out_of_its_attribute() -> None:
    """A recording may come from anybody, and so may the URL where it says that its site starts."""
    made = comparison({"s": {"BFS": [50.0]}})
    facts = made.sites["s"]
    assert facts is not None
    facts.roots[:] = ['https://example.org/" onclick="alert(1)']
    (link,) = Reader(page(made, metric="requests_90", repeat=REPEAT, plots=False)).all("a")
    assert link == {"href": facts.roots[0], "rel": "noreferrer"}


def test_a_page_without_plots_or_differences() -> None:
    """One policy, with nothing to compare with, and no plots, still make a page that can be read."""
    read = Reader(page(comparison({"s": {"BFS": [50.0]}}), metric="area", repeat=REPEAT, plots=False))
    assert not read.all("svg")
    assert "There is only one policy" in read.text
    assert "Higher and further left" not in read.text
    assert "There is one seed" in read.text


def test_sites_that_could_not_be_read_are_named() -> None:
    """A site without data is on the page, with the failures."""
    made = comparison({"s": {"BFS": [math.nan, math.nan]}})
    made.sites["s"] = None
    read = Reader(page(made, metric="requests_90", repeat=REPEAT))
    assert "no crawl could read its recording" in read.text
    assert "2 of 2 runs failed" in read.text


def test_goals_are_named_in_plain_words() -> None:
    """Files by their types; other goals by their description, or by their name."""
    assert goal_text(FilesGoal()).startswith("data files and documents")
    assert (
        goal_text(FilesGoal(types=parse_types(["csv"]), stored=True)) == "files of these types: csv, each content once"
    )
    assert goal_text(len) == "what len counts"
    assert goal_text(Path("x")) == "PosixPath('x')"


def test_the_template_is_part_of_the_package() -> None:
    """The installed package has the template, and every other file that is not a module."""
    root = Path(__file__).parents[2]
    settings = ConfigParser()
    settings.read(root / "setup.cfg")
    data = settings["options.package_data"]
    files = [path for path in (root / "scrapy_focus").rglob("*.*") if path.suffix not in (".py", ".pyc", ".rst")]
    assert files
    for path in files:
        patterns = data.get(".".join(path.parent.relative_to(root).parts), "").replace(",", " ").split()
        assert any(path.match(pattern) for pattern in patterns), path
