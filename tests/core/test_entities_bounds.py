"""Pages that would take long, or raise, if they were read without bounds."""

from __future__ import annotations

import json

import pytest

from scrapy_focus.web.entities import Reading, read_entities
from scrapy_focus.web.html import parsed

EVENT = '{"@type": "Event", "name": "x"}'
SCOPE = '<div itemscope itemprop="a b" itemtype="http://schema.org/Event">'
PROPERTY = "<b itemprop=a>x</b>"
CHAIN = "".join(f"{SCOPE[:-1]} id=i{i} itemref=i{i + 1}></div>" for i in range(300))
REFERS = '<div itemscope itemtype="http://schema.org/Event" itemref="{}"></div>'


def script(text: str) -> str:
    return f'<script type="application/ld+json">{text}</script>'


def read(source: str) -> Reading:
    """Return what is read of a page, which is within bounds, and can be written."""
    reading = read_entities(parsed(source), source, "http://site.example/page")
    assert len(reading.entities) <= 5_000
    assert reading.facts <= 50_000
    for entity in reading.entities[:50]:
        text = json.dumps(entity.values, allow_nan=False, ensure_ascii=False)
        assert len(text.encode()) < 5_000_000
    return reading


@pytest.mark.few(6)
@pytest.mark.parametrize(
    "source",
    [
        script("[" * 100_000),
        script("[" * 100_000 + "]" * 100_000),
        script('{"a":' * 100_000),
        script('{"a":' * 100_000 + "1" + "}" * 100_000),
        script("x" * 1_900_000),
        script("/**/" * 400_000 + "]"),
        script("//\n" * 400_000 + "]"),
        script('"' + "\\" * 1_000_001 + '"'),
        script("}" * 1_000_000),
        script(" " * 1_000_000 + "]"),
        script('{"@type": "Event", "n": ' + "9" * 5_000 + "}"),
        script(EVENT * 2),
        script("\ufeff" + EVENT),
        script(EVENT.replace('"', "&quot;")),
        script('{"@type": "Event", "n": "'),
        script(""),
        script("\x00"),
    ],
    ids=lambda source: source[35:60],
)
def test_a_script_that_is_no_json_is_counted_as_broken(source: str) -> None:
    """Whatever it is; the others on its page are read."""
    reading = read(source + script(EVENT))
    assert [entity.types for entity in reading.entities] == [("Event",)]
    assert (reading.broken, reading.cut) == (1, False)


@pytest.mark.few(8)
@pytest.mark.parametrize(
    ("source", "entities", "facts"),
    [
        (script(f"[{EVENT}" + f",{EVENT}" * 60_000 + "]"), 5_000, 4_999),
        (script('{"@type": "Event", "a": [' + "1," * 900_000 + "1]}"), 1, 50_000),
        (script('{"@type": "Event", "a":' * 100 + "1" + "}" * 100), 32, 0),
        (script('{"@graph":' + "[" * 100 + EVENT + "]" * 100 + "}"), 0, 0),
        (script(EVENT) * 20_000, 1_000, 1_000),
        (script(EVENT) + script(f'["{"x" * 10_000_000}"]'), 0, 0),
        (script(EVENT) + script(f'["{"x" * 3_000_000}"]') + script(EVENT), 2, 2),
        (f"{SCOPE}{PROPERTY}</div>" * 65_000, 5_000, 0),
        (f"{SCOPE}{PROPERTY}</div>" * 4_000, 4_000, 0),
        (SCOPE * 40, 40, 0),
        (SCOPE * 20 + PROPERTY * 5_000, 20, 0),
        (SCOPE * 31 + "<b><i></i></b>" * 300_000, 31, 0),
        ("<div itemscope>" + "<div itemprop=x>" * 30 + PROPERTY * 4_000, 0, 0),
        ("<div itemscope>" + "<div itemprop=x>" * 30 + "x " * 2_500_000, 0, 0),
        (f"{SCOPE}<b itemprop=x>" + "<script></script>some text" * 60_000, 1, 0),
        (SCOPE + "<div itemprop=x>" * 30 + f"<b {' '.join(f'a{i}=x' for i in range(200))}>x</b>" * 1_000, 1, 0),
        ('<div itemscope itemtype="http://schema.org/Event">' * 30 + PROPERTY + "<p>text" * 10_000, 30, 0),
        ("<div>" * 300 + f"{SCOPE}{PROPERTY}</div>", 1, 0),
        (REFERS.format("b " * 50) + f"<div id=b>{PROPERTY * 4_000}</div>", 1, 0),
        (REFERS.format("b " * 5_000) + f"<div id=b>{'<b>y</b>' * 100_000}</div>", 1, 0),
        (REFERS.format("b " * 2_000_000) + f"<div id=b>{PROPERTY}</div>", 1, 0),
    ],
    ids=range(21),
)
def test_too_much_is_cut(source: str, entities: int, facts: int) -> None:
    """Of JSON-LD what comes first is kept, and of microdata all types; the reading says that something is missing."""
    reading = read(source)
    assert reading.cut
    assert (len(reading.entities), reading.facts) == (entities, facts)
    assert all(entity.types == ("Event",) for entity in reading.entities)


