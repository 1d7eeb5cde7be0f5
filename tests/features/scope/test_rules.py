"""Which URLs are in a scope, whatever crawls them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import pytest

from scrapy_focus.features.scope.record import ScopeRecord
from scrapy_focus.features.scope.rules import Reason, Rules
from scrapy_focus.finders.kit.page.words import _OUT_OF_SCOPE
from scrapy_focus.web.areas import Area
from tests.features.scope.documented import STATS

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy_focus.web.areas import Reach

STARTS = ("https://www.a.test:443/docs/de/index.html?x=1#top", "http://b.c.test:8000/")
URLS = {  # what each reach includes, from the narrowest on
    "page": ("http://a.test/docs/de/index.html?x=1", "http://www.a.test/docs/d%65/./index.html?x=1", STARTS[1]),
    "prefix": (
        "https://a.test/docs/de/", "http://a.test/docs/de/x/y.pdf", "https://a.test/docs/x/../de/y",
        "http://b.c.test:8000/x",
    ),
    "host": ("https://a.test/", "http://data.a.test:81/x", "https://a.test./docs/", "http://b.c.test/"),
    "domain": ("http://c.test/", "https://x.y.c.test/"),
    "any": ("http://other.test/", "mailto:me", "http://[", "http://a.test.other.test/docs/de/"),
}  # fmt: skip
JUST_OUTSIDE = {
    "prefix": (
        "https://a.test/docs/de", "https://a.test/docs/de/../en/", "https://a.test/docs/de/%2e%2E/en/",
        "https://a.test/docs/deutsch/", "http://b.c.test:81/x",
    ),
    "host": ("http://xa.test/docs/de/", "http://c.test/", "http://d.c.test/"),
}  # fmt: skip


@pytest.mark.parametrize("reach", URLS)
def test_an_area_includes_all_narrower_ones(reach: Reach) -> None:
    """Its own URLs and those of narrower areas, and nothing else."""
    area = Area(reach)
    for url in STARTS:
        area.add(url)
    kinds = list(URLS)
    for other, urls in URLS.items():
        for url in urls:
            assert (url in area) == (kinds.index(other) <= kinds.index(reach)), url
    assert not [url for url in JUST_OUTSIDE.get(reach, ()) if url in area]


def test_a_site_is_a_host_and_what_is_below_it() -> None:
    """Section 2.2 of the SB-CLASSIFIER paper, by its example: a leading ``www.`` counts on neither side."""
    area = Area("host")
    area.add("https://www.A.B.com/index.php")
    inside = ["https://www.A.B.com/folder/content.php", "https://www.C.A.B.com/page.html"]
    outside = ["https://www.B.com/page.php", "https://edbticdt2026.github.io/?contents=EDBT_CFP.html"]
    assert [url in area for url in inside + outside] == [True, True, False, False]


def test_a_private_suffix_is_no_domain() -> None:
    """Sites below a name under which anybody can register do not belong together; an address is a domain of its own."""
    area = Area("domain")
    area.add("https://anna.github.io/x")
    area.add("http://127.0.0.1:8000/")
    assert "https://www.anna.github.io/" in area
    assert "http://127.0.0.1/y" in area
    assert "https://bob.github.io/" not in area
    assert "http://127.0.0.2/" not in area


NARROW: dict[str, Any] = {"include": ["a"], "exclude": ["b", "c"], "reach": "host", "depth": 2, "n_pages": 5}


@pytest.mark.parametrize(
    ("change", "is_wider"),
    [
        ({}, False),
        ({"include": []}, True),
        ({"include": ["a", "x"]}, True),
        ({"exclude": ["c"]}, True),
        ({"exclude": ["b", "c", "d"]}, False),
        ({"reach": "prefix"}, False),
        ({"reach": "domain"}, True),
        ({"depth": 1}, False),
        ({"depth": 3}, True),
        ({"depth": None}, True),
        ({"n_pages": 4}, False),
        ({"n_pages": 6}, True),
        ({"n_pages": 0}, True),
    ],
)
def test_wider_rules(change: dict[str, Any], is_wider: bool) -> None:
    """Rules are wider if any of them allows what the others did not."""
    assert Rules(**NARROW | change).is_wider_than(Rules(**NARROW)) == is_wider
    assert not Rules(**NARROW).is_wider_than(Rules())


def test_each_reason_has_a_stat_and_a_sentence() -> None:
    """Under its own name."""
    reasons = set(get_args(Reason)) - {""}
    assert {f"focus/scope/{reason}" for reason in reasons} == {name for name in STATS if name.startswith("focus/scope")}
    assert set(_OUT_OF_SCOPE) == reasons


def test_the_record_survives_a_cut(tmp_path: Path) -> None:
    """A record that was cut by a kill is lost, and nothing before it."""
    path = tmp_path / "scope"
    record = ScopeRecord(path)
    record.begin(Rules(**NARROW))
    record.add_start("http://a.test/")
    assert [record.count("http://www.a.test/x", key, 2) for key in (1, 2, 1, 3)] == [True, True, True, False]
    assert [record.rule_out("excluded", url) for url in ("http://a.test/1", "http://a.test/1", "http://a.test/2")] == [
        True, False, True,
    ]  # fmt: skip
    record.close()
    path.write_bytes(path.read_bytes()[:-1])
    again = ScopeRecord(path)
    assert again.rules == Rules(**NARROW)
    assert again.starts == ["http://a.test/"]
    assert again.n_ruled_out == {"excluded": 1}
    assert again.rule_out("depth", "http://a.test/2")
    assert again.is_full("http://a.test/x", 3, 2)
    assert not again.is_full("http://a.test/x", 2, 2)
    assert not again.is_full("http://b.test/x", 2, 2)
    again.close()
