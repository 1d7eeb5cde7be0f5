"""Keywords in texts of any language."""
# ruff: noqa: RUF001

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_focus.learn.matching import Keywords
from scrapy_focus.policies.treeq.features import LinkReader
from scrapy_focus.topic.keywords import KeywordRelevance
from scrapy_focus.web.words import url_words, words_of
from tests.made import link


def found(keyword: str, text: str) -> bool:
    """Whether a keyword is found in a text; in the count of the same, too."""
    keywords = Keywords([keyword])
    says = keywords.found(words_of(text), text)
    assert says == (keywords.count(words_of(text), text) > 0)
    return says


@pytest.mark.parametrize(
    ("keyword", "yes", "no"),
    [
        ("art", "art, Art.", "party arts"),
        ("player", "players", "display playe"),
        ("Goat Milk", "goat-milk", "goat and milk, goat milks"),
        ("Größe", "GRÖSSE größen groesse", "gross"),
        ("a+b(c", "a+b(c)", "ab a b c"),
        ("...", "", "... a"),
    ],
)
def test_words_and_phrases(keyword: str, yes: str, no: str) -> None:
    """Short keywords are whole words, longer ones also begin words, and the words of phrases are adjacent."""
    assert found(keyword, yes) is bool(yes)
    assert not found(keyword, no)


@pytest.mark.parametrize(
    ("keyword", "yes", "no"),
    [
        ("honig", "Blütenhonig Honigbiene Waldhonigs", "onig Hönig xhonig bthonig"),
        ("biene", "Honigbiene Wildbienen Bienenstock", "Schiene Honigbienchen"),
        ("wein", "Weinberg", "Schwein Hausschwein Rotwein"),
        ("rat", "Rat", "Vorrat Apparat Ratte Stadtrat"),
        ("käse", "Käsekuchen", "Ziegenkäse"),
        ("table", "tables table", "stable"),
        ("пчела", "медопчела", "крчелa"),
    ],
)
def test_compounds_are_found_by_their_last_part(keyword: str, yes: str, no: str) -> None:
    """A keyword of five letters is found behind three others that are not all consonants; a shorter one is not."""
    for word in yes.split():
        assert found(keyword, word), word
    for word in no.split():
        assert not found(keyword, word), word


def test_a_compound_of_two_keywords_counts_for_both() -> None:
    """What begins with one keyword and ends with another has both, and so is on the topic."""
    assert Keywords(["honig", "biene"]).each(["honigbiene"]) in ([0, 1], [1, 0])
    assert KeywordRelevance(["honig", "biene"]).score(["Honigbiene", "Honig", "Biene"]).tolist() == pytest.approx(
        [0.5, 1 / 3, 1 / 3]
    )


@pytest.mark.parametrize(
    ("keyword", "text", "times"),
    [
        ("茶", "茶", 1),
        ("茶", "我喜欢喝茶的人", 1),
        ("茶", "喝茶的, 茶叶和绿茶。", 3),
        ("茶", "咖啡 tea", 0),
        ("养蜂", "中国养蜂学会", 1),
        ("普洱茶", "云南普洱茶的", 1),
        ("普洱茶", "普洱的茶", 0),
        ("ワイン", "フランスワイン", 1),
        ("ワイン", "イワン", 0),
    ],
)
def test_scripts_without_blanks(keyword: str, text: str, times: int) -> None:
    """A keyword is counted anywhere in a run, once, even if it is one character."""
    assert Keywords([keyword]).count(words_of(text), text) == times


@pytest.mark.parametrize(
    ("keyword", "yes", "no"),
    [
        ("C++", "C++|c++11|(C++)|visual C++.|C%2B%2B", "c|c+|c+++|abc++|C#"),
        ("c#", "C#|c#8|in C#, too", "c|c++|abc#|c##"),
        (".NET", ".net|the .NET platform|.net/core", "net|network|example.net|..net|.nets"),
        ("c++ templates", "C++  Templates", "c templates|templates"),
        ("R&D", "R&D|our r&d-team", "rd|r d|R&Ds|or&d"),
        ("honey & bees", "honey & bees|honey, bees", "honey and bees"),
    ],
)
def test_signs(keyword: str, yes: str, no: str) -> None:
    """Keywords with signs match as they are written, and not within other names; in URLs, too."""
    reader = LinkReader([keyword], None)
    for text in yes.split("|"):
        assert found(keyword, text) or "%" in text, text
        url = f"http://a.test/?q={text}"
        assert reader.read([link(1, url=url, anchor=text)])[0, 0] or "%" not in url, url
    for text in no.split("|"):
        assert not found(keyword, text), text


def test_the_domain_is_not_what_a_link_says() -> None:
    """``.net`` is not in every URL below .net."""
    assert LinkReader([".net"], None).read([link(1, url="http://a.net/b.html", anchor="")]).tolist() == [[0, 0, 0]]
    assert not Keywords(["test"]).found(url_words("http://a.test/b"))


@given(st.lists(st.text(min_size=1), max_size=4), st.text())
def test_any_keywords_in_any_text(given: list[str], text: str) -> None:
    """All keywords that are listed are found in themselves, counts agree, and a copy that was pickled finds the same."""
    keywords = Keywords(given)
    words = words_of(text)
    each = keywords.each(words, text)
    assert keywords.count(words, text) == len(each)
    assert keywords.found(words, text) == bool(each)
    assert bool(keywords) == bool(keywords.listed)
    copy = pickle.loads(pickle.dumps(keywords))
    assert copy.listed == keywords.listed
    assert sorted(copy.each(words, text)) == sorted(each)
    for i, keyword in enumerate(keywords.listed):
        assert i in keywords.each(words_of(keyword), keyword)


def test_time_is_linear_in_a_text_of_one_character() -> None:
    """A text of 200,000 times the same character is counted at once."""
    assert Keywords(["茶", "菜"]).count(words_of("茶" * 200_000 + "菜" * 200_000)) == 400_000
