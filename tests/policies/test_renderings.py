"""What renderings brought decides which pages are rendered, template by template."""

from __future__ import annotations

import pytest

from scrapy_focus.policies.branching.renderings import AGAIN, CHECKS, MISSES, SURE, TRIES, Rendered, Templates


def tried(templates: Templates, url: str, new: int = 0) -> bool:
    """Fetch a page with scripts and links, and render it if that is wanted; return whether it was."""
    template = templates.of(url)
    templates.fetched(template, 3)
    if not templates.wants(template):
        return False
    templates.look(template)
    templates.rendered(template, new)
    return True


def test_templates_that_bring_nothing_are_left() -> None:
    """After three renderings; others are not touched by that."""
    templates = Templates()
    assert sum(tried(templates, f"http://h/news/{page}") for page in range(AGAIN)) == TRIES
    assert templates.state("h/news/#") == "closed"
    assert templates.wants("h/data/#")


def test_what_was_left_is_looked_at_again_ever_less() -> None:
    """After 50 plain pages, 100 and 200; if that reveals something, the others are rendered again, too."""
    templates = Templates()
    asked = [page for page in range(8 * AGAIN) if tried(templates, f"http://h/a/{page}")]
    assert asked == [0, 1, 2, AGAIN + 2, 3 * AGAIN + 2, 7 * AGAIN + 2]
    templates.rendered("h/a/#", 5)
    assert templates.wants("h/a/#")
    assert templates.state("h/a/#") == "open"


def test_one_find_keeps_a_template() -> None:
    """Its arm says how much it is worth; it is left when 30 in a row brought nothing."""
    templates = Templates()
    templates.rendered("h/a/#", 1)
    for _ in range(MISSES - 1):
        templates.rendered("h/a/#", 0)
    assert templates.wants("h/a/#")
    templates.rendered("h/a/#", 0)
    assert not templates.wants("h/a/#")


@pytest.mark.parametrize(("links", "expected"), [([4, 0, 0], True), ([0, 0, 2], False), ([0, 2, 0], False)])
def test_pages_without_links_of_their_own_are_rendered_at_once(links: list[int], expected: bool) -> None:
    """Once renderings paid twice; if plain pages have had nothing lately, and until one of them has."""
    templates = Templates()
    for new in links:
        templates.fetched("h/app/#", new)
    assert "h/app/#" not in templates.direct
    for _ in range(SURE):
        templates.rendered("h/app/#", 2)
    assert ("h/app/#" in templates.direct) is expected
    templates.fetched("h/app/#", 1)
    assert "h/app/#" not in templates.direct


def shell(template: str) -> Templates:
    """Return what is known when a template is direct."""
    templates = Templates()
    for _ in range(SURE):
        templates.fetched(template, 0)
        templates.rendered(template, 2)
    assert templates.state(template) == "direct"
    return templates


def test_a_rendering_that_failed_ends_that() -> None:
    """Plain pages are fetched again, and the template stays open."""
    templates = shell("h/app/#")
    templates.rendered("h/app/#", 0, failed=True)
    assert templates.state("h/app/#") == "open"


def test_one_in_twenty_is_checked() -> None:
    """By a plain page before its rendering."""
    templates = shell("h/app/#")
    assert [templates.at_once("h/app/#") for _ in range(2 * CHECKS)].count(False) == 2


@pytest.mark.parametrize(
    ("url", "most"),
    [
        ("http://h/news/{}", 5), ("http://h/news/{}-day", TRIES), ("http://h/blog/{}/", 5), ("http://h/a/{}/1", 5),
        ("http://h/{}", 12), ("http://h/{}.html", 12), ("http://h/{}/a-b", 5 * TRIES), ("http://h/a?{}=1", 5 * TRIES),
    ],
)  # fmt: skip
def test_pages_with_names_of_their_own_are_judged_together(url: str, most: int) -> None:
    """No name is a template for ever: with 40 names in a folder, a few renderings show that scripts bring nothing."""
    templates = Templates()
    names = [f"{one}{other}" for one in ("wine", "tea", "milk", "corn", "salt") for other in "abcdefgh"]
    assert sum(tried(templates, url.format(name)) for name in names) <= most


def test_the_first_names_of_a_site_are_all_looked_at() -> None:
    """Where eleven pages of a menu bring nothing, the twelfth is rendered; and what it leads to."""
    templates = Templates()
    for name in "abcdefghijk":
        assert tried(templates, f"http://h/{name}")
    assert tried(templates, "http://h/data", new=9)
    assert tried(templates, "http://h/more", new=9)
    assert tried(templates, "http://h/data/x", new=9)


