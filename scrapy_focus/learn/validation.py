"""How well a model tells pages on a topic from others, on examples that it was not trained on."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.learn.relevance import check_classes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from scrapy_focus.core.mission import Topic

    Fit = Callable[[Sequence[str], Sequence[bool]], Topic]

CLASSES = ("on topic", "off topic")
MEASURES = ("precision", "recall", "F1")


class Validation(NamedTuple):
    """What cross-validation found: ``measures`` has a row for each fold, class and measure, shape (n_folds, 2, 3).

    The classes are in the order of ``CLASSES``, the measures in that of ``MEASURES``. ``scores`` are the probabilities
    of all examples, each by the model that was not trained on it, shape (n,).
    """

    measures: NDArray[np.float64]
    scores: NDArray[np.float64]

    @property
    def f_macro(self) -> NDArray[np.float64]:
        """The mean F1 of both classes, for each fold."""
        return np.asarray(self.measures[:, :, 2].mean(axis=1))


def cross_validate(
    fit: Fit, texts: Sequence[str], labels: Sequence[bool], *, folds: int = 5, threshold: float = 0.5, seed: int = 42
) -> Validation:
    """Train on all folds but one, and judge that one, for each of them.

    Every fold has the same share of both classes, as nearly as can be.

    Raises
    ------
    ConfigError
        If there are fewer examples of a class than folds.
    """
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
    """Return precision, recall and F1 of what was found among examples, both shape (n,); 0 where nothing was or is
    there.
    """
    right = float((found & true).sum())
    precision = right / max(1, int(found.sum()))
    recall = right / max(1, int(true.sum()))
    return precision, recall, 2 * right / max(1, int(found.sum() + true.sum()))
