"""Word vectors: read from a file, or trained on texts. Both need the package gensim."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.extras import require_extra
from scrapy_focus.web.words import words_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from os import PathLike

    from numpy.typing import NDArray

_KINDS = (
    "NOUN",
    "ADV",
    "PROPN",
    "VERB",
    "ADJ",
)  # parts of speech that some files add to their words, in this order
_TRAINED = 20_000_000  # words that training processes in all, if the text is too short for one pass
_LINE = 1 << 20  # bytes of the longest line that a text file of vectors may have


class Vectors(Protocol):
    """Word vectors: the used part of gensim's ``KeyedVectors``."""

    key_to_index: dict[str, int]

    def __getitem__(self, key: str) -> NDArray[np.float32]:
        """Return the vector of a known word, shape (d,)."""


def entry_of(word: str, vectors: Vectors) -> str:
    """Return the name of a word's entry: itself, or with its part of speech (``wine_NOUN``); ``""`` for none."""
    names = (word, *(f"{word}_{kind}" for kind in _KINDS))
    return next((name for name in names if name in vectors.key_to_index), "")


def load_vectors(path: str | PathLike[str]) -> Any:
    """Return the word vectors in a file, gensim's ``KeyedVectors``.

    It may be of word2vec (text or binary), of GloVe, one of these compressed with gzip, or gensim's own. The last is
    a pickle: reading it runs its code, so use only files from people you trust.

    Raises
    ------
    ConfigError
        If the file cannot be read, or gensim is not installed.
    """
    models = _gensim()
    name = str(path)
    try:
        kind = _kind_of(Path(path))
        if kind == "gensim":
            found = models.KeyedVectors.load(name)
            return getattr(found, "wv", found)
        found = models.KeyedVectors.load_word2vec_format(
            name, binary=kind == "binary", no_header=kind == "headless", unicode_errors="replace"
        )
        if found.vector_size < 1:
            raise ValueError("words without numbers")
        return found
    except FileNotFoundError as error:
        raise ConfigError(f"there is no file {path} with word vectors") from error
    except Exception as error:  # any exception of a parser for an invalid file
        raise ConfigError(
            f"{path} has no word vectors that can be read ({type(error).__name__}: {error}); it takes a file of "
            "word2vec, text or binary, of GloVe, or of gensim"
        ) from error


def train_vectors(texts: Iterable[str], *, width: int = 100, seed: int = 42) -> Any:
    """Return word vectors that are trained on some texts, gensim's ``KeyedVectors``; the same texts give the same
    vectors.

    Words that occur fewer than five times have none. It takes thousands of pages to make good ones. The time is that
    of 20 million words, about a minute, or of five times the texts if that is more.

    Raises
    ------
    ConfigError
        If there are too few words, or gensim is not installed.
    """
    models = _gensim()
    sentences = [words_of(text) for text in texts]
    total = sum(map(len, sentences))
    try:
        model = models.Word2Vec(
            sentences, vector_size=width, min_count=5, workers=1, seed=seed, sg=1,
            epochs=max(5, min(50, _TRAINED // max(1, total))),
        )  # fmt: skip
    except RuntimeError as error:
        raise ConfigError(
            f"the texts have {total:,} words, none of them five times; give more of them, or a file of vectors"
        ) from error
    return model.wv


def _kind_of(path: Path) -> str:
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    with gzip.open(path) if packed else path.open("rb") as file:
        first, second = file.readline(_LINE), file.readline(_LINE)
    if first.startswith(b"\x80"):
        return "gensim"
    head = first.split()
    if len(head) != 2:
        return "headless"
    try:
        is_text = len(second.decode("utf-8", "replace").split()) == int(head[1]) + 1 and np.isfinite(
            float(second.split()[-1])
        )
    except ValueError:
        is_text = False
    return "text" if is_text else "binary"


def _gensim() -> Any:
    require_extra("reading word vectors", "topic", "gensim")
    from gensim import models

    return models
