"""Words that no example has, judged by the words nearest to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from numpy.typing import NDArray

from scrapy_focus.topic.models import load_relevance
from scrapy_focus.topic.nearby import weights_nearby
from scrapy_focus.topic.relevance import LinearRelevance

if TYPE_CHECKING:
    from pathlib import Path

WINE = [f"wine{letter}" for letter in "abcdefghijkl"]
STEEL = [f"steel{letter}" for letter in "abcdefghijkl"]


class Made(dict[str, NDArray[np.float32]]):
    """Vectors that are made by hand: of each word the angle, in degrees."""

    def __init__(self, angles: dict[str, float]) -> None:
        turned = {word: np.radians(angle) for word, angle in angles.items()}
        super().__init__({word: np.array([np.cos(a), np.sin(a)], np.float32) for word, a in turned.items()})
        self.key_to_index = {word: i for i, word in enumerate(angles)}


def vectors(**more: float) -> Made:
    """Words of wine around 0 degrees, of steel around 90."""
    angles = {word: i for i, word in enumerate(WINE)} | {word: 90 + i for i, word in enumerate(STEEL)}
    return Made(angles | more)


@pytest.fixture
def texts() -> list[str]:
    """Ten pages on wine, and ten on steel."""
    rng = np.random.default_rng(0)
    return [" ".join(["the page", *rng.choice(words, 5)]) for words in [WINE] * 10 + [STEEL] * 10]


def fit(texts: list[str]) -> LinearRelevance:
    return LinearRelevance().fit(texts, [True] * 10 + [False] * 10)


def test_the_mean_of_the_ten_nearest_by_hand() -> None:
    """Each counts by the square of its cosine, those that point away for nothing, and an eleventh one for nothing."""
    weights = {word: float(i < 2) for i, word in enumerate(WINE)}
    made = Made(
        {word: 60.0 * (i < 2) for i, word in enumerate(WINE[:10])} | {WINE[10]: 120.0, "new": 0.0, "away": 180.0}
    )
    found = weights_nearby(weights, made)
    assert found.keys() == {"new", "away"}
    assert found["new"] == pytest.approx(2 * 0.25 / (2 * 0.25 + 8))
    assert found["away"] == 0


def test_words_of_files_with_parts_of_speech() -> None:
    """An entry with a part of speech is the word before it; one of two words, or of none, is passed over."""
    made = vectors(**{"grape_NOUN": 3.0, "new_york": 3.0, "...": 3.0, "Cork": 3.0})
    assert weights_nearby(dict.fromkeys(WINE, 1.0), made).keys() == {*STEEL, "grape", "cork"}


def test_too_little_to_go_by() -> None:
    """Fewer than ten words with a weight and a vector say nothing."""
    assert weights_nearby(dict.fromkeys(WINE[:9], 1.0), vectors(grape=1)) == {}
    assert weights_nearby(dict.fromkeys([*WINE, *STEEL], 1.0), vectors()) == {}
    assert weights_nearby({}, vectors()) == {}


def test_links_of_unknown_words_are_judged(texts: list[str], tmp_path: Path) -> None:
    """A word near those of the topic is on it, one near the others is not; pages stay, and a file keeps it."""
    plain, wide = fit(texts), fit(texts)
    before = wide.digest
    assert wide.widen(vectors(grape=3.0, iron=93.0), texts) == 2
    assert wide.digest != before
    assert plain.score(["grape", "iron"]).tolist() == [plain.prior] * 2
    assert wide.score(["grape"])[0] > 0.6
    assert wide.score(["iron"])[0] < 0.4
    assert wide.score(texts) == pytest.approx(plain.score(texts))
    assert wide.score(["unheard"]).tolist() == [wide.prior]
    assert wide.telling == plain.telling
    wide.save(tmp_path / "wide.npz")
    assert (
        load_relevance(tmp_path / "wide.npz").score(["grape", "iron"]).tolist()
        == wide.score(["grape", "iron"]).tolist()
    )


def test_vectors_that_add_nothing(texts: list[str]) -> None:
    """A model is unchanged if the vectors have no other words, or too few of its own."""
    model = fit(texts)
    digest = model.digest
    assert model.widen(vectors(), texts) == 0
    assert model.widen(Made({"grape": 1.0, "iron": 90.0}), texts) == 0
    assert model.digest == digest
