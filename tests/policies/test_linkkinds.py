"""What an extension says: what is looked for at first, and what was seen soon after."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from scrapy_focus.policies.branching import extensions as linkkinds
from scrapy_focus.policies.branching.extensions import LinkKinds
from scrapy_focus.web.mime import DATA_TYPES

CSV, HTML, NONE, PNG = "http://h/a.csv", "http://h/a.html", "http://h/a", "http://h/a.png"


def odds(kinds: LinkKinds, url: str) -> float:
    """Return the odds of one URL."""
    return float(kinds.odds([url])[0])


def test_wanted_extensions_are_expected_to_be_targets() -> None:
    """Where CSV is looked for, .csv is ahead of pictures, these of pages, and pages with and without extension are one."""
    kinds = LinkKinds(["text/csv"])
    assert odds(kinds, CSV) > 1
    assert 0 > odds(kinds, PNG) > odds(kinds, HTML)
    assert (
        odds(kinds, HTML) == odds(kinds, NONE) == odds(kinds, "http://h/a.php?x=y.csv") == odds(kinds, "http://h/a.jsp")
    )


def test_without_targets_nothing_is_expected_of_any_extension() -> None:
    """In item mode anything may be a target: all begin alike."""
    kinds = LinkKinds()
    assert len(set(kinds.odds([CSV, HTML, NONE, PNG, "http://h/a.pdf"]).tolist())) == 1


@pytest.mark.parametrize(
    ("targets", "wanted", "others"),
    [
        (["image/*"], ["jpg", "png", "gif"], ["csv", "pdf", ""]),
        (["application/pdf"], ["pdf"], ["csv", "jpg"]),
        (DATA_TYPES, ["csv", "xlsx", "ods", "zip"], ["html", "mp4"]),
        (["text/html"], [], ["csv"]),
    ],
)
def test_types_and_patterns_mean_extensions(targets: list[str], wanted: list[str], others: list[str]) -> None:
    """Odds are above even for the extensions of wanted types, and below for the others."""
    kinds = LinkKinds(targets)
    assert all(odds(kinds, f"http://h/a.{extension}") > 0 for extension in wanted)
    assert all(odds(kinds, f"http://h/a.{extension}") < 0 for extension in others)


def test_what_is_expected_fades() -> None:
    """Five .csv that were none end what is expected of it, and ten pages that were targets what is expected of pages."""
    kinds = LinkKinds(["text/csv"])
    for _ in range(5):
        kinds.learn(CSV, False)
    assert odds(kinds, "http://h/b.csv") < 0
    for _ in range(10):
        kinds.learn(HTML, True)
    assert odds(kinds, "http://h/b.html") > 0
    assert odds(kinds, PNG) == odds(LinkKinds(["text/csv"]), PNG), "nothing was learned of others"


def test_odds_are_those_of_what_was_seen() -> None:
    """After a hundred that were targets and three hundred that were not, odds are near one to three."""
    kinds = LinkKinds(["text/csv"])
    for i in range(400):
        kinds.learn(PNG, i % 4 == 0)
    assert odds(kinds, PNG) == pytest.approx(np.log(1 / 3), abs=0.02)


def test_capitals_make_no_difference() -> None:
    """.CSV is .csv."""
    kinds = LinkKinds(["text/csv"])
    assert odds(kinds, "http://h/A.CSV") == odds(kinds, CSV)
    kinds.learn("http://h/A.CSV", False)
    assert odds(kinds, "http://h/A.CSV") == odds(kinds, CSV)


def test_what_is_no_extension_is_none() -> None:
    """A dot in a long name, in a folder or in the query makes no separate extension."""
    kinds = LinkKinds(["text/csv"])
    for url in ("http://h/a.introduction-to-it", "http://h/b.csv/c", "http://h/c?d=e.csv", "http://h/d.", "http://h"):
        assert odds(kinds, url) == odds(kinds, NONE), url


def test_pages_of_links_are_read_at_once() -> None:
    """Odds come in the order of the URLs; there may be none."""
    kinds = LinkKinds(["text/csv"])
    assert kinds.odds([CSV, HTML, CSV, PNG]).tolist() == [odds(kinds, url) for url in (CSV, HTML, CSV, PNG)]
    assert kinds.odds([]).shape == (0,)


def test_extensions_that_are_remembered_have_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Past the limit, known ones keep learning, and any other keeps its prior."""
    monkeypatch.setattr(linkkinds, "_MOST", 3)
    kinds = LinkKinds(["text/csv"])
    for i in range(100):
        kinds.learn(f"http://h/a.x{i}", True)
    assert len(kinds.seen) == 3
    before = odds(kinds, "http://h/a.x1")
    kinds.learn("http://h/a.x1", True)
    kinds.learn(CSV, False)
    assert odds(kinds, "http://h/a.x1") > before
    assert odds(kinds, CSV) == odds(LinkKinds(["text/csv"]), CSV)


def test_pickled_it_expects_the_same() -> None:
    """What was seen is stored."""
    kinds = LinkKinds(["text/csv", "image/*"])
    for i in range(20):
        kinds.learn([CSV, HTML, PNG][i % 3], i % 2 == 0)
    copy: LinkKinds = pickle.loads(pickle.dumps(kinds))
    assert copy.odds([CSV, HTML, PNG, NONE]).tolist() == kinds.odds([CSV, HTML, PNG, NONE]).tolist()
