"""The hashed features of a link: words of its URL, its template, its anchor; the same in every process, for any
input.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_focus.learn import hashed
from scrapy_focus.learn.hashed import N_FEATURES
from scrapy_focus.policies.branching import features
from scrapy_focus.policies.branching.features import BYTES, WIDTH, LinkHasher, path_of, shape_of
from tests.made import link

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from scrapy_focus import Link

ROOT = Path(__file__).parents[2]
ODD = [
    "http://h", "http://h/", "http://h?", "http://h/?", "http://h/?q", "http://h/?q=1&", "http://h/?&&==&", "http://h/a?b?c",
    "http://h/a\nb/c.csv", "http://h/\n", "http://h/a\r\nb", "http://h/\u2028x\x0bx\x0cx\x1cx\x85x", "http://h/ä/Straße/ΣΑΣ/İİ.csv",
    "http://h/数据/表.xlsx", "http://h/%E6%95%B0?%2F=%3F", "http://h/\udc80/\ud83d", "http://h/١٢٣/۴/1²³", "http://h/....", "http://h/.",
    "http://h//a//b//", "http://h/a/./../b", "", "/", "//", "nothing", "mailto:a@b.c", "data:text/html,x/y", "http://h/0", "http://h/000",
    "http://h/" + "a" * 100_000, "http://h/" + "a/" * 30_000 + "?" + "b&" * 30_000, "http://h/" + "1" * 5000, "http://h/x." + "y" * 50_000,
]  # fmt: skip


def rows(*links: Link) -> NDArray[np.uint16]:
    """Return the features of links as of one page, read by a new hasher."""
    return LinkHasher().rows(links)


def of(url: str, anchor: str = "") -> set[int]:
    """Return the features of a link alone on its page."""
    [row] = rows(link(1, url=url, anchor=anchor))
    return set(row[row > 0].tolist())


def same(one: str, two: str) -> float:
    """Return the share of the features of one URL that another one has too."""
    return len(of(one) & of(two)) / len(of(one))


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("http://h/data/2023/table-7.csv", "http://h/data/2024/table-8.csv"),
        ("http://h/data/1/table-10.csv", "http://h/data/2000/table-9.csv"),
        ("http://h/list?page=2&n=10", "http://h/list?page=3000&n=1"),
        ("http://h/v1/x", "http://h/v22/x"),
        ("http://h/A/B.CSV", "http://h/a/b.csv"),
        ("http://one.test/a/b", "https://two.test:8080/a/b"),
    ],
)
def test_numbers_hosts_and_capitals_make_no_difference(one: str, two: str) -> None:
    """URLs that differ in them have the same features."""
    assert of(one) == of(two)


def test_numbers_in_anchors_are_the_same() -> None:
    """So do anchors: the twentieth page of a list is like the two thousandth."""
    assert of("http://h/", "Page 20 of 90") == of("http://h/", "page 2000 of 10000")
    assert of("http://h/", "Page 20") != of("http://h/", "Page two")


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("http://h/data/a.csv", "http://h/data/a.html"),
        ("http://h/data/a", "http://h/news/a"),
        ("http://h/a/b", "http://h/b/a"),
        ("http://h/list?page=1", "http://h/list?sort=1"),
        ("http://h/list", "http://h/list?page=1"),
        ("http://h/item", "http://h/item/5"),
    ],
)
def test_words_templates_and_extensions_make_a_difference(one: str, two: str) -> None:
    """Different links share some features, but not all."""
    assert 0 < same(one, two) < 1


def test_words_count_alone_and_with_their_neighbour() -> None:
    """Another order of the same words keeps the words, and loses the pairs."""
    assert len(of("http://h/?a-b") & of("http://h/?b-a")) > len(of("http://h/?a-b") & of("http://h/?c-d"))
    assert of("http://h/?a-b-c") - of("http://h/?b-a-c")


def test_the_end_of_a_long_url_is_read() -> None:
    """Of a hundred words, the last ones count, and the first three folders."""
    middle = "/".join(["x"] * 90)
    assert same(f"http://h/a/b/c/{middle}/report-one", f"http://h/a/b/c/{middle}/report-two") < 1
    assert of(f"http://h/a/b/c/d/{middle}/x/report") == of(f"http://h/a/b/c/e/{middle}/x/report")
    assert of(f"http://h/a/b/c/{middle}/report") != of(f"http://h/a/b/d/{middle}/report")


def test_the_place_on_the_page_counts_by_its_size() -> None:
    """The first link, the second, the third and fourth to seventh, and so on; links 100 and 120 of a page are the same."""
    found = rows(*[link(i, url="http://h/a", anchor="b") for i in range(1, 200)])
    different = [i for i in range(1, 199) if not np.array_equal(found[i], found[i - 1])]
    assert different == [1, 3, 7, 15, 31, 63, 127]


def test_a_page_may_have_any_number_of_links() -> None:
    """None, one, and a hundred thousand, which is beyond the last rank."""
    hasher = LinkHasher()
    assert hasher.rows([link(1, url="http://h/a")]).shape == (1, WIDTH)
    many = hasher.rows([link(i, url="http://h/a") for i in range(70_000)])
    assert many.shape == (70_000, WIDTH)
    assert np.array_equal(many[-1], many[40_000])


@pytest.mark.parametrize("url", ODD, ids=lambda url: ascii(url[:20]))
def test_every_url_can_be_read(url: str) -> None:
    """Without a path, with line breaks, in any script, and however long: a row of some features, each once."""
    [row] = rows(link(1, url=url, anchor=url))
    found = row[row > 0]
    assert row.shape == (WIDTH,)
    assert row.dtype == np.uint16
    assert len(found) == len(set(found.tolist())) >= 3
    assert found.max() < N_FEATURES
    assert row.view(np.uint8).shape == (BYTES,)


def test_links_of_one_page_do_not_mix() -> None:
    """Each link is read as if it were alone at its place, whatever the others contain, line breaks above all."""
    links = [link(i, url=url, anchor=url[:300]) for i, url in enumerate(ODD)]
    together = rows(*links)
    for i, (each, row) in enumerate(zip(links, together, strict=True)):
        others = [link(99, url="http://h/plain/page.html")] * i
        assert np.array_equal(rows(*others, each)[-1], row), each.url[:50]


def test_lengthy_urls_cost_little() -> None:
    """A page of a thousand links whose URLs have 2,000 characters is read, and features are no more than ever."""
    url = "http://h/" + "abc-def/" * 250
    assert (rows(*[link(i, url=f"{url}{i}") for i in range(1000)]) > 0).sum(axis=1).max() <= WIDTH


def test_words_around_a_link_count() -> None:
    """The first one beside its own; a link alone on its line has none, and its own are not said twice."""
    alone, named, other = rows(
        link(1, url="http://h/a", anchor="CSV", context="CSV"),
        link(2, url="http://h/a", anchor="CSV", context="Wine prices CSV"),
        link(3, url="http://h/a", anchor="CSV", context="Olive prices CSV"),
    )
    assert np.count_nonzero(named) == np.count_nonzero(alone) + 1
    assert len((set(named.tolist()) & set(other.tolist())) - {0}) == np.count_nonzero(named) - 1, "wine or olive"


def test_links_to_targets_beside_it_count() -> None:
    """How many there are, by powers of two, alone and with the element of the link itself."""
    one, other = link(1, url="http://h/a", tag_path="html/p/a.file"), link(2, url="http://h/a", tag_path="html/p/a")
    hasher = LinkHasher()
    none, two, three, eight = (hasher.rows([one, other], beside) for beside in (0, 2, 3, 8))
    assert (two == three).all()
    for first, second in ((none, two), (two, eight)):
        for before, after in zip(first, second, strict=True):
            assert len(set(before.tolist()) - set(after.tolist())) == 2
    assert len({*two[0].tolist()} & {*two[1].tolist()} - {*none[0].tolist()}) == 1, "what both say of their page"


def test_what_is_said_twice_counts_once() -> None:
    """A URL that is the same word over and over has each feature once."""
    [row] = rows(link(1, url="http://h/" + "data/" * 20, anchor="data data data data data"))
    found = row[row > 0].tolist()
    assert len(found) == len(set(found))


def test_a_pickled_hasher_reads_the_same() -> None:
    """What it remembers is not stored, and found again."""
    hasher = LinkHasher()
    links = [link(i, url=url) for i, url in enumerate(ODD)]
    before = hasher.rows(links)
    stored = pickle.dumps(hasher)
    assert len(stored) < 200
    assert np.array_equal(pickle.loads(stored).rows(links), before)


@given(st.lists(st.text("ab0z|/ .-_?=", max_size=40), min_size=1, max_size=4))
def test_words_of_plain_paths_are_those_of_any_path(paths: list[str]) -> None:
    """Paths of ASCII characters are parted in a quicker way than the others, into the same words."""
    plain, any_ = (features._words_in("\n".join([*paths, last]) + "\n") for last in ("-", "ä"))
    assert plain == [re.sub("0+", "0", word) for word in any_]
    assert plain.count("|") == len(paths) + 1


def numbered(i: int) -> Link:
    """Return a link with distinct words, in letters."""
    word = "".join(chr(ord("a") + int(digit)) for digit in str(i))
    return link(i, url=f"http://h/{word}/x{word}.q{word[:4]}?y{word}=1", anchor=f"go {word}")


@pytest.mark.parametrize("known", [1, 7, 20])
def test_what_is_remembered_has_an_end(known: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hasher that has read more words than it remembers reads every link as a new one does."""
    links = [numbered(i) for i in range(100, 160)]
    wanted = [rows(*links[i : i + 3]) for i in range(0, 60, 3)]
    monkeypatch.setattr(hashed, "_REMEMBERED", known)
    hasher = LinkHasher()
    for i, row in zip(range(0, 60, 3), wanted, strict=True):
        assert np.array_equal(hasher.rows(links[i : i + 3]), row), i


