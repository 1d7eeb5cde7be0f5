"""What TRES says of its choices: a sentence for each feature of a link that says something."""

from __future__ import annotations

import numpy as np
import pytest

from scrapy_focus import Pick, Reason
from scrapy_focus.policies.treeq.explanation import explained
from scrapy_focus.policies.treeq.features import layout

NAMES = layout(in_links=True, groups=True, link_model=True).names


def said(known: dict[str, float], depth: int) -> str:
    """Return the text for the features of a pick, and check that none of their numbers is lost."""
    pick = Pick(
        id=1, key=1, url="http://a.test/", host="a.test", depth=depth, arm=0, rank=0.0, memo=None, origin=-1,
        method="GET", payload=b"",
    )  # fmt: skip
    reason = Reason(*explained(known, pick))
    assert reason == known
    return str(reason)


@pytest.mark.parametrize("value", [0.0, 0.33, 1.0])
def test_every_feature_is_put_into_words(value: float) -> None:
    """Or omitted without evidence; only features that are not in the paper are named with their values."""
    groups = [name for name in NAMES if name.endswith(("tag path", "URL pattern", "anchor")) and "keyword" not in name]
    own = {name: value for name in NAMES if name not in (*groups, "depth")}
    assert not any(f"{name} {value}" in said(own, 3) for name in own)
    assert all((f"{name} {value}" in said({name: value}, 3)) is (value > 0) for name in groups)


def test_the_sentence_of_a_topic_is_named_with_the_probability() -> None:
    """In place of a share in per cent; text of a user is shortened, and shown literally."""
    known = {"probability": 0.41}
    pick = Pick(
        id=1, key=1, url="http://a.test/", host="a.test", depth=2, arm=0, rank=0.0, memo=None, origin=-1,
        method="GET", payload=b"",
    )  # fmt: skip
    assert said(known, 2) == "words of the link 41 % on the topic"
    reason = Reason(*explained(known, pick, about="municipal budgets"))
    assert (str(reason), dict(reason)) == ('the link reads like "municipal budgets" (0.41)', known)
    long = str(Reason(*explained(known, pick, about="\x1b[31m" + "budgets " * 50)))
    assert long.startswith('the link reads like "\\x1b[31mbudgets budgets')
    assert long.endswith('..." (0.41)')
    assert len(long) < 90


def test_the_way_to_a_link_is_described() -> None:
    """By its depth near a seed, further on by the relevant pages on the way."""
    assert said({"parent relevant": 1, "nearness of a relevant page": 1}, 2) == "found on a relevant page"
    assert said({"parent relevant": 0, "nearness of a relevant page": 0.25}, 9) == "4 clicks behind a relevant page"
    assert said({"parent relevant": 0}, 2) == "no relevant page on the way there"
    assert said({"parent relevant": 1}, 1) == "found on a seed"
    assert said({"parent relevant": 0}, 0) == "a seed"


def test_a_domain_is_described_where_something_is_known_of_it() -> None:
    """The initial value of each domain says nothing."""
    assert said({"relevant share of its host": 0.51, "unknown host": 0}, 1) == "found on a seed"
    assert said({"relevant share of its host": 0.8}, 1) == "found on a seed; 80 % of its domain relevant"
    assert said({"relevant share of its host": 0.5, "unknown host": 1}, 1) == "found on a seed; a new domain"


def test_relevant_pages_that_link_there_are_counted() -> None:
    """With their share of all that do, unless it is all."""
    counts = {"links from relevant pages": 0.38, "share of links from relevant pages": 0.5}
    assert "3 relevant pages link there, 50 % of all that do" in said(counts, 2)
    assert "more than 35 relevant pages link there" in said({"links from relevant pages": 1.0}, 2)


@pytest.mark.parametrize("n", range(36))
def test_numbers_of_links_are_read_back(n: int) -> None:
    """As many relevant pages are named as were counted, or about as many where the policy keeps no more."""
    code = min(round(12 * np.log2(1 + n)), 63)
    [piece] = [
        piece
        for piece in said({"links from relevant pages": round(code / 63, 2)}, 2).split("; ")
        if "link there" in piece
    ] or [""]
    if n < 2:
        assert not piece
    elif n <= 5:
        assert piece.startswith(f"{n} relevant pages link there")
    else:
        assert abs(int(piece.split()[1]) - n) <= 0.06 * n + 0.5
