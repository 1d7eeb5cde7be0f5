"""How well a model distinguishes pages on a topic from others, on examples that it was not trained on."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.extras import require_extra
from scrapy_focus.topic.relevance import check_classes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from scrapy_focus.core.mission import Topic

    Fit = Callable[[Sequence[str], Sequence[bool]], Topic]

CLASSES = ("on topic", "off topic")
MEASURES = ("precision", "recall", "F1")


class Validation(NamedTuple):
    """The results of cross-validation: ``measures`` has a row for each fold, class and measure, shape (n_folds, 2,
    3).

    The classes are in the order of ``CLASSES``, the measures in that of ``MEASURES``. ``scores`` are the
    probabilities of all examples, each by the model that was not trained on it, shape (n,).
    """

    measures: NDArray[np.float64]
    scores: NDArray[np.float64]

    @property
    def f_macro(self) -> NDArray[np.float64]:
        """The mean F1 of both classes, for each fold."""
        return np.asarray(self.measures[:, :, 2].mean(axis=1))


class Expected(NamedTuple):
    """The quality of a model if a share of the pages is on the topic.

    ``low`` and ``high`` are a 90 % interval of the precision, given the number of examples.
    """

    frequency: float
    precision: float
    low: float
    high: float
    recall: float


def expected(found: NDArray[np.bool_], true: NDArray[np.bool_], frequency: float) -> Expected:
    """Return the quality of a model at a frequency of the topic, from its results on examples, both shape (n,).

    The share of pages on the topic that are found, and that of the others, do not depend on how many there are of
    each; precision does. If no page off the topic was found, their share is still not zero: the rates are means under
    Jeffreys' prior, half a page more on either side.

    Examples
    --------
    >>> true = np.arange(100) < 50
    >>> found = (np.arange(100) < 45) | (np.arange(100) >= 95)
    >>> [round(each, 2) for each in expected(found, true, 0.03)]
    [0.03, 0.2, 0.13, 0.37, 0.89]
    """
    from scipy.special import betaincinv

    n_on, n_off = int(true.sum()), int((~true).sum())
    hits, misses = int((found & true).sum()), int((found & ~true).sum())
    rate = (hits + 0.5) / (n_on + 1)

    def precision(false_rate: float) -> float:
        return frequency * rate / (frequency * rate + (1 - frequency) * false_rate)

    low, high = (precision(float(betaincinv(misses + 0.5, n_off - misses + 0.5, share))) for share in (0.95, 0.05))
    return Expected(frequency, precision((misses + 0.5) / (n_off + 1)), low, high, rate)


def cross_validate(
    fit: Fit, texts: Sequence[str], labels: Sequence[bool], *, folds: int = 5, threshold: float = 0.5, seed: int = 42
) -> Validation:
    """Train on all folds but one, and test on that one, for each of them.

    Every fold has the same share of both classes, as nearly as can be.

    Raises
    ------
    ConfigError
        If there are fewer examples of a class than folds.
    """
    require_extra("measuring a model", "topic", "sklearn")
    from sklearn.model_selection import StratifiedKFold

    y = np.asarray(labels, bool)
    check_classes(y)
    fewest = int(min(y.sum(), (~y).sum()))
    if not 2 <= folds <= fewest:
        raise ConfigError(
            f"{folds} folds take as many examples of each class, and from 2; there are {fewest} of one class"
        )
    scores = np.zeros(len(y))
    measures = []
    for train, test in StratifiedKFold(folds, shuffle=True, random_state=seed).split(y, y):
        model = fit([texts[i] for i in train], y[train].tolist())
        scores[test] = model.score([texts[i] for i in test])
        found = scores[test] >= threshold
        measures.append([measure(found, y[test]), measure(~found, ~y[test])])
    return Validation(np.array(measures), scores)


def measure(found: NDArray[np.bool_], true: NDArray[np.bool_]) -> tuple[float, float, float]:
    """Return precision, recall and F1 of results on examples, both shape (n,); 0 if there are none."""
    right = float((found & true).sum())
    precision = right / max(1, int(found.sum()))
    recall = right / max(1, int(true.sum()))
    return precision, recall, 2 * right / max(1, int(found.sum() + true.sum()))
