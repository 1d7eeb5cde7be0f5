"""The table of variants: misclassification rates as in the paper, of the predictions that a crawl acts on."""

from __future__ import annotations

import numpy as np
import pytest

from paper import Judged, _misclassified
from tests.made import fetch
from tests.policies.test_tagpath import article, dataset, started


class Truth:
    """The kinds of some URLs by the numbers in them; all others are pages."""

    def kind(self, url: str) -> str:
        number = int("".join(filter(str.isdigit, url)))
        return {2: "target", 3: "target", 4: "dead", 5: "other"}.get(number, "page")


@pytest.mark.parametrize(
    ("pages", "targets", "others", "rate"),
    [
        ([58.73, 1.69], [0.77, 32.73], [4.50, 1.58], 2.62),
        ([58.34, 2.08], [4.64, 28.87], [4.58, 1.49], 7.15),
    ],
    ids=["URL_ONLY-LR", "URL_CONT-NB"],
)
def test_the_rate_is_that_of_the_paper(
    pages: list[float], targets: list[float], others: list[float], rate: float
) -> None:
    """The released averages of confusion matrices give the column MR of Table 5: wrong ones among pages and targets."""
    assert round(_misclassified(np.array([pages, targets, others])), 2) == rate


def test_predictions_are_counted_when_links_are_found() -> None:
    """Seeds are not predicted; each other link is once, by its truth and by what the crawl does with it."""
    policy = Judged()
    policy.truth = Truth()
    crawl = started(policy)
    crawl.add([article(1)])
    fetch(crawl, dataset(2), article(3), dataset(4), article(5), dataset(6), article(7))
    assert policy.predictions.tolist() == [[1, 1], [1, 1], [1, 1]]
    assert policy.blocked == frozenset()


def test_links_classified_in_the_queue_are_counted() -> None:
    """A HEAD is no prediction; when the classifier is trained, those that still wait for one are predicted."""
    policy = Judged(batch=2)
    policy.truth = Truth()
    crawl = started(policy, trained=False)
    crawl.add([article(1)])
    fetch(crawl, article(7), dataset(6), dataset(2), article(5))
    assert policy.predictions.sum() == 0
    assert fetch(crawl).method == "HEAD"
    assert policy.predictor.ready
    assert policy.predictions.sum(axis=1).tolist() == [1, 1, 1]
