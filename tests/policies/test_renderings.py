"""What renderings brought decides which pages are rendered, template by template."""

from __future__ import annotations

import pytest

from scrapy_focus.policies.branching.renderings import AGAIN, SURE, TRIES, Templates


def test_templates_that_bring_nothing_are_left() -> None:
    """After three renderings; others are not touched by that."""
    templates = Templates()
    asked = 0
    for _ in range(AGAIN):
        templates.fetched("/news/#", 3)
        if templates.wants("/news/#"):
            asked += 1
            templates.rendered("/news/#", 0)
    assert asked == TRIES
    assert templates.wants("/data/#")


def test_what_was_left_is_looked_at_again() -> None:
    """One of fifty plain pages is rendered; if that reveals something, the others are again, too."""
    templates = Templates()
    asked = []
    for page in range(3 * AGAIN):
        templates.fetched("/a/#", 1)
        if templates.wants("/a/#"):
            asked.append(page)
            templates.rendered("/a/#", 0)
    assert asked == [0, 1, 2, AGAIN + 2, 2 * AGAIN + 2]
    templates.rendered("/a/#", 5)
    assert templates.wants("/a/#")


def test_one_find_keeps_a_template() -> None:
    """Its arm says how much it is worth; nothing is ruled out."""
    templates = Templates()
    templates.rendered("/a/#", 1)
    for _ in range(10 * TRIES):
        templates.rendered("/a/#", 0)
    assert templates.wants("/a/#")


@pytest.mark.parametrize(("links", "expected"), [([0, 0, 0], True), ([0, 2, 0], False)])
def test_pages_without_links_of_their_own_are_rendered_at_once(links: list[int], expected: bool) -> None:
    """Once renderings paid twice; where a plain page has something, all are fetched before."""
    templates = Templates()
    for new in links:
        templates.fetched("/app/#", new)
    assert not templates.is_direct("/app/#")
    for _ in range(SURE):
        templates.rendered("/app/#", 2)
    assert templates.is_direct("/app/#") is expected


def test_memory_is_bounded() -> None:
    """What was looked at longest ago goes first."""
    templates = Templates()
    for number in range(5000):
        templates.fetched(f"/{number}/#", 0)
        templates.rendered("/kept/#", 1)
    assert len(templates.seen) == 4096
    assert "/kept/#" in templates.seen
    assert "/0/#" not in templates.seen
