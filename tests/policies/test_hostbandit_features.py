"""What the bandit of hosts reads of a link and its host, by hand: tokens, arms, and the rows of features."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scrapy_focus import HostBandit, Link
from scrapy_focus.policies.hostbandit.features import LinkFeatures, Pages, size_features, tokens_of
from scrapy_focus.policies.hostbandit.hosts import HostTable, section_of
from tests.made import fetch
from tests.policies.manyhosts import crawl_of

LONG = "a" * 30
TOKENS = [
    ("http://example.org", ""),
    ("http://example.org/", ""),
    ("http://example.org?page=2", ""),  # no path: nothing of it is read
    ("http://example.org/?page=2", "page 0"),
    ("http://example.org/#recipes", "recipes"),
    ("http://example.org/recipes/", "recipes"),
    ("http://example.org/Recipes/CAKES/recipes", "recipes cakes"),
    ("http://example.org/7", "0"),
    ("http://example.org/42", "0"),
    ("http://example.org/123", "0"),
    ("http://example.org/2024/1/20/123", "0"),
    ("http://example.org/a4711b", ""),  # two letters are left
    ("http://example.org/item4711", "item"),
    ("http://example.org/4x4-jeep", "jeep"),
    ("http://example.org/abc123def", "abcdef"),
    ("http://example.org/a/bc/def/ghij", "def ghij"),
    (f"http://example.org/{LONG}/{LONG}a", LONG),
    (f"http://example.org/{LONG}1", LONG),
    ("http://example.org/page.php?id=7&Cat=Wine#top", "page php 0 cat wine top"),
    ("http://example.org/search?q=caf%C3%A9", "search café"),
    ("http://example.org/%D1%80%D0%B5%D1%86%D0%B5%D0%BF%D1%82/5", "рецепт 0"),
    ("http://example.org/рецепт/борщ", "рецепт борщ"),
    ("http://example.org/%E6%96%99%E7%90%86%E6%9C%AC", "料理本"),
    ("http://example.org/%E0%A5%A8%E0%A5%A6", "0"),  # Devanagari digits
    ("http://example.org/a%20big%2Ccake", "big cake"),
    ("http://example.org/%zz%ff/cake%", "cake"),
    ("http://xn--mnchen-3ya.de/stadt", "stadt"),
    ("http://münchen.de/stadt", "stadt"),
    ("http://user:pw@example.org:8080/menu", "menu"),
    ("http://[::1]/menu", "menu"),
    ("//example.org/menu", "menu"),
    ("http://example.org/the_red-fox+jumps~over;it", "the red fox jumps over"),
    ("http://example.org/cake#" + "x" * 99 + "yz", "cake"),  # of a fragment, a hundred characters
    ("http://example.org/" + "begin/" + "y/" * 5_000 + "end", "begin end"),  # of a path, both ends
]


@pytest.mark.parametrize(("url", "tokens"), TOKENS, ids=[url[:60] for url, _ in TOKENS])
def test_tokens_of_a_url(url: str, tokens: str) -> None:
    """Of path, query and fragment; numbers are one token, digits in words are removed, and so are short and long
    ones.
    """
    assert tokens_of(url) == tokens.split()


def rows(*links: Link, published: bool = True, places: bool = True) -> list[set[int]]:
    """Return the features of links."""
    found = LinkFeatures(published=published, places=places).rows(links)
    assert found.shape == (len(links), 24)
    return [set(row.tolist()) - {0} for row in found]


@pytest.mark.parametrize("published", [True, False])
@pytest.mark.parametrize(("url", "tokens"), TOKENS, ids=[url[:60] for url, _ in TOKENS])
def test_each_token_is_a_feature(url: str, tokens: str, published: bool) -> None:
    """Beside that of the host, and the one that every link has."""
    row, no_words = rows(Link(url, 1, "h.test"), Link("http://h.test/", 2, "h.test"))
    each = [rows(Link(f"http://h.test/{token}", 3, "h.test"))[0] for token in tokens.split()[:10]]
    assert row == no_words.union(*each)
    assert all(len(one - no_words) == 1 for one in each)


def test_hosts_are_told_apart() -> None:
    """By one feature as published, and by one more with the shape of the URL, and one with each place."""
    urls = [Link(f"http://{host}/cakes/1.html", at, host) for at, host in enumerate(("a.test", "b.test"))]
    one, other = rows(*urls)
    assert len(one - other) == len(other - one) == 1
    one, other = rows(*urls, published=False)
    assert len(one - other) == len(other - one) == 2
    one, other = rows(*[url._replace(tag_path="html/body/a") for url in urls], published=False)
    assert len(one - other) == len(other - one) == 3


def test_anchors_and_places_are_read_where_wanted() -> None:
    plain = Link("http://h/x", 1, "h")
    placed = plain._replace(anchor="Lemon Tart", tag_path="html/body/ul.menu/li/a")
    before, after = rows(plain, placed, published=False)
    assert before < after
    assert len(after - before) == 4  # two words, the place, and the place on this host
    assert len(set(map(frozenset, rows(plain, placed, published=False, places=False)))) == 1
    assert len(set(map(frozenset, rows(plain, placed, published=True)))) == 1


def test_a_row_has_room_for_the_longest() -> None:
    """Ten tokens and five words of an anchor at most."""
    url = "http://h/" + "/".join("abcdefghijklmn"[n] * 3 for n in range(14)) + "?qqq=1"
    link = Link(url, 1, "h", anchor="one two three four five six seven", tag_path="html/body/a")
    assert len(rows(link, published=False)[0]) == 10 + 2 + 2 + 5 + 2


def digests() -> list[list[int]]:
    """Return rows of all the URLs above."""
    links = [Link(url, 1, "h.test", anchor="Lemon tart 7", tag_path="html/body/a") for url, _ in TOKENS]
    return LinkFeatures(published=False, places=True).rows(links).tolist()


def test_rows_are_the_same_in_every_process() -> None:
    words = "import json; from tests.policies.test_hostbandit_features import digests; print(json.dumps(digests()))"
    done = subprocess.run(
        [sys.executable, "-c", words], env={**os.environ, "PYTHONHASHSEED": "7"}, cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout) == digests()


# Parents and siblings


def known(pages: Pages, *parents: int) -> list[int]:
    """Return the features of a link with these parents."""
    found: list[int] = pages.features(np.array([[*parents, 0, 0, 0][:3]], np.uint32))[0].tolist()
    return found


def page_with(pages: Pages, key: int, good: int, bad: int, *, worth: bool | None = None) -> int:
    """Return a page that so many good and bad pages link to."""
    page = pages.number(key)
    for at in range(good + bad):
        pages.labelled_child(page, good=at < good)
    if worth is not None:
        pages.label(page, good=worth)
    return page


def test_several_parents_say_what_one_with_all_of_their_links_says() -> None:
    """In any order; later data of a page are included."""
    pages = Pages()
    one, other, both = page_with(pages, 1, 1, 0), page_with(pages, 2, 1, 3), page_with(pages, 3, 2, 3)
    assert known(pages, one, other) == known(pages, other, one) == known(pages, both)
    assert len({tuple(known(pages, page)) for page in (one, other, both)}) == 3
    pages.label(one, good=True)
    pages.label(other, good=False)
    good_and_bad = known(pages, one, other)
    pages.label(other, good=True)
    assert len({tuple(good_and_bad), tuple(known(pages, one, other)), tuple(known(pages, both))}) == 3
    assert pages.evidence((one, other, 0)) == (2, 0, 2, 3)


def test_counts_are_told_apart_in_steps() -> None:
    """None, 1, 2, 3, up to 7, up to 15, and more."""
    pages = Pages()
    rows = [tuple(known(pages, page_with(pages, 100 + n, n, 0))) for n in range(40)]
    assert [rows.index(row) for row in rows] == [0, 1, 2, 3, *[4] * 4, *[8] * 8, *[16] * 24]
    misses = [tuple(known(pages, page_with(pages, 200 + n, 0, n))) for n in range(40)]
    assert [misses.index(row) for row in misses] == [0, 1, 2, 3, *[4] * 4, *[8] * 8, *[16] * 24]
    assert not set(rows[1:]) & set(misses)


def test_whether_any_parent_or_sibling_was_good() -> None:
    """One feature each, section 1.1: the same for one and for several, another one for none."""
    pages = Pages()
    parents = [page_with(pages, at, 0, 1, worth=True) for at in range(3)]
    any_parent = [known(pages, *parents[:n])[4] for n in range(4)]
    any_sibling = [known(pages, page_with(pages, 10 + n, n, 1))[5] for n in range(4)]
    for none, *some in (any_parent, any_sibling):
        assert some == [some[0]] * 3
        assert none != some[0]


def test_a_good_parent_says_something_beside_each_share_of_its_links() -> None:
    """Whether a page was worth something and nothing is known, it was not, or it was: three kinds for each share."""
    pages, kinds = Pages(), set()
    for worth in (None, False, True):
        for good in range(11):
            page = page_with(pages, len(pages) + 1_000, 2 * good, 20 - 2 * good, worth=worth)
            kinds.add((known(pages, page)[-1], bool(worth)))
    assert len(kinds) == 12  # six shares, each with a good parent and without


# Arms


@pytest.mark.parametrize(
    ("url", "section"),
    [
        ("http://a.test", ""), ("http://a.test/", ""), ("http://a.test/x", ""), ("http://a.test/x/", "x"),
        ("http://a.test//x/y", "x"), ("http://a.test/x/y?z=/1", "x"), ("http://a.test?x/y", ""),
        ("http://a.test/x?y/z", ""), ("http://a.test/%78/y", "%78"), ("http://[broken/x/y", "x"),
        ("http://a\u2100.test/x/y", "x"), ("", ""),
    ],
)  # fmt: skip
def test_sections(url: str, section: str) -> None:
    """The first folder of a path, whatever a URL is like."""
    assert section_of(url) == section


ARMS = {
    "domain": {"a.co.uk", "b.example", "1.2.3.4:8000", "localhost"},
    "host": {"www.a.co.uk", "data.a.co.uk", "b.example", "1.2.3.4:8000", "localhost"},
    "section": {
        "www.a.co.uk/", "data.a.co.uk/x", "data.a.co.uk/y", "b.example/", "1.2.3.4:8000/", "localhost/"
    },
}  # fmt: skip


@pytest.mark.parametrize("arm", ARMS)
def test_what_an_arm_is(arm: str) -> None:
    """Links of one arm have one number, in whatever order they come; hosts of a domain are counted."""
    urls = [
        "http://www.a.co.uk/1", "http://data.a.co.uk/x/1", "http://data.a.co.uk/y/1", "http://data.a.co.uk/x/2",
        "http://b.example/", "http://1.2.3.4:8000/", "http://localhost/",
    ]  # fmt: skip
    for order in (urls, urls[::-1]):
        table = HostTable(score="good", arm=arm, prior=1.0, strength=2.0)
        seen: dict[int, str] = {}
        for url in (*order, *order):
            host = url.split("/")[2]
            number = table.number(host, url)
            assert seen.setdefault(number, table.name(host, url)) == table.name(host, url)
        assert set(seen.values()) == ARMS[arm]
        assert len(table) == len(seen) == len(ARMS[arm])


def test_a_host_is_shut_where_all_hosts_of_its_arm_are_busy() -> None:
    """Also after it was stored; hosts that were never seen, and sections, are not known to be."""
    table = HostTable(score="good", arm="domain", prior=1.0, strength=2.0)
    arms = [table.number(host, "") for host in ("a.x.test", "b.x.test", "y.test")]
    again = HostTable.__new__(HostTable)
    again.__setstate__(table.__getstate__())
    for each in (table, again):
        assert each.shut({"a.x.test", "y.test", "never.test"}) == {arms[2]}
        assert each.shut({"a.x.test", "b.x.test"}) == {arms[0]}
        assert each.shut(()) == set()
    table = HostTable(score="good", arm="section", prior=1.0, strength=2.0)
    table.number("y.test", "http://y.test/a/b")
    assert table.shut({"y.test"}) == set()


class FewArms(HostBandit):
    """One with room for seven arms."""

    def open(self, *given: Any) -> None:
        super().open(*given)
        self.hosts.most = 7


@pytest.mark.parametrize("preset", ["", "cikm-2014"])
def test_more_hosts_than_there_is_room_for_share_arms(preset: str) -> None:
    """They are spread over the arms, always the same for one host, and each page is fetched once."""
    links = [Link(f"http://{at % 100}.test/{at}", at + 1, f"{at % 100}.test") for at in range(300)]
    policy = FewArms(preset=preset, arm="host", decay="none", explore=0.1)
    crawl = crawl_of(policy, *links)
    arms: dict[str, set[int]] = {}
    for at in range(300):
        pick = fetch(crawl, items=float(at % 3 == 0))
        arms.setdefault(pick.host, set()).add(pick.arm)
    assert crawl.next() is None
    assert len(policy.hosts) == 7
    assert all(len(numbers) == 1 for numbers in arms.values())
    assert len(arms) == 100
    assert max(Counter(arm for (arm,) in arms.values()).values()) < 40


def test_the_size_of_a_host_is_read_in_powers_of_two() -> None:
    sizes = [0, 1, 2, 3, 6, 7, 14, 15, 8190, 8191, 1_000_000]
    found = size_features(np.array(sizes, np.float64))[:, 0].tolist()
    assert [found.index(each) for each in found] == [0, 1, 1, 3, 3, 5, 5, 7, 8, 9, 9]


def test_a_new_host_that_is_large_comes_first_where_large_hosts_were_worth_something() -> None:
    """Nothing else tells these hosts apart: their names, and what they link to, are made of numbers alone."""

    def links(host: int, n: int) -> list[Link]:
        name = f"{host}.test"
        return [Link(f"http://{name}/{at}", host * 1000 + at, name) for at in range(n)]

    goal = lambda outcome: float(int(outcome.pick.host[:-5]) % 2 == 0)  # noqa: E731
    crawl = crawl_of(HostBandit(explore=0.0), goal=goal)
    for host in range(20, 60):
        crawl.add(links(host, 24 if host % 2 == 0 else 2))
    for _ in range(20 * 24 + 20 * 2):
        fetch(crawl)
    assert crawl.next() is None
    for host in (*range(101, 121, 2), 122):
        crawl.add(links(host, 24 if host == 122 else 2))
    assert fetch(crawl).host == "122.test"


def test_hosts_are_told_apart_by_their_numbers() -> None:
    rows = LinkFeatures(published=True, places=False).rows([Link("http://h/", k, f"node{k}.test") for k in (1, 2)])
    assert rows[0].tolist() != rows[1].tolist()
