"""What outcomes are worth."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from scrapy_focus import FilesGoal, ItemsGoal, MemoryFrontier, Placement
from tests.made import PDF, link, page


def pick(url: str = "http://h/file", method: str = "GET"):
    """Return a pick of a URL."""
    frontier = MemoryFrontier()
    frontier.push([link(1, url=url)], [Placement(0, 0.0, None, method)])
    return frontier.pop(0)


@pytest.mark.parametrize(
    ("mime", "url", "rest", "worth"),
    [
        (PDF, "http://h/file", {}, 1.0),
        ("text/html", "http://h/a.pdf", {}, 0.0),
        ("application/octet-stream", "http://h/a.csv", {}, 1.0),
        ("", "http://h/a.csv", {}, 1.0),
        ("", "http://h/a", {}, 0.0),
        (PDF, "http://h/file", {"status": 404}, 0.0),
        (PDF, "http://h/file", {"status": 206}, 1.0),
        (PDF, "http://h/file", {"status": 301}, 0.0),
        (PDF, "http://h/file", {"status": None}, 0.0),
        (PDF, "http://h/file", {"error": "ignored"}, 0.0),
    ],
)
def test_a_file_of_a_wanted_type_is_worth_one(mime: str, url: str, rest: dict, worth: float) -> None:
    """The type counts, or the extension where there is none; an answer without success is worth nothing."""
    assert FilesGoal()(page(pick(url), mime=mime, **rest)) == worth


def test_only_wanted_types_are_targets() -> None:
    """With types of one's own, others are worth nothing; patterns work."""
    goal = FilesGoal(types=["image/*"])
    assert [goal(page(pick(), mime=mime)) for mime in ("image/png", PDF)] == [1.0, 0.0]
    assert repr(goal) == "files: image/*"
    assert repr(FilesGoal()) == "files: data"


def test_the_extension_is_that_of_the_final_url() -> None:
    """After a redirect the URL of the page counts, not the one that was asked for."""
    answer = SimpleNamespace(url="http://h/prices.csv")
    assert FilesGoal()(page(pick("http://h/download"), mime="", page=answer)) == 1.0


def test_a_file_may_have_to_be_stored() -> None:
    """With `stored` a file without an item is worth nothing; a HEAD cannot give items, and is believed."""
    goal = FilesGoal(stored=True)
    assert goal(page(pick(), mime=PDF)) == 0.0
    assert goal(page(pick(), mime=PDF, items=3)) == 1.0
    assert goal(page(pick(method="HEAD"), mime=PDF)) == 1.0


def test_items_are_worth_their_number() -> None:
    """The default goal counts items."""
    assert ItemsGoal()(page(pick(), items=2.5)) == 2.5
    assert (ItemsGoal.heads_tell, FilesGoal.heads_tell) == (False, True)
