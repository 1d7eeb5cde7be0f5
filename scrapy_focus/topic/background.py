"""A bounded sample of the pages that a crawl has seen, as bags of words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from scrapy_focus.web.words import numbers_of, words_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Ints = NDArray[np.uint32]

_WORDS = 1_000  # different words of a page that are kept, the first ones


class Bag(NamedTuple):
    """The words of a text, without their order."""

    numbers: Ints  # of the words, ascending, each once
    damped: NDArray[np.float32]  # 1 + the logarithm of each word's count
    hits: float = 0.0  # how much of the keywords it has, from 0 to 1

    @classmethod
    def of(cls, text: str, hits: float = 0.0) -> Bag:
        """Return the words of a text."""
        numbers, first, counts = np.unique(numbers_of(words_of(text)), return_index=True, return_counts=True)
        if len(numbers) > _WORDS:
            kept = np.sort(np.argpartition(first, _WORDS)[:_WORDS])
            numbers, counts = numbers[kept], counts[kept]
        return cls(numbers, 1 + np.log(counts.astype(np.float32)), hits)


class Background:
    """A sample of pages, each kept with equal probability; it takes at most 8 kB for each kept page.

    Parameters
    ----------
    size
        Pages to keep.
    rng
        Chooses them.
    """

    def __init__(self, size: int, rng: np.random.Generator) -> None:
        self.size = size
        self.rng = rng
        self.seen = 0
        self.bags: list[Bag] = []

    def add(self, bag: Bag) -> None:
        """See one more page."""
        self.seen += 1
        if len(self.bags) < self.size:
            self.bags.append(bag)
        elif (at := int(self.rng.integers(self.seen))) < self.size:
            self.bags[at] = bag


class Words:
    """The words that some texts share, and the texts as vectors of them: TF-IDF, of length 1."""

    def __init__(self, bags: Sequence[Bag], *, least: int = 2) -> None:
        numbers, frequencies = np.unique(np.concatenate([bag.numbers for bag in bags]), return_counts=True)
        kept = frequencies >= least
        self.numbers: Ints = numbers[kept]
        self.idf = (np.log((1 + len(bags)) / (1 + frequencies[kept])) + 1).astype(np.float32)

    def matrix(self, bags: Sequence[Bag]) -> Any:
        """Return the texts, a sparse array of shape (len(bags), n_words)."""
        from scipy.sparse import csr_array

        owners = np.repeat(np.arange(len(bags)), [len(bag.numbers) for bag in bags])
        numbers = np.concatenate([bag.numbers for bag in bags])
        columns = np.searchsorted(self.numbers, numbers)
        known = columns < len(self.numbers)
        known[known] = self.numbers[columns[known]] == numbers[known]
        owners, columns = owners[known], columns[known]
        values = np.concatenate([bag.damped for bag in bags])[known].astype(np.float64) * self.idf[columns]
        lengths = np.sqrt(np.bincount(owners, values**2, len(bags)))
        return csr_array((values / lengths[owners], (owners, columns)), shape=(len(bags), len(self.numbers)))
