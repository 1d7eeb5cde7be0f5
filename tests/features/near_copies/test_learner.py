"""Parameters that do not change the page: what teaches them, what does not, and what ends a belief."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from parsel import Selector

from scrapy_focus.features.near_copies.learner import NearCopies, file_print, page_print
from scrapy_focus.web.queries import query_of
from tests.examples import n_examples
from tests.test_growth import ENDS, MIXTURES, PAGES, check, parsed, repeated

if TYPE_CHECKING:
    from scrapy_focus.features.near_copies.learner import Change

TEXT = " ".join(f"word{i}" for i in range(40))


def teach(near: NearCopies, pages: range, values: str = "xy", name: str = "sid", host: str = "h") -> list[Change]:
    """Report equal pages for some values of a parameter."""
    changes = []
    for page in pages:
        for value in values:
            changes += near.learn(f"http://{host}/{page}?{name}={value}", 100 + page)
    return changes


def stripped(near: NearCopies, url: str) -> str:
    found = near.stripped(url)
    return url if found is None else found.url


def read(body: str) -> int:
    return page_print(Selector(f"<html><body>{body}</body></html>").root)


@pytest.mark.parametrize(
    ("url", "without"),
    [
        ("http://h/a?x=1&b=2#top", "http://h/a?b=2"),
        ("http://h/a?b=2&x=1&c", "http://h/a?b=2&c"),
        ("http://h/a?x=1&x=2", "http://h/a"),
        ("http://h/a?x", "http://h/a"),
        ("http://h?x=1", "http://h"),
        ("http://h/a;x=1/b?c=3", "http://h/a/b;x=1?c=3"),  # a parameter of the path has another name
        ("http://h/a?" + "&".join(f"x={i}" for i in range(30)), "http://h/a?" + "&".join(f"x={i}" for i in range(30))),
        ("http://h/a?x=1" + "&" * 30 + "y=2", "http://h/a?x=1" + "&" * 30 + "y=2"),
        ("http://h/a?" + "y" * 70 + "=1&x=2", "http://h/a?" + "y" * 70 + "=1&x=2"),
        ("x", "x"),
    ],
)
def test_a_url_without_a_parameter(url: str, without: str) -> None:
    """All values of it are removed, the rest stays, path parameters last; too many or too long ones are not removed."""
    assert query_of(url).without("x") == without


@pytest.mark.parametrize("url", ["x?" + "&".join(["y=/"] * 30), "x", "?", "", "http:"])
def test_what_is_no_url_has_no_host(url: str) -> None:
    """Even if its parameters contain slashes; nothing is learned from it."""
    assert query_of(url).host == ""
    assert NearCopies().learn(url, 1) == []


def test_parameters_in_the_path_are_parameters() -> None:
    """They are removed from the path, and their names start with a semicolon."""
    query = query_of("http://h/a;jsessionid=1F/b?c=3")
    assert query.names == (";jsessionid", "c")
    assert query.without(";jsessionid") == "http://h/a/b?c=3"


def test_five_pages_teach_a_parameter() -> None:
    """Four do not; it is ignored on unseen pages of this host only."""
    near = NearCopies()
    assert teach(near, range(4)) == []
    assert stripped(near, "http://h/new?sid=x") == "http://h/new?sid=x"
    [change] = teach(near, range(4, 5))
    assert (change.host, change.name, change.is_believed, change.pairs) == ("h", "sid", True, 5)
    assert stripped(near, "http://h/new?id=3&sid=x") == "http://h/new?id=3"
    assert stripped(near, "http://other/new?sid=x") == "http://other/new?sid=x"
    assert stripped(near, "http://h:8080/new?sid=x") == "http://h:8080/new?sid=x"


def test_a_page_without_the_parameter_makes_a_pair_too() -> None:
    """Whichever of the two is fetched first."""
    for first, second in (("", "?from=menu"), ("?from=menu", "")):
        near = NearCopies()
        for page in range(5):
            near.learn(f"http://h/{page}{first}", page + 1)
            near.learn(f"http://h/{page}{second}", page + 1)
        assert stripped(near, "http://h/9?from=menu") == "http://h/9"


def test_one_page_teaches_nothing_however_often_it_comes() -> None:
    """The same page under a hundred URLs, such as an error or a login page, counts as one page."""
    near = NearCopies()
    assert [near.learn(f"http://h/{i % 10}?id={i}", 7) for i in range(100)] == [[]] * 100
    assert stripped(near, "http://h/1?id=3") == "http://h/1?id=3"


def test_a_page_that_says_little_teaches_nothing() -> None:
    """Its print is 0, which makes no pair."""
    assert read("<p>Not found</p>") == 0
    assert file_print(b"a,b\n") == 0
    near = NearCopies()
    assert not any(near.learn(f"http://h/{i}?id={value}", 0) for i in range(10) for value in "ab")


def test_a_parameter_that_matters_once_has_to_be_proved_twice_as_often() -> None:
    """A pair that differs ends a belief; after eight it matters for good, and its pages are not read any more."""
    near = NearCopies()
    teach(near, range(5))
    near.learn("http://h/50?sid=a", 1)
    [lost] = near.learn("http://h/50?sid=b", 2)
    assert not lost.is_believed
    assert stripped(near, "http://h/1?sid=x") == "http://h/1?sid=x"
    assert teach(near, range(100, 109)) == []
    assert [change.pairs for change in teach(near, range(109, 110))] == [10]
    for i in range(7):
        near.learn("http://h/50?sid=c", 10 + i)
        near.learn("http://h/50?sid=d", 30 + i)
    assert teach(near, range(200, 1000)) == []
    assert not near.wants("http://h/1?sid=x")
    assert near.wants("http://h/1?sid=x&other=3")


def test_only_values_that_were_seen_are_ignored_until_they_are_many() -> None:
    """A language that was never tried may be another page."""
    near = NearCopies()
    teach(near, range(5), ["en", "us"], name="lang")  # type: ignore[arg-type]
    assert stripped(near, "http://h/9?lang=us") == "http://h/9"
    assert stripped(near, "http://h/9?lang=de") == "http://h/9?lang=de"
    teach(near, range(10, 12), "abcdefgh", name="lang")
    assert stripped(near, "http://h/9?lang=de") == "http://h/9"


def test_two_parameters_are_learned_one_after_the_other() -> None:
    """Once one is ignored, pages that differ in it make pairs for the other."""
    near = NearCopies()
    teach(near, range(5), "abcdefgh")
    fresh = iter(range(1000))
    for page in range(5):
        for sort in ("up", "down"):
            near.learn(f"http://h/{page}/list?sort={sort}&sid={next(fresh)}", 500 + page)
    assert stripped(near, "http://h/9/list?sort=up&sid=zz") == "http://h/9/list"


def test_well_known_parameters_are_ignored_at_once_and_can_be_unlearned() -> None:
    """They too matter if a pair shows it."""
    near = NearCopies()
    assert stripped(near, "http://h/a?utm_source=x&id=1") == "http://h/a?id=1"
    assert stripped(near, "http://h/a;jsessionid=12AB?id=1") == "http://h/a?id=1"
    near.learn("http://h/a?utm_source=x", 1)
    near.learn("http://h/a?utm_source=y", 2)
    assert stripped(near, "http://h/a?utm_source=x&id=1") == "http://h/a?utm_source=x&id=1"
    assert stripped(near, "http://i/a?utm_source=x") == "http://i/a"


def test_some_links_are_followed_to_check() -> None:
    """The 5th, 10th and 20th, then one for 50 pages of the host, however many links there are."""
    near = NearCopies()
    teach(near, range(5))
    link = near.stripped("http://h/1?sid=x")
    assert link is not None
    followed = [i for i in range(1, 2001) if not near.drop(link)]
    assert followed == [5, 10, 20]
    for _ in range(50):
        near.visit("http://h/1")
    assert [i for i in range(2000) if not near.drop(link)] == [0]
    [ignored] = near.ignored()
    assert (ignored.host, ignored.name, ignored.pairs, ignored.links) == ("h", "sid", 5, 3996)


def test_a_key_is_the_same_in_each_process_and_changes_when_a_belief_ends() -> None:
    """A frontier that is stored knows it again, and pages fetched under a wrong belief hide no others."""
    near = NearCopies()
    teach(near, range(5))
    again = NearCopies()
    again.restore(json.loads(json.dumps(near.state())))
    one, other = near.stripped("http://h/7?sid=x"), again.stripped("http://h/7?sid=y")
    assert one is not None
    assert other is not None
    assert one.key == other.key == 4858316425636539359
    assert again.ignored() == near.ignored()
    near.learn("http://h/7?utm_source=a", 1)
    near.learn("http://h/7?utm_source=b", 2)
    near.stripped("http://h/8?gclid=a")
    near.learn("http://h/8?gclid=a", 1)
    near.learn("http://h/8?gclid=b", 2)
    later = near.stripped("http://h/7?sid=x")
    assert later is not None
    assert later.key != one.key


@pytest.mark.parametrize(
    "text",
    [
        "[]", "null", "{}", '{"version": 2, "hosts": {}}', '{"version": 1, "hosts": {"h": [0, [["n"]]]}}',
        '{"version": 1, "hosts": {"h": [0, [["n", 1, 1, 1, 1, 1, 1, []]]]}}', '{"version": 1, "hosts": {"h": 3}}',
        '{"version": 1, "hosts": {"h": ["x", []]}}', '{"version": 1, "hosts": []}',
        '{"version": 1, "hosts": {"h": [1e999, []]}}',
    ],
)  # fmt: skip
def test_what_was_not_stored_so_is_not_read(text: str) -> None:
    """It is an error of one kind."""
    with pytest.raises(ValueError, match=r"\w"):
        NearCopies().restore(json.loads(text))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("<li>a 1</li><li>b 2</li>", "<li>b 2</li><li>a 1</li>", True),  # another order
        ('<a href="/x?sid=1">x</a>', '<a href="/x?sid=2">x</a>', True),
        ('<a href="/x;s=1">x</a>', '<a href="/x;s=2">x</a>', True),
        (
            "<p>12:03:59 at d41d8cd98f00b204e9800998ecf8427e</p>",
            "<p>9:14 at 0cc175b9c0f1b6a831c399e269772661</p>",
            True,
        ),
        ("<footer>visitor 12</footer>", "<footer>visitor 13</footer>", True),
        ("<aside>buy one</aside>", "<aside>win two</aside>", True),
        ("<script>1</script>", "<script>2</script>", True),
        ("<aside><a href='/x'>one</a></aside>", "<aside><a href='/x'>two</a></aside>", False),  # leads elsewhere
        ('<a href="/x?id=1">x</a>', '<a href="/y?id=1">x</a>', False),
        ("<p>page 1</p>", "<p>page 2</p>", False),
        ("<p>price 1.50</p>", "<p>price 2.50</p>", False),
        ("<p>The report</p>", "<p>Der Bericht</p>", False),
    ],
)
def test_pages_that_say_the_same(one: str, other: str, same: bool) -> None:
    """What changes with each fetch makes no difference; a number or a word of the text does."""
    assert (read(f"<p>{TEXT}</p>{one}") == read(f"<p>{TEXT}</p>{other}")) == same


def test_a_hostile_host_takes_bounded_memory_and_teaches_nothing_about_others() -> None:
    """Endless names, values and hosts do not affect the state of a host that is still crawled."""
    near = NearCopies()
    for i in range(6_000):
        url = f"http://h{i % 700}/{i}?n{i % 300}={i}&id={i % 11}"
        near.offer(url)
        near.learn(url, i + 1)
        near.stripped(url)
    assert len(near._hosts) <= 500
    assert all(len(host.parameters) <= 64 for host in near._hosts.values())
    assert max(map(len, (near._samples, near._pages, near._bases))) <= 1 << 14
    assert len(json.dumps(near.state())) < 1_000_000
    teach(near, range(5), host="honest")
    assert stripped(near, "http://honest/9?sid=x") == "http://honest/9"


def test_a_parameter_that_never_makes_a_pair_is_rarely_examined() -> None:
    """After 200 pages one base in eight is read for it, always the same ones; after a pair all are read again."""
    near = NearCopies()
    urls = [f"http://h/page/{i}?lang=en" for i in range(1000)]
    for number, url in enumerate(urls[:200]):
        assert near.wants(url)
        near.learn(url, number + 1)
    wanted = [url for url in urls if near.wants(url)]
    assert 60 < len(wanted) < 250
    other = wanted[0].replace("en", "fr")
    assert near.wants(other)
    near.learn(wanted[0], 5000)
    near.learn(other, 5000)
    assert all(near.wants(url) for url in urls)


def test_a_parameter_that_matters_is_not_examined() -> None:
    """Eight different pairs are enough."""
    near = NearCopies()
    for number in range(9):
        near.learn(f"http://h/item?id={number}", number + 1)
    assert not near.wants("http://h/item?id=77")


@pytest.mark.parametrize("piece", PAGES.values(), ids=PAGES)
def test_a_page_is_read_in_linear_time(piece: str) -> None:
    """However its elements are nested, named and closed."""
    check(lambda n: parsed(repeated(piece)(n)), page_print)


@settings(max_examples=n_examples(10), deadline=None)
@given(MIXTURES, ENDS)
def test_any_mixture_is_read_in_linear_time(pieces: list[str], end: str) -> None:
    """Pieces one after the other, again and again, with any end."""
    check(lambda n: parsed(repeated("".join(pieces))(n) + end), page_print)
