"""What a model is worth where its topic is rare."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from scrapy_focus import ConfigError
from scrapy_focus.learn.modelfile import read_model, write_model
from scrapy_focus.topic.models import load_relevance
from scrapy_focus.topic.relevance import LinearRelevance, log_odds
from scrapy_focus.topic.validation import expected
from tests.learn.topics import examples

if TYPE_CHECKING:
    from pathlib import Path


def test_precision_by_hand() -> None:
    """Of 1,000 pages 30 are on the topic: 27 are found, and a tenth of 970 with them, so 27 of 124 are right."""
    true = np.arange(20_000) < 10_000
    found = (np.arange(20_000) % 10 != 0) == true
    got = expected(found, true, 0.03)
    assert got.precision == pytest.approx(27 / (27 + 97), abs=0.001)
    assert got.recall == pytest.approx(0.9, abs=0.001)
    assert got.low < got.precision < got.high < got.low + 0.02, "many examples leave little open"


def test_no_error_among_few_is_not_perfect() -> None:
    """Where none of ten pages off the topic was misjudged, precision may be next to nothing; among 1,000 it is high."""
    few, many = (expected(true, true, 0.01) for true in (np.arange(20) < 10, np.arange(1010) < 10))
    assert few.precision < 0.25
    assert few.low < 0.06
    assert few.high > 0.7
    assert many.precision > 0.9


@pytest.mark.parametrize("n_off", [3, 30, 300])
def test_the_range_holds_the_truth(n_off: int) -> None:
    """In about nine of ten draws, the precision that a model has is in the range, and half as often above as below."""
    rng = np.random.default_rng(0)
    truth = 0.03 * 0.8 / (0.03 * 0.8 + 0.97 * 0.1)
    inside = []
    for _ in range(400):
        true = np.arange(2_000 + n_off) < 2_000
        found = rng.random(len(true)) < np.where(true, 0.8, 0.1)
        got = expected(found, true, 0.03)
        inside.append(got.low <= truth <= got.high)
    assert np.mean(inside) >= 0.85


def test_a_frequency_shifts_all_log_odds(tmp_path: Path) -> None:
    """By the same digest; a file keeps it, and a text without known words has it."""
    texts, labels = examples(20, 10)
    even, rare = (LinearRelevance(frequency=each).fit(texts, labels) for each in (None, 0.03))
    odds = [np.log(scores / (1 - scores)) for scores in (even.score(texts), rare.score(texts))]
    assert odds[1] - odds[0] == pytest.approx(log_odds(0.03) - log_odds(2 / 3), abs=0.3), "bias is damped by length"
    assert rare.score(["", "unheard"]).tolist() == [0.03, 0.03] == [rare.prior] * 2
    assert even.digest != rare.digest
    rare.save(tmp_path / "rare.npz")
    loaded = load_relevance(tmp_path / "rare.npz")
    assert isinstance(loaded, LinearRelevance)
    assert loaded.frequency == 0.03
    assert loaded.digest == rare.digest
    assert loaded.score(texts).tolist() == rare.score(texts).tolist()


def test_models_of_one_page_of_a_class_have_equal_classes() -> None:
    """Where there are too few examples to calibrate, training took both classes for equally frequent, and so does a shift."""
    texts, labels = examples(1, 8)
    even, half = (LinearRelevance(frequency=each).fit(texts, labels) for each in (None, 0.5))
    assert half.prior < 0.5
    assert half._bias == pytest.approx(even._bias)


def test_older_files_are_read(tmp_path: Path) -> None:
    """A file that says nothing of a frequency has a model without one."""
    LinearRelevance().fit(*examples(5, 5)).save(tmp_path / "model.npz")
    header, arrays = read_model(tmp_path / "model.npz")
    assert header["parameters"].keys() == {"max_words", "strength"}
    assert load_relevance(tmp_path / "model.npz").frequency is None  # type: ignore[attr-defined]
    header["parameters"]["frequency"] = 7
    write_model(tmp_path / "bad.npz", header, arrays)
    with pytest.raises(ConfigError, match="between 0 and 1"):
        load_relevance(tmp_path / "bad.npz")


@pytest.mark.parametrize("frequency", [0.0, 1.0, -1.0, float("nan")])
def test_what_is_no_share(frequency: float) -> None:
    """A frequency is between 0 and 1."""
    with pytest.raises(ConfigError, match="between 0 and 1"):
        LinearRelevance(frequency=frequency)
