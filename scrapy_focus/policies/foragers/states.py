"""The topic of a text as a few numbers: its similarity to each of the groups of texts that were seen first.

A policy that learns by linear functions needs states: vectors of one length with small elements, the same for the
same text. The topics of a crawl are not known beforehand, so its first texts are grouped without labels, and the
groups stay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from scrapy_focus.core.extras import require_extra
from scrapy_focus.web.words import numbers_of, words_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

N_WORDS = 1 << 14  # numbers that words are hashed to; two bytes hold one

_READ = 20_000  # characters of a text that are read
_DIMENSIONS = 50  # rounds of the grouping of texts
_MOST = (1 << 16) - 1  # times that a word counts
_READ_OF_A_LINK = 400
_LIKE = 0.5  # how similar pages are to those that link to them
_WORTH = 30  # words of a link that say as much about its page as the page with the link
_NEAR = 0.999  # of 1 and -1, beyond which states are not distinguished
_PATIENCE = 10  # multiple of the sample, in texts with or without words, after which it is complete
_EQUAL = 1e-6  # deviation below which an output is the same for all texts


class TextStates:
    """Turns texts into vectors of k numbers between -1 and 1; all are 0 until a sample of texts was seen.

    Then the sample is divided into k groups, by splitting one group in two at a time. For a text, the probability of
    each group is that of naive Bayes for one of its words drawn at random (PrTFIDF). From each probability the mean
    over the sample is subtracted; the result is divided by its deviation, and squashed by the hyperbolic tangent.

    Parameters
    ----------
    k
        Length of the vectors. If the sample has fewer different texts, the last elements stay 0.
    sample
        Texts with words that are seen before the groups are made, once. After ten times as many texts, most of them
        without words, the groups are made of those seen.
    seed
        Seed of the random choices when the groups are made.
    centred
        Whether the mean is subtracted and the result divided by the deviation. Otherwise each number is the hyperbolic
        tangent of the probability, from 0 to 0.76.

    Attributes
    ----------
    version
        0 until the groups are made, then 1. Vectors of an earlier version are no longer valid.

    Notes
    -----
    Words are those of any language and script, each known by 14 bits of a hash; the first 20,000 characters of a text
    are read. *Time*: a quarter of a millisecond for 500 words, and once a tenth of a second for the groups. *Memory*:
    4 bytes for each hash and group, 3 MB with 50 groups. Hashes and counts of the sample are kept until the groups
    are made.

    As published, states of pages are PrTFIDF of 50 groups of pages from elsewhere, made by principal direction
    divisive partitioning, and of general text, squashed by the hyperbolic tangent, which leaves small numbers
    above 0. The groups here are of the crawl itself, made by bisecting k-means. General text here has all words
    equally often. With the word frequencies of the sample it would only divide all outputs by one number.

    References
    ----------
    Joachims: A Probabilistic Analysis of the Rocchio Algorithm with TFIDF for Text Categorization. ICML (1997).
    Palotai, Farkas, Lorincz: Selection in scale-free small world (2005).

    Examples
    --------
    >>> states = TextStates(k=2, sample=4)
    >>> for text in ("red wine", "white wine", "the price of steel", "the steel of rails"):
    ...     _ = states.state_of(text)
    >>> old, dry, steel = (states.state_of(text) for text in ("old wine", "dry red", "steel beams"))
    >>> bool(old @ dry > 0 > old @ steel), states.version
    (True, 1)
    """

    def __init__(self, *, k: int = 50, sample: int = 300, seed: int = 0, centred: bool = True) -> None:
        if k < 1 or sample < 1:
            raise ValueError(f"k={k!r}, sample={sample!r}; both are whole numbers from 1")
        require_extra("this mode of Foragers", "topic", "sklearn")
        import sklearn.cluster
        import sklearn.decomposition
        import sklearn.feature_extraction  # noqa: F401 (half a second, that no page of a crawl shall wait)

        self.k = k
        self.sample = sample
        self.seed = seed
        self.centred = centred
        self.version = 0
        self._asked: list[int] = []  # of each text until the groups were made, its place in the sample; -1: no words
        self._seen = 0  # texts with words
        self._sample: list[tuple[NDArray[np.uint16], NDArray[np.uint16]]] = []  # words and counts, no words twice
        self._places: dict[bytes, int] = {}  # in the sample, by words
        self._groups = np.zeros((0, k), np.float32)  # P(group | word), shape (2**14, k) when they were made
        self._mean = np.zeros(k, np.float32)  # over the sample
        self._scale = np.zeros(k, np.float32)  # 1 / deviation; 0 where all texts are alike
        self._sampled = np.zeros((0, k), np.float32)
        self._link_sums = np.zeros(k)  # of outputs of the texts of links, for each of their words
        self._link_words = 0
        self._page_sums = np.zeros(k)  # of states before they are squashed; 0 over the sample where these are centred
        self._pages = sample

    def state_of(self, text: str) -> NDArray[np.float32]:
        """Return the state of a text, shape (k,), each number from -1 to 1; zeros if unknown.

        Until the groups are made, the text is one of the sample.
        """
        words, counts = _counted(text)
        if not self.version:
            self._see(words, counts)
            return np.zeros(self.k, np.float32)
        if not len(words):
            return np.zeros(self.k, np.float32)
        state: NDArray[np.float32] = np.tanh((self._outputs(words, counts) - self._mean) * self._scale)
        self._page_sums = self._page_sums + _stretched(state)
        self._pages += 1
        return state

    def sampled(self) -> NDArray[np.float32]:
        """Return the states of all texts that had zeros because there were no groups, in their order, shape (n, k).

        Texts with the same words, each any number of times, have the state of the first one. Call it once, when the
        groups were made; afterwards there are none.
        """
        found, self._sampled = self._sampled, self._sampled[:0]
        return found

    def predict(self, parent: NDArray[np.float32], texts: Sequence[str]) -> NDArray[np.float32]:
        """Predict the states of pages that were not read, shape (n, k), from the data of their links.

        ``parent`` is the state of the page with the links, shape (k,); a text has the words of a link and those of
        its URL. Before the groups are made, all are 0.

        The prediction starts from the mean of all texts so far. To it is added half of the parent's difference from
        that mean, and the difference of the link's words from those of other links, because links use other words
        than pages. The more words, the less the parent counts: with 30, both count the same.
        """
        if not self.version:
            return np.zeros((len(texts), self.k), np.float32)
        lists = [words_of(text[:_READ_OF_A_LINK]) for text in texts]
        numbers = numbers_of([word for words in lists for word in words]) % N_WORDS
        outputs = self._groups[numbers]
        known = outputs.any(axis=1)
        of = np.repeat(np.arange(len(lists)), [len(words) for words in lists])[known]
        n_words = np.bincount(of, minlength=len(lists))
        ends = np.cumsum(n_words)
        sums = np.concatenate([np.zeros((1, self.k)), np.cumsum(outputs[known], axis=0, dtype=np.float64)])
        own = (sums[ends] - sums[ends - n_words] - n_words[:, None] * self._mean) * self._scale
        self._link_sums = self._link_sums + own.sum(axis=0)
        self._link_words += int(ends[-1]) if len(ends) else 0
        own -= n_words[:, None] * (self._link_sums / max(self._link_words, 1))
        usual = self._page_sums / self._pages
        inherited = _LIKE * (_stretched(parent) - usual)
        states: NDArray[np.float64] = np.tanh(usual + (_WORTH * inherited + own) / (_WORTH + n_words[:, None]))
        return states.astype(np.float32)

    def _see(self, words: NDArray[np.uint16], counts: NDArray[np.uint16]) -> None:
        place = self._places.setdefault(words.tobytes(), len(self._places)) if len(words) else -1
        self._asked.append(place)
        if place == len(self._sample):
            self._sample.append((words, counts))
        self._seen += place >= 0
        if self._seen >= self.sample or len(self._asked) >= _PATIENCE * self.sample:
            self._fit(self._sample)
            self._sample, self._places, self._asked = [], {}, []
            self.version += 1

    def _fit(self, texts: list[tuple[NDArray[np.uint16], NDArray[np.uint16]]]) -> None:
        group_of = self._divide(texts)
        sums = np.zeros((N_WORDS, self.k))
        for (words, counts), group in zip(texts, group_of.tolist(), strict=True):
            sums[words, group] += counts / counts.sum()
        general = len(texts) / N_WORDS
        self._groups = (sums / np.maximum(sums.sum(axis=1, keepdims=True) + general, _EQUAL)).astype(np.float32)
        outputs = np.array([self._outputs(*each) for each in texts] or np.zeros((1, self.k), np.float32))
        if self.centred:
            deviation = outputs.std(axis=0)
            self._mean = outputs.mean(axis=0)
            self._scale = np.where(deviation > _EQUAL, 1 / np.maximum(deviation, _EQUAL), 0).astype(np.float32)
        else:
            self._scale = np.ones(self.k, np.float32)
            self._page_sums = self.sample * outputs.mean(axis=0, dtype=np.float64)
        states = np.tanh((outputs - self._mean) * self._scale)
        self._sampled = np.concatenate([states, np.zeros((1, self.k), np.float32)])[self._asked]  # -1 is the last

    def _divide(self, texts: list[tuple[NDArray[np.uint16], NDArray[np.uint16]]]) -> NDArray[np.intp]:
        """Return the group of each text, shape (n_texts,)."""
        from scipy.sparse import csr_matrix
        from sklearn.cluster import BisectingKMeans
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfTransformer

        n_groups = min(self.k, len(texts))
        if n_groups < 2:
            return np.zeros(len(texts), np.intp)
        ends = np.cumsum([0, *(len(words) for words, _ in texts)])
        counts = np.concatenate([counts for _, counts in texts]).astype(np.float32)
        x = csr_matrix((counts, np.concatenate([words for words, _ in texts]), ends), (len(texts), N_WORDS))
        weighted = TfidfTransformer(sublinear_tf=True).fit_transform(x)
        svd = TruncatedSVD(min(_DIMENSIONS, len(texts)), n_iter=2, random_state=self.seed)
        found: NDArray[np.intp] = BisectingKMeans(n_groups, random_state=self.seed).fit_predict(
            svd.fit_transform(weighted)
        )
        return found

    def _outputs(self, words: NDArray[np.uint16], counts: NDArray[np.uint16]) -> NDArray[np.float32]:
        """Return how probable each group is, shape (k,)."""
        shares = counts.astype(np.float32)
        found: NDArray[np.float32] = (shares / shares.sum()) @ self._groups[words]
        return found

    def __getstate__(self) -> dict[str, Any]:
        where = np.flatnonzero(self._groups).astype(np.uint32)
        return {**self.__dict__, "_groups": (self._groups.shape, where, self._groups.ravel()[where])}

    def __setstate__(self, state: dict[str, Any]) -> None:
        TextStates.__init__(self, k=state["k"], sample=state["sample"], seed=state["seed"])
        shape, where, values = state["_groups"]
        groups = np.zeros(shape, np.float32)
        groups.ravel()[where] = values
        self.__dict__.update(state, _groups=groups)


def _stretched(states: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return states as they were before they were squashed."""
    found: NDArray[np.float64] = np.arctanh(np.clip(states.astype(np.float64), -_NEAR, _NEAR))
    return found


def _counted(text: str) -> tuple[NDArray[np.uint16], NDArray[np.uint16]]:
    """Return the words of a text as numbers, ascending, with their counts."""
    numbers = numbers_of(words_of(text[:_READ])) % N_WORDS
    words, counts = np.unique(numbers, return_counts=True)
    return words.astype(np.uint16), np.minimum(counts, _MOST).astype(np.uint16)
