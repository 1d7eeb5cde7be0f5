"""A topic that learns, as small as can be: what tests of crawls with one share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from scrapy_focus.web.words import words_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


class Growing:
    """A text is on the topic if it has one of its words; and a page that is teaches all words that are on it.

    It says that it drifts once it has more words than ``most``.
    """

    def __init__(self, *words: str, most: int = 1000) -> None:
        self.digest = f"growing {' '.join(words)} {most}"
        self.most = most
        self.words = set(words)
        self.refits = 0
        self.seen = 0
        self.relevant = 0
        self.asked = 0  # texts that were scored

    @property
    def frequency(self) -> float | None:
        return self.relevant / self.seen if self.seen else None

    @property
    def alarm(self) -> str:
        return "the topic drifts: too many words" if len(self.words) > self.most else ""

    def score(self, texts: Sequence[str]) -> NDArray[np.float64]:
        self.asked += len(texts)
        return np.array([0.9 if self.words.intersection(words_of(text)) else 0.1 for text in texts])

    def see(self, text: str, host: str = "") -> None:
        self.seen += 1
        if self.words.intersection(words := words_of(text)):
            self.relevant += 1
            self.refits += not self.words.issuperset(words)
            self.words.update(words)

    def state(self) -> dict[str, Any]:
        return {"words": sorted(self.words), "counts": np.array([self.refits, self.seen, self.relevant])}

    def restore(self, state: Any) -> None:
        self.words = set(state["words"])
        self.refits, self.seen, self.relevant = (int(count) for count in state["counts"])
