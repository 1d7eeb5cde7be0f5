"""Pages are worth something for the things that they describe to machines."""

from __future__ import annotations

import pickle
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from scrapy_focus import ConfigError, Mission, Outcome, Placement, StructuredDataGoal, memory_frontier
from scrapy_focus.goals import structured
from scrapy_focus.web.html import parsed
from tests.made import link, page

RECIPE = '<script type="application/ld+json">{"@type": "Recipe", "name": "Soup", "author": {"@type": "Person", "name": "A"}}</script>'
PLACE = '<p itemscope itemtype="https://schema.org/Place"><b itemprop="name">Hall</b></p>'


def outcome(text: str, **given: Any) -> Outcome:
    frontier = memory_frontier()
    frontier.push([link(1)], [Placement(0, 0.0)])
    answer = SimpleNamespace(url="http://h/page", text=text)
    return page(frontier.pop(0), **{"mime": "text/html", "page": answer, **given})


@pytest.mark.parametrize(
    ("types", "worth"),
    [
        (["Recipe"], (1.0, 0.0)),
        (["schema:Person"], (1.0, 0.0)),
        (["http://www.schema.org/Place", "Event"], (0.0, 1.0)),
        (["Person", "Place"], (1.0, 1.0)),
        (["CreativeWork", "Thing"], (0.0, 0.0)),
    ],
)
def test_a_page_is_worth_one_for_a_thing_of_a_wanted_type(types: list[str], worth: tuple[float, float]) -> None:
    """Also for one within another, in either syntax; a kind of a wanted type is another type."""
    goal = StructuredDataGoal(types)
    assert (goal(outcome(RECIPE)), goal(outcome(PLACE))) == worth
    assert goal(outcome("<p>nothing</p>")) == 0.0


def test_without_types_a_page_is_worth_one_for_enough_facts() -> None:
    """Facts are values, of whatever thing."""
    worth = [[StructuredDataGoal(least=least)(outcome(text)) for text in (RECIPE, PLACE, "")] for least in (1, 2, 3)]
    assert worth == [[1.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]


@pytest.mark.parametrize(
    "given", [{"status": 404}, {"status": None}, {"error": "ignored"}, {"mime": "text/plain"}, {"page": None}], ids=repr
)
def test_what_is_no_page_is_worth_nothing(given: dict[str, Any]) -> None:
    """Failures, other types, and pages that ask not to be read."""
    assert StructuredDataGoal()(outcome(RECIPE, **given)) == 0.0


def test_only_the_wanted_syntaxes_are_read() -> None:
    """With one of them, data in the other are worth nothing."""
    goal = StructuredDataGoal(syntaxes=["microdata"])
    assert (goal(outcome(RECIPE)), goal(outcome(PLACE))) == (0.0, 1.0)


def test_what_is_wanted_of_a_page_is_told() -> None:
    """Without types, everything that has one is."""
    reading = StructuredDataGoal().reading(outcome(RECIPE + PLACE).page)
    assert [entity.types for entity in StructuredDataGoal(["Place", "Person"]).wanted(reading)] == [
        ("Person",),
        ("Place",),
    ]
    assert StructuredDataGoal().wanted(reading) == reading.entities


def test_a_page_with_a_tree_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Callback and goal read the same page, and only the first parses it; its tree is the existing one."""
    read = []
    monkeypatch.setattr(structured, "parsed", lambda text: pytest.fail("the page was parsed again"))
    real = structured.read_entities
    monkeypatch.setattr(
        structured, "read_entities", lambda root, *args, **given: read.append(root) or real(root, *args, **given)
    )
    goal, root = StructuredDataGoal(["Recipe"]), parsed(RECIPE)
    pages = [SimpleNamespace(url="http://h/", text=RECIPE, root=root) for _ in range(2)]
    assert goal.reading(pages[0]) is goal.reading(pages[1])
    assert goal(outcome("", page=pages[1])) == 1.0
    assert read == [root]


def test_a_page_without_markup_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look at its text is all that it costs."""
    monkeypatch.setattr(structured, "parsed", lambda text: pytest.fail("the page was parsed"))
    assert StructuredDataGoal()(outcome("<p>microdata, json-ld</p>")) == 0.0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"types": ["JobPostng"]}, "'JobPostng' is not a type of schema.org; did you mean JobPosting?"),
        ({"types": ["recipe"]}, "did you mean Recipe?"),
        ({"types": ["schema:Recipes"]}, "did you mean Recipe?"),
        ({"types": ["gr:Offering"]}, "full address"),
        ({"types": ["Recipe", ""]}, "one of the types is '', which is not a name; remove it"),
        ({"types": ["schema:"]}, "one of the types is 'schema:', which is not a name"),
        ({"types": ["Xyzzy"]}, "'Xyzzy' is not a type of schema.org; newer types, and those of other vocabularies"),
        ({"types": "Recipe"}, r"types is 'Recipe'; it takes a list"),
        ({"types": [1]}, "it takes a list of types"),
        ({"syntaxes": ["jsonld"]}, "there is no syntax 'jsonld'; did you mean json-ld?"),
        ({"syntaxes": ["rdfa"]}, "there is no syntax 'rdfa'; .*[Ii]t is one of json-ld, microdata"),
        ({"syntaxes": ["xyz"]}, "there is no syntax 'xyz'; it is one of json-ld, microdata"),
        ({"syntaxes": []}, "syntaxes is"),
        ({"syntaxes": "json-ld"}, "syntaxes is 'json-ld'; it takes a list"),
        ({"least": 0}, "least is 0"),
        ({"least": 2.5}, "least is 2.5"),
    ],
    ids=repr,
)
def test_what_cannot_be_looked_for_is_said_in_one_line(given: dict[str, Any], said: str) -> None:
    """With the given value, and the one probably meant."""
    with pytest.raises(ConfigError, match=said) as raised:
        StructuredDataGoal(**given)
    assert "\n" not in str(raised.value)


def test_whole_addresses_are_taken_as_they_are() -> None:
    """Of other vocabularies, and of types that are newer than the list of names."""
    goal = StructuredDataGoal(["http://purl.org/goodrelations/v1#Offering", "https://schema.org/BrandNewThing"])
    assert goal.names == ("http://purl.org/goodrelations/v1#Offering", "BrandNewThing")


def test_without_extruct_one_line_says_how_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the crawl starts."""
    monkeypatch.setitem(sys.modules, "extruct", None)
    with pytest.raises(ConfigError, match=r'pip install "scrapy-focus\[structured\]"'):
        StructuredDataGoal()


def test_a_goal_is_described_by_what_it_looks_for() -> None:
    """Goals that look for the same have the same description; it says nothing of MIME types to a mission."""
    goal = StructuredDataGoal(["schema:Recipe", "http://schema.org/Recipe", "Event"])
    assert (
        repr(goal)
        == "pages with Recipe, Event in json-ld or microdata"
        == repr(StructuredDataGoal(["Recipe", "Event"]))
    )
    assert repr(StructuredDataGoal(syntaxes=["json-ld"], least=6)) == "pages with 6 facts or more in json-ld"
    assert Mission.of(goal) == Mission()


def test_a_goal_can_be_sent_to_another_process() -> None:
    """What it has read stays behind."""
    goal = StructuredDataGoal(["Recipe"])
    goal.reading(SimpleNamespace(url="http://h/", text=RECIPE, root=parsed(RECIPE)))
    sent = pickle.loads(pickle.dumps(goal))
    assert repr(sent) == repr(goal)
    assert sent(outcome(RECIPE)) == 1.0
