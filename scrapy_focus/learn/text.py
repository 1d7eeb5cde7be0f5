"""Text as sparse vectors: character pairs, and n-grams of tokens in a growing vocabulary."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

N_PAIRS = 95 * 95

_FIRST, _LAST = 32, 126

_TEXTS = 1 << 15  # sequences whose n-grams are cached, and their characters in all
_CHARACTERS = 1 << 22


def char_pairs(text: str, *, case_sensitive: bool = False) -> NDArray[np.intp]:
    """Return the index of each pair of neighbouring characters of a text, in order, shape (n_pairs,).

    Characters are those from space to tilde, 95 of them; pairs with others are skipped. Indexes are below
    ``N_PAIRS``. The text is read in lower case, unless ``case_sensitive``.

    Examples
    --------
    >>> char_pairs("aB").tolist() == [(ord("a") - 32) * 95 + ord("b") - 32]
    True
    """
    read = text if case_sensitive else text.lower()
    letters = np.frombuffer(read.encode("utf-8", "surrogatepass"), np.uint8)
    codes: NDArray[np.intp] = letters.astype(np.intp) - _FIRST
    pairs: NDArray[np.intp] = codes[:-1] * (_LAST - _FIRST + 1) + codes[1:]
    printable = (codes >= 0) & (codes <= _LAST - _FIRST)
    return pairs if printable.all() else pairs[printable[:-1] & printable[1:]]


class GramProjector:
    """Turns sequences of tokens into vectors of fixed length, while their vocabulary grows.

    The frequencies of the n-grams of a sequence are at positions of a vocabulary in the order of first sight. A
    position ``x`` is hashed into bucket ``((x * a) mod 2**w) // 2**(w - m)``, and the value of a bucket is the mean
    over all positions of the vocabulary that hash to it.

    Parameters
    ----------
    n
        Length of the n-grams, in tokens.
    m
        The vectors have ``2**m`` dimensions.
    w
        Positions are hashed modulo ``2**w``.
    max_grams
        Size of the vocabulary above which new n-grams share the positions of old ones. The default is twice the
        number of different positions modulo ``2**15``: there sixteen n-grams share each bucket already.

    Notes
    -----
    *Memory*: an n-gram is known by eight bytes of its hash, however long it is, and takes about 100 bytes: 7 MB with
    65,536. None is ever forgotten, so an n-gram keeps its position. A new one that finds the vocabulary full gets a
    position from its hash, always the same, and no vector changes from then on: it is feature hashing. The n-grams of
    32,768 sequences, of 4 million characters at most, are cached (about 20 MB); then the cache is emptied and filled
    again. It is not pickled; the vocabulary takes 8 bytes for each n-gram there.

    References
    ----------
    Gauquier, Manolescu, Senellart: Efficient Crawling for Scalable Web Data Acquisition (2026), section 3.
    """

    MULTIPLIER = 766_245_317

    def __init__(self, *, n: int = 2, m: int = 12, w: int = 15, max_grams: int = 1 << 16) -> None:
        self.n = n
        self.m = m
        self.w = w
        self.max_grams = max_grams
        self._vocabulary: dict[int, int] = {}  # the hash of an n-gram -> its position, in the order of positions
        self._sizes = np.zeros(1 << m, np.int64)
        self._memo: dict[str, tuple[NDArray[np.intp], NDArray[np.float32]]] = {}
        self._remembered = 0  # characters of all texts in _memo

    def project(self, text: str, tokens: Sequence[str]) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
        """Return the buckets and the values of a sequence, shapes (n_buckets,), buckets distinct and ascending.

        ``text`` identifies the sequence: its split is cached.
        """
        found = self._memo.get(text)
        if found is None:
            if len(self._memo) >= _TEXTS or self._remembered + len(text) > _CHARACTERS:
                self._memo.clear()
                self._remembered = 0
            found = self._memo[text] = self._count(tokens)
            self._remembered += len(text)
        buckets, frequencies = found
        return buckets, (frequencies / self._sizes[buckets]).astype(np.float32)

    def _count(self, tokens: Sequence[str]) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
        padded = ["[SOS]", *tokens, "[EOS]"]
        grams = ["/".join(padded[i : i + self.n]) for i in range(max(1, len(padded) - self.n + 1))]
        sums: dict[int, float] = {}
        for gram in grams:
            bucket = self._bucket(gram)
            sums[bucket] = sums.get(bucket, 0.0) + 1 / len(grams)
        buckets = sorted(sums)
        return np.array(buckets, np.intp), np.array([sums[bucket] for bucket in buckets], np.float32)

    def __getstate__(self) -> dict[str, Any]:
        grams = np.fromiter(self._vocabulary, np.uint64, len(self._vocabulary))
        return {**self.__dict__, "_vocabulary": grams, "_memo": {}, "_remembered": 0}

    def __setstate__(self, state: dict[str, Any]) -> None:
        grams = state["_vocabulary"].tolist()
        self.__dict__.update(state, _vocabulary=dict(zip(grams, range(len(grams)), strict=True)))

    def _bucket(self, gram: str) -> int:
        digest = int.from_bytes(blake2b(gram.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
        position = self._vocabulary.get(digest)
        fresh = position is None and len(self._vocabulary) < self.max_grams
        if position is None:
            position = len(self._vocabulary) if fresh else digest % self.max_grams
        if fresh:
            self._vocabulary[digest] = position
        bucket = ((position * self.MULTIPLIER) % (1 << self.w)) >> (self.w - self.m)
        if fresh:
            self._sizes[bucket] += 1
        return bucket
