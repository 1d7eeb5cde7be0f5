"""Text as vectors, by hand."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from scrapy_focus.learn import text
from scrapy_focus.learn.text import N_PAIRS, GramProjector, char_pairs


def pair(two: str) -> int:
    """Return the index of a pair of characters."""
    return (ord(two[0]) - 32) * 95 + ord(two[1]) - 32


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("ab", ["ab"]),
        ("aBc", ["ab", "bc"]),
        (" ~ ", [" ~", "~ "]),
        ("aaa", ["aa", "aa"]),
        ("abécd", ["ab", "cd"]),
        ("ab日cd", ["ab", "cd"]),
        ("ab\udc80cd", ["ab", "cd"]),
        ("é", []),
        ("a\tb\x7fcd", ["cd"]),
        ("É?a", ["?a"]),
        ("a", []),
        ("", []),
    ],
)
def test_pairs_of_characters(text: str, pairs: list[str]) -> None:
    """Pairs come in order and as often as they occur, in lower case; those with a character outside ASCII do not."""
    assert char_pairs(text).tolist() == [pair(two) for two in pairs]


def test_pairs_have_their_range() -> None:
    """There are 95 * 95 indexes, and the first and last pair have the ends."""
    assert (char_pairs("  ")[0], char_pairs("~~")[0], N_PAIRS) == (0, N_PAIRS - 1, 9025)


def projected(projector: GramProjector, *tokens: str) -> dict[int, float]:
    """Return the vector of a sequence."""
    buckets, values = projector.project("/".join(tokens), tokens)
    assert (np.diff(buckets) > 0).all()
    assert values.dtype == np.float32
    return dict(zip(buckets.tolist(), values.tolist(), strict=True))


def test_values_are_means_over_the_positions_of_a_bucket() -> None:
    """With w = 3, m = 2 and a = 5 (mod 8), positions 0 to 7 hash to buckets 0 2 1 3 2 0 3 1."""
    projector = GramProjector(n=2, m=2, w=3)
    assert GramProjector.MULTIPLIER % 8 == 5
    assert projected(projector, "a") == {0: 0.5, 2: 0.5}  # positions 0, 1
    third, sixth = pytest.approx(1 / 3), pytest.approx(1 / 6)
    assert projected(projector, "a", "b") == {0: third, 1: third, 3: third}  # 0, 2, 3
    assert projected(projector, "c", "d") == {0: sixth, 2: sixth, 3: sixth}  # 5, 4, 6: two positions each
    assert projected(projector, "a") == {0: 0.25, 2: 0.25}, "the vocabulary has grown since"


def test_grams_that_collide_in_one_sequence_are_added() -> None:
    """Positions 0 and 5 share bucket 0: a sequence with both, at 1/4 each, has (1/4 + 1/4) / 2 there."""
    projector = GramProjector(n=2, m=2, w=3)
    for tokens in (["a"], ["a", "b"], ["c", "d"]):
        projected(projector, *tokens)
    assert projected(projector, "a", "c", "d") == {0: 0.25, 1: 0.125, 3: 0.125}  # 0, 7, 5, 6


def test_frequencies_count() -> None:
    """A gram that occurs twice in four has twice the value."""
    assert sorted(projected(GramProjector(), "a", "a", "a").values()) == [0.25, 0.25, 0.5]


def test_the_hash_is_that_of_the_paper() -> None:
    """With m = 12, w = 15: a mod 2^15 = 31173, and 31173 // 8 = 3896, 62346 mod 2^15 // 8 = 3697."""
    assert list(projected(GramProjector(), "a", "b")) == [0, 3697, 3896]


def test_positions_do_not_collide_while_they_are_few() -> None:
    """The first 2000 n-grams have separate buckets (measured in the specification)."""
    projector = GramProjector(n=1)
    buckets = {bucket for i in range(1990) for bucket in projected(projector, f"t{i}")}
    assert len(buckets) == 1992


@pytest.mark.parametrize(("n", "grams"), [(1, 4), (2, 3), (3, 2), (4, 1), (9, 1)])
def test_n_grams_may_be_of_any_length(n: int, grams: int) -> None:
    """Two tokens with their two ends make 5 - n grams, and one at least."""
    values = projected(GramProjector(n=n), "a", "b").values()
    assert list(values) == pytest.approx([1 / grams] * grams)


def test_the_vocabulary_is_bounded() -> None:
    """Above its size new n-grams share old positions: no position comes to be, and vectors stay what they were."""
    projector = GramProjector(n=1, m=3, w=5, max_grams=6)
    first = projected(projector, "a", "b", "c", "d")
    for i in range(300):
        assert sum(projected(projector, f"t{i}").values()) > 0
    assert len(projector._vocabulary) == projector._sizes.sum() == 6
    assert projected(projector, "a", "b", "c", "d") == first


def test_what_is_remembered_is_bounded() -> None:
    """However many texts come, no more than 32,768 are remembered, and forgetting changes no vector."""
    projector = GramProjector(n=1, max_grams=10)
    first = projected(projector, "a", "b")
    for i in range(33_000):
        projector.project(str(i), ["x", "y"])
    assert len(projector._memo) < 1 << 15
    for i in range(8):
        projected(projector, f"u{i}")
    assert projected(projector, "a", "b") == first


def test_forgetting_and_storing_change_no_vector(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few sequences are remembered, and in whatever process, the vectors are the same, also past the vocabulary's end."""
    whole = GramProjector(n=1, m=6, w=8, max_grams=100)
    expected = [projected(whole, f"t{i}", f"t{i // 7}") for i in range(150)]
    monkeypatch.setattr(text, "_TEXTS", 3)
    monkeypatch.setattr(text, "_CHARACTERS", 20)
    projector = GramProjector(n=1, m=6, w=8, max_grams=100)
    for i in range(150):
        assert projected(projector, f"t{i}", f"t{i // 7}") == expected[i]
        assert len(projector._memo) <= 3
        assert projector._remembered == sum(map(len, projector._memo)) <= 20
        projector = pickle.loads(pickle.dumps(projector)) if i % 20 == 0 else projector
    assert len(projector._vocabulary) == 100


def test_a_long_sequence_takes_the_place_of_all_others() -> None:
    """The cache is bounded in characters, too: a path of millions is alone until the next one comes."""
    projector = GramProjector()
    for i in range(100):
        projected(projector, f"t{i}")
    projector.project("x" * (1 << 22), ["x"])
    assert len(projector._memo) == 1
    projector.project("x" * (1 << 23), ["x"])
    projected(projector, "a")
    assert list(projector._memo) == ["a"]


def test_a_full_projector_is_stored_in_half_a_megabyte() -> None:
    """The pickle has 8 bytes for each n-gram, however long these are, and nothing of the cache."""
    projector = GramProjector(n=1)
    for i in range(1 << 16):
        projector._bucket(f"div.a-class-of-many-words-{i}")
    projector.project("a text that is remembered", ["and", "split"])
    stored = pickle.dumps(projector, protocol=5)
    assert len(projector._vocabulary) == projector.max_grams == 1 << 16
    assert len(stored) < 600_000
    assert b"remembered" not in stored.replace(b"_remembered", b"")
    assert pickle.loads(stored)._vocabulary == projector._vocabulary


def test_any_text_has_a_position() -> None:
    """Half of a surrogate pair, which no encoding knows, is a gram like others, also past the end of the vocabulary."""
    projector = GramProjector(n=1, max_grams=2)
    assert len(projected(projector, "\udc80")) == len(projected(projector, "\udc81")) == 2