def test_where_nothing_ever_pays_one_rendering_of_a_template_is_enough() -> None:
    """After twelve renderings in vain; a template that is new is tried once."""
    templates = Templates()
    for name in "abcd":
        assert sum(tried(templates, f"http://h/{name}/{page}") for page in range(9)) == TRIES
    assert sum(tried(templates, f"http://h/e/{page}") for page in range(9)) == 1


def test_only_so_many_are_in_flight_as_may_be_in_vain() -> None:
    """Three of an unknown template; then one more, as long as none paid. Names count together."""
    templates = Templates()
    template = templates.of("http://h/news/1")
    assert templates.has_room(template, {template: TRIES - 1})
    assert not templates.has_room(template, {template: TRIES})
    templates.rendered(template, 0)
    assert not templates.has_room(template, {template: TRIES - 1})
    templates.rendered(template, 1)
    assert templates.has_room(template, {template: 9})
    names = [templates.of(f"http://h/blog/{name}") for name in "abcde"]
    assert templates.has_room(names[4], dict.fromkeys(names[:4], 1))
    assert not templates.has_room(names[4], dict.fromkeys([*names[:4], "h/blog/*"], 1))


def test_what_leads_nowhere_is_left() -> None:
    """If a template is judged so, which it is asked for after 50 links; and no more once they lead to something."""
    templates = shell("h/news/#")
    assert [templates.came("h/news/#") for _ in range(100)].count(True) == 2
    templates.judge("h/news/#", is_idle=True)
    assert templates.state("h/news/#") == "closed"
    assert templates.came("h/news/#")
    templates.judge("h/news/#", is_idle=False)
    assert templates.state("h/news/#") == "direct"


def test_another_crawl_begins_with_what_was_known() -> None:
    """What is closed, direct or open is so again; but two renderings that paid count as much as a thousand."""
    then = {
        "h/news/#": Rendered(plain=80, tried=4, misses=4),
        "h/app/#": Rendered(plain=9, shells=7, tried=1000, paid=990),
        "h/list/#": Rendered(plain=9, tried=9, paid=5),
        "h/junk/#": Rendered(plain=9, tried=60, paid=60, fetched=60, idle=1),
    }
    templates = Templates()
    templates.recall(then)
    assert [templates.state(each) for each in then] == ["closed", "direct", "open", "closed"]
    assert templates.seen["h/app/#"].paid == SURE
    for known in templates.seen.values():
        assert known.paid + known.misses <= known.tried


def test_memory_is_bounded() -> None:
    """The least recently used goes first; beyond so many folders, names are not distinguished."""
    templates = Templates()
    for number in range(5000):
        templates.fetched(f"/{number}/#", 0)
        templates.rendered("/kept/#", 1)
        templates.of(f"http://h{number}/a/b")
    assert len(templates.seen) == 4096
    assert "/kept/#" in templates.seen
    assert "/0/#" not in templates.seen
    assert templates.of("http://other/a/b") == "other/*/*"
    assert len(templates._names._seen) == 4096


def test_names_that_are_closed_are_looked_at_after_as_many_pages_as_others() -> None:
    """Plain pages from before do not count."""
    templates = Templates()
    names = [f"name{letter}{other}" for letter in "abcdefgh" for other in "abcdefgh"]
    for name in names:
        templates.fetched(templates.of(f"http://h/blog/{name}"), 3)
    for name in names[:5]:
        templates.rendered(templates.of(f"http://h/blog/{name}"), 0)
    assert [tried(templates, f"http://h/blog/{name}") for name in names[6:]].index(True) == AGAIN - 1


def test_the_first_rendering_shows_whether_what_another_crawl_knew_holds() -> None:
    """Until it is fetched no other page of the template is rendered, unless there is no browser; those that never
    paid have as much room as ever.
    """
    then = {"h/a/#": Rendered(plain=9, shells=9, tried=9, paid=9), "h/b/#": Rendered(plain=9, tried=1, misses=1)}
    templates = Templates()
    templates.recall(then)
    assert templates.has_room("h/a/#", {"h/b/#": 1})
    assert not templates.has_room("h/a/#", {"h/a/#": 1})
    assert templates.has_room("h/b/#", {"h/b/#": 1})
    templates.rendered("h/a/#", 2)
    assert templates.has_room("h/a/#", {"h/a/#": 9})
    templates = Templates()
    templates.recall(then)
    templates.go_plainly()
    assert templates.has_room("h/a/#", {"h/a/#": 9})
