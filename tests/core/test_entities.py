"""What is read of pages that describe things to machines."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scrapy_focus.web.entities import Reading, may_have_entities, read_entities
from scrapy_focus.web.html import parsed

URL = "http://site.example/folder/page.html"


def read(source: str, **given: Any) -> Reading:
    return read_entities(parsed(source), source, URL, **given)


def script(value: Any) -> str:
    return f'<script type="application/ld+json">{value if isinstance(value, str) else json.dumps(value)}</script>'


def types(source: str) -> list[tuple[str, ...]]:
    return [entity.types for entity in read(source).entities]


@pytest.mark.parametrize(
    "written",
    [
        {"@context": "https://schema.org", "@type": "Recipe"},
        {"@context": "http://www.schema.org/", "@type": "Recipe"},
        {"@context": "https://schema.org/docs/jsonldcontext.json", "@type": ["Recipe"]},
        {"@context": {"@vocab": "http://schema.org/"}, "@type": "Recipe"},
        {"@context": {"@vocab": "https://schema.org"}, "@type": "Recipe"},
        {"@context": {"s": "https://schema.org/"}, "@type": "s:Recipe"},
        {"@context": {"Recette": {"@id": "schema:Recipe"}}, "@type": "Recette"},
        {"@context": ["https://w3id.org/other", "http://schema.org", {"x": "http://x.example/"}], "@type": "Recipe"},
        {"@context": 12, "@type": "Recipe"},
        {"@context": {"schema": "http://schema.org"}, "@type": "schema:Recipe"},
        {"@type": "schema:Recipe"},
        {"@type": "http://schema.org/Recipe"},
        {"@type": "https://www.schema.org/Recipe/"},
        {"@type": "Recipe"},
        {"@graph": [{"@type": "Recipe"}]},
        {"mainEntity": {"@reverse": {"about": [[{"@type": "Recipe"}]]}}},
        [{"@type": "Recipe"}],
    ],
    ids=repr,
)
def test_a_type_of_schema_org_is_known_however_it_is_written(written: Any) -> None:
    """Scheme, www, prefix, context and nesting make no difference."""
    assert types(script(written)) == [("Recipe",)]


@pytest.mark.parametrize(
    ("written", "name"),
    [
        (
            {"@context": "https://www.w3.org/ns/activitystreams", "@type": "Event"},
            "https://www.w3.org/ns/activitystreams#Event",
        ),
        ({"@context": {"@vocab": "http://x.example/"}, "@type": "Event"}, "http://x.example/Event"),
        ({"@context": {"x": "http://x.example/#"}, "@type": "x:Event"}, "http://x.example/#Event"),
        ({"@type": "gr:Event"}, "gr:Event"),
        ({"@type": "http://schema.organic"}, "http://schema.organic"),
        ({"@type": "http://x.example/schema.org/Event"}, "http://x.example/schema.org/Event"),
    ],
    ids=repr,
)
def test_types_of_other_vocabularies_are_not_taken_for_those_of_schema_org(written: Any, name: str) -> None:
    """They have their whole address, as far as the page gives it."""
    assert types(script(written)) == [(name,)]


def test_contexts_hold_within_their_object_only() -> None:
    """An object within takes over the terms around it, and those beside it do not have its own."""
    inner = {"@context": {"@vocab": "http://x.example/"}, "@type": "Event", "y": {"@type": "s:Place"}}
    written = {"@context": {"s": "http://schema.org/"}, "a": inner, "b": {"@type": "Event"}}
    assert types(script(written)) == [("http://x.example/Event",), ("Place",), ("Event",)]


def test_what_is_said_of_an_entity_is_kept_as_json() -> None:
    """Values are those of the page, and entities within are within; facts are values that are no objects."""
    written = {
        "@context": "http://schema.org",
        "@id": "#soup",
        "@type": ["Recipe", "NewsArticle"],
        "name": "Soup",
        "schema:yield": 4,
        "vegan": True,
        "none": None,
        "empty": "",
        "tags": ["a", "b", None],
        "author": {"@type": "Person", "name": "Ann"},
        "sameAs": {"@id": "http://x.example/"},
    }
    reading = read(script(written))
    recipe, person = reading.entities
    assert recipe.values == {
        "@id": "#soup",
        "@type": ["Recipe", "NewsArticle"],
        "name": "Soup",
        "yield": 4,
        "vegan": True,
        "tags": ["a", "b"],
        "author": {"@type": "Person", "name": "Ann"},
        "sameAs": {"@id": "http://x.example/"},
    }
    assert (person.types, person.values, person.syntax) == (("Person",), recipe.values["author"], "json-ld")
    assert (reading.facts, reading.broken, reading.cut) == (7, 0, False)


def test_microdata_gives_the_same_as_json_ld() -> None:
    """Several types, items within items, addresses joined to the page's."""
    source = """<head><base href="/other/"></head><div itemscope itemid="#tune"
        itemtype="https://www.schema.org/Event http://x.example/Y"><h1 itemprop="name">Tune  <b>up</b></h1>
        <a itemprop="url" href="more">more</a><i itemprop=tag>a</i><i itemprop=tag>b</i>
        <div itemprop="location" itemscope itemtype="http://schema.org/Place"><meta itemprop="name" content="Hall"></div>
        </div>"""
    reading = read(source)
    event, place = reading.entities
    assert event.types == ("Event", "http://x.example/Y")
    assert event.values == {
        "@type": ["Event", "http://x.example/Y"],
        "@id": "#tune",
        "name": "Tune up",
        "url": "http://site.example/other/more",
        "tag": ["a", "b"],
        "location": {"@type": "Place", "name": "Hall"},
    }
    assert (place.types, place.syntax) == (("Place",), "microdata")
    assert (reading.facts, reading.broken, reading.cut) == (5, 0, False)


def test_only_the_syntaxes_asked_for_are_read() -> None:
    """JSON-LD comes first where both are."""
    source = '<p itemscope itemtype="http://schema.org/Place"></p>' + script({"@type": "Event"})
    assert types(source) == [("Event",), ("Place",)]
    assert [each.syntax for each in read(source, syntaxes=["microdata"]).entities] == ["microdata"]
    assert [each.syntax for each in read(source, syntaxes=["json-ld"]).entities] == ["json-ld"]


def test_a_page_without_a_sign_of_markup_is_not_looked_at() -> None:
    """Its tree is not needed, whatever the tree holds."""
    source = "<p>nothing</p>"
    with_markup = parsed(script({"@type": "Event"}) + "<p itemscope>")
    assert not may_have_entities(source)
    assert read_entities(with_markup, source, URL) == Reading()


@pytest.mark.parametrize(
    "source",
    [
        '<P ITEMSCOPE ITEMTYPE="http://schema.org/Event">',
        '<SCRIPT TYPE="application/ld&#x2B;json">{"@type": "Event"}</SCRIPT>',
    ],
)
def test_signs_of_markup_are_found_however_they_are_spelled(source: str) -> None:
    """Elements and attributes in capitals, and a plus sign as a character reference."""
    assert types(source) == [("Event",)]


def test_one_broken_block_does_not_hide_the_others() -> None:
    """It is counted, and so is an address that is none."""
    source = script("{nonsense") + script({"@type": "Event"})
    source += '<p itemscope itemtype="http://schema.org/Place"><a itemprop=url href="http://[x">x</a><b itemprop=name>y</b></p>'
    reading = read(source)
    assert [entity.types for entity in reading.entities] == [("Event",), ("Place",)]
    assert reading.entities[1].values == {"@type": "Place", "name": "y"}
    assert reading.broken == 2
