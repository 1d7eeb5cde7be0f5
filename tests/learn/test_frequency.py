"""How frequent a topic is among pages, by their scores."""

from __future__ import annotations

import numpy as np
import pytest

from scrapy_focus.topic.frequency import ON, UNKNOWN, believed, mixture


def scores(share: float, *, n: int = 400, apart: float = 4.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return scores of ten examples, and of pages with such a share on the topic."""
    rng = np.random.default_rng(seed)
    n_on = round(n * share)
    return rng.normal(apart, 1, 10), np.concatenate([rng.normal(apart, 1, n_on), rng.normal(0, 1, n - n_on)])


@pytest.mark.parametrize("share", [0.03, 0.1, 0.4])
def test_both_estimates_are_near_the_truth_where_kinds_are_apart(share: float) -> None:
    """In the mean of twenty webs what is believed is within a third of the truth, and the lower end is below it."""
    found = []
    for seed in range(20):
        on, unknown = scores(share, seed=seed)
        labels = np.repeat([ON, UNKNOWN], [len(on), len(unknown)]).astype(np.int8)
        found.append(believed(on, unknown, mixture(np.concatenate([on, unknown]), labels).frequency))
    estimates, low = np.mean(found, axis=0)
    assert estimates == pytest.approx(share, rel=1 / 3)
    assert low < estimates


def test_an_estimate_that_ran_away_is_not_believed() -> None:
    """Where a mixture says one half, and one page in thirty scores as examples do, less than a sixth is believed.

    It is not believed altogether to be wrong: a part of it is kept.
    """
    on, unknown = scores(0.03)
    share, low = believed(on, unknown, 0.5)
    assert low < share <= 0.15 + 1e-9


def test_the_higher_estimate_is_taken_where_pages_differ() -> None:
    """Where many pages score as examples do, and a mixture says few, many are believed, if that is asked for."""
    on, unknown = scores(0.4)
    assert believed(on, unknown, 0.05)[0] == 0.05
    assert believed(on, unknown, 0.05, at_most=False)[1] > 0.25
