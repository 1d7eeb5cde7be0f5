"""What is read of pages is what ``extruct`` reads of them, bounds apart."""

from __future__ import annotations

import json

import pytest
from lxml import etree

from scrapy_focus.web.entities import may_have_entities, read_entities
from scrapy_focus.web.html import parsed
from tests.core import marked

PAGES = 600


@pytest.fixture(scope="module")
def pages() -> list[marked.Made]:
    made = [marked.page(seed) for seed in range(2 * PAGES)]
    return [page for page in made if may_have_entities(page.source)][:PAGES]


@pytest.mark.slow
def test_the_answer_is_that_of_extruct(pages: list[marked.Made]) -> None:
    """On each of many pages: the same entities with the same values in the same order, as many facts, and as many
    broken scripts as it gives up on.
    """
    broken = 0
    assert len(pages) == PAGES
    for page in pages:
        expected = marked.full_answer(page)
        reading = read_entities(parsed(page.source), page.source, marked.URL)
        assert [(each.syntax, each.types, each.values) for each in reading.entities] == expected.entities, page.source
        assert (reading.facts, reading.broken, reading.cut) == (expected.facts, expected.broken, False), page.source
        broken += bool(expected.broken)
    assert 50 < broken < PAGES - 50


def test_reading_leaves_the_page_as_it_is(pages: list[marked.Made]) -> None:
    """Links are looked for in the same tree afterwards."""
    for page in pages[:100]:
        root = parsed(page.source)
        before = etree.tostring(root)
        read_entities(root, page.source, marked.URL)
        assert etree.tostring(root) == before


def test_values_can_be_written_as_json(pages: list[marked.Made]) -> None:
    """Strictly: in UTF-8, and with the numbers of JSON."""
    for page in pages[:100]:
        for entity in read_entities(parsed(page.source), page.source, marked.URL).entities:
            text = json.dumps(entity.values, allow_nan=False, ensure_ascii=False)
            assert json.loads(text.encode()) == entity.values