def memory_of(hasher: LinkHasher) -> int:
    """Return about how many bytes a hasher remembers, beyond those of numbers."""
    remembered = [each for each in vars(hasher).values() if isinstance(each, dict)]
    assert remembered
    return sum(sys.getsizeof(each) + sum(sys.getsizeof(text) for text in each) for each in remembered)


def test_long_urls_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """For URLs of 2,000 characters, each with a different template and extension, no more is cached than for anchors."""
    monkeypatch.setattr(hashed, "_REMEMBERED", 200)
    hasher = LinkHasher()
    for i in range(200, 400):
        word = numbered(i).anchor[3:]
        hasher.rows([link(i, url=f"http://h/{word}/x/y/z.{word * 300}?{word * 300}=1", anchor=word * 100)])
    assert memory_of(hasher) < 4 * 200 * 300


def test_features_are_those_of_models_that_were_saved() -> None:
    """A file of learned weights depends on these numbers: changing one requires a new format."""
    links = [
        link(
            i,
            url=url,
            anchor=url[:300],
            tag_path=f"html/body/div#d{i}/p.c{i % 3}/a",
            context=f"Of {i} tables, {url[:300]}",
        )
        for i, url in enumerate(ODD)
    ]
    read = LinkHasher().rows(links, 5)
    assert hashlib.sha256(read.tobytes()).hexdigest()[:16] == "4ff67927d010889d"