def test_what_is_large_and_harmless_is_read_whole() -> None:
    """Large pages with much markup, large scripts, one property with a book in it, an item in several properties."""
    listing = read(f"<html itemscope itemtype=http://schema.org/WebPage>{SCOPE}{PROPERTY}<p>text</p></div>" * 800)
    assert (len(listing.entities), listing.cut) == (801, False)
    catalogue = read(script(f"[{EVENT}" + f",{EVENT}" * 4_000 + "]"))
    assert (len(catalogue.entities), catalogue.facts, catalogue.cut) == (4_001, 4_001, False)
    book = read(f"{SCOPE}<div itemprop=text>{'<p>A sentence of some words.' * 20_000}</div>")
    assert len(book.entities[0].values["text"]) == 10_000
    assert not book.cut
    nested = read(SCOPE * 30 + PROPERTY)
    assert (len(nested.entities), nested.facts, nested.cut) == (30, 1, False)
    assert len(json.dumps(nested.entities[0].values)) < 5_000


@pytest.mark.parametrize(
    "source",
    [
        '<div itemscope id=a itemref=a itemtype="http://schema.org/Event"><b itemprop=x>y</b></div>',
        '<div itemscope id=a itemref=b itemprop=k itemtype="http://schema.org/Event"></div>'
        "<div id=b itemscope itemprop=z itemref=a></div>",
        f'<div id=all><p itemscope itemref=all itemtype="http://schema.org/Event">{PROPERTY}</p></div>',
        '<p itemscope itemref="nowhere &#34; ] é" itemtype="http://schema.org/Event">',
        '<p itemscope itemref="&#1;" itemtype="http://schema.org/Event">',
        '<p itemscope itemref="" itemprop="" itemid="" itemtype="http://schema.org/Event">',
    ],
    ids=["itself", "each other", "around", "nowhere", "no name", "empty"],
)
def test_items_that_refer_to_each_other_end(source: str) -> None:
    """Their types are known in any case."""
    reading = read(source)
    assert ("Event",) in [entity.types for entity in reading.entities]
    assert not reading.cut


def test_a_chain_of_references_holds_up_nobody() -> None:
    """It would end in a ``RecursionError`` within ``lxml``, after which nobody in the process could read an item."""
    chain = read(CHAIN)
    assert chain.cut
    assert len(chain.entities) == 300
    assert read(SCOPE + PROPERTY).facts == 1


@pytest.mark.parametrize("types", ["5", "null", "[]", "{}", "[null, 5]", "true", '""', '" "', "[[]]"])
def test_a_type_that_is_no_name_is_none(types: str) -> None:
    """The facts count nevertheless."""
    reading = read(script(f'{{"@type": {types}, "a": 1}}'))
    assert (reading.entities, reading.facts, reading.broken) == ((), 1, 0)


def test_values_that_json_does_not_have_are_texts() -> None:
    """Numbers beyond 64 bits, and those that are none; half a character is a question mark."""
    source = script('{"@type": "Event", "a": NaN, "b": -Infinity, "c": 1e999, "d": 1' + "0" * 30 + ', "e": "\\ud800x"}')
    values = read(source).entities[0].values
    assert values == {"@type": "Event", "a": "nan", "b": "-inf", "c": "inf", "d": str(10**30), "e": "?x"}


def test_relative_ids_stay_as_they_are() -> None:
    """They are names within the page."""
    reading = read(script('{"@id": "/#a", "@type": "Event", "b": {"@id": "../c"}}'))
    assert reading.entities[0].values == {"@id": "/#a", "@type": "Event", "b": {"@id": "../c"}}


@pytest.mark.parametrize(
    "context",
    ['["http://schema.org"' + ', {"a": "b"}' * 50_000 + "]", '{"a": "b", "b": "a", "Event": "b:x"}', '{"@vocab": null}', '{"Event": {"@id": null}}', '{"": ""}', "[[]]"],
    ids=["many", "in a circle", "none", "no id", "empty", "nested"],
)  # fmt: skip
def test_odd_contexts_are_harmless(context: str) -> None:
    """Whatever they make of names."""
    reading = read(script(f'{{"@context": {context}, "@graph": [{EVENT}, {{"@type": ":"}}, {{"@type": "b:"}}]}}'))
    assert len(reading.entities) == 3
    assert reading.broken == 0