def test_paths_may_be_cut_before() -> None:
    """Given paths of URLs are used without reading the URLs."""
    links = [link(i, url=url, anchor=url[:300]) for i, url in enumerate(ODD)]
    assert np.array_equal(LinkHasher().rows(links, paths=[path_of(each.url) for each in links]), rows(*links))


def read_odd() -> str:
    """Return the features of the odd URLs."""
    return rows(*[link(i, url=url, anchor=url[:300]) for i, url in enumerate(ODD)]).tobytes().hex()


@pytest.mark.slow
def test_features_are_the_same_in_every_process() -> None:
    """Strings hash differently in another process, and features do not."""
    words = "from tests.policies.test_linkhashes import read_odd; print(read_odd())"
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", words], env=environment, cwd=ROOT, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == read_odd()


@pytest.mark.parametrize(
    ("url", "path", "shape"),
    [
        ("http://h/a/b/c/d/e.tar.gz?x=1&y", "a/b/c/d/e.tar.gz?x=1&y", ("a/b/c", "gz", "x&y")),
        ("http://h", "", ("", "", "")),
        ("http://h/", "", ("", "", "")),
        ("http://h/?a=b/c.csv", "?a=b/c.csv", ("", "", "a")),
        ("http://h/a.b/c", "a.b/c", ("a.b", "", "")),
        ("http://h/a?", "a?", ("", "", "")),
    ],
)
def test_shapes(url: str, path: str, shape: tuple[Sequence[str], ...]) -> None:
    """The first three folders, the extension, and the names in the query; the query is neither."""
    assert path_of(url) == path
    assert shape_of(path) == shape
