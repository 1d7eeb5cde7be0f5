"""Embeddings of texts by a table of vectors: that of a text is the mean of those of its tokens.

Nothing is ever downloaded: a table is a part of an installed package, or a file that the user names.
"""

from __future__ import annotations

import json
import os
import re
from abc import ABC, abstractmethod
from functools import cache
from hashlib import blake2b
from importlib import import_module
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.extras import require_extra
from scrapy_focus.learn.vectors import entry_of, load_vectors
from scrapy_focus.web.words import words_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from os import PathLike

    from numpy.typing import NDArray

_LONGEST = 4_000  # characters of a text that are read, from its beginning
_AT_ONCE = 4_000  # characters whose tokens are averaged at once: their vectors take about two megabytes
_COMMON = 1e-3  # share of all words: the vector of a word with that share counts for half of a rare one's
_SAMPLED = 32 << 20  # bytes of a table that its digest is computed from; of a larger one, evenly spaced rows
_HEADER = 100 << 20  # bytes: the largest header that the safetensors format allows
_TYPES = {"F16": "<f2", "F32": "<f4", "F64": "<f8", "I8": "|i1", "I32": "<i4", "I64": "<i8"}  # its names, NumPy's
_BYTE = re.compile(r"<0x[0-9A-Fa-f]{2}>")  # token for one byte of a character that has no token of its own
_IMPORT_PATH = re.compile(r"[^\W\d]\w*(?:\.\w+)*(?::\w+(?:\.\w+)*|\.\w+)")
#: Where the folder of an embedding has its table: in Model2Vec's format, and within one of sentence-transformers.
_PLACES = ("", "0_StaticEmbedding")
_TABLES = ("embeddings", "embedding.weight")  # names of the table in its file
_EXPECTED = (
    "give a folder in Model2Vec's format, a file of word vectors, or the import path of an object with a method embed "
    "or encode"
)


class Embedding(Protocol):
    """Turns texts into vectors, such that texts with similar meanings have vectors with a large cosine."""

    @property
    def digest(self) -> str:
        """What identifies it: equal only if the same texts have the same vectors."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of some texts, shape (n, d), of any length; zeros for a text without a known word."""


def load_embedding(source: str | PathLike[str] = "") -> Embedding:
    """Return an embedding. It is loaded once per process, and a pickle of it holds its source and digest only.

    Of each text, the first 4,000 characters are read.

    Parameters
    ----------
    source
        * ``""``: the table of the package wordllama, which the extra ``about`` installs: English, 256 numbers a vector.
        * A folder in Model2Vec's format, or with a ``StaticEmbedding`` of sentence-transformers. One within an
          installed package may be named with dots: ``package.folder``. The package is not imported.
        * A file of word vectors, as :func:`~scrapy_focus.learn.vectors.load_vectors` reads it.
        * The import path of an object, ``package.module:name`` or ``package.module.name``, or of a class or function
          that returns one without arguments. It has a method ``embed``, or ``encode`` as those of
          sentence-transformers. If it has an attribute ``digest``, that identifies it, otherwise its import path does.

    Raises
    ------
    ConfigError
        If there is no such source, if it cannot be read, or if a package that it needs is not installed.
    """
    name = os.fspath(source)
    path = Path(name).expanduser() if name else None
    return _load(str(path.absolute()) if path is not None and path.exists() else name)


@cache
def _load(source: str) -> _Loaded:
    if not source:
        return _default()
    path = Path(source)
    if path.is_dir():
        return _folder(path, source)
    if path.suffix in (".safetensors", ".json") and path.is_file():
        raise ConfigError(f"{source} is one file of an embedding; give its folder")
    if path.is_file():
        return _WordTable(source, load_vectors(path))
    if _IMPORT_PATH.fullmatch(source):
        packaged = _packaged(source)
        return _folder(packaged, source) if packaged else _imported(source)
    raise ConfigError(f"there is no embedding {source!r:.200}; {_EXPECTED}")


class _Loaded(ABC):
    """An embedding that a pickle names by its source. The pickles of jobs refuse it, since loading may run code."""

    def __init__(self, source: str, digest: str) -> None:
        self.source = source
        self.digest = digest

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.source, self.digest)

    @abstractmethod
    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of some texts, shape (n, d)."""


def _restored(source: str, digest: str) -> _Loaded:
    found = _load(source)
    if found.digest != digest:
        raise ConfigError(f"the embedding {source or 'of wordllama'} is not the one that was stored: its table changed")
    return found


class _Files(NamedTuple):
    """The two files that make up a table of tokens."""

    table: Path
    tokenizer: Path


def _default() -> _Loaded:
    require_extra("the default embedding", "about", "wordllama", "tokenizers")
    spec = find_spec("wordllama")  # not imported: that takes a second, and configures the root logger
    for place in (spec and spec.submodule_search_locations) or ():
        folder = Path(place)
        files = _Files(
            folder / "weights" / "l2_supercat_256.safetensors",
            folder / "tokenizers" / "l2_supercat_tokenizer_config.json",
        )
        if all(file.is_file() for file in files):
            return _TokenTable("", files)
    raise ConfigError("the installed wordllama has no table l2_supercat_256; install version 0.4, or name an embedding")


def _folder(folder: Path, source: str) -> _Loaded:
    require_extra("reading an embedding", "about", "tokenizers")
    for place in _PLACES:
        files = _Files(folder / place / "model.safetensors", folder / place / "tokenizer.json")
        if all(file.is_file() for file in files):
            return _TokenTable(source, files)
    raise ConfigError(
        f"{folder} has no embedding: it needs model.safetensors and tokenizer.json, as Model2Vec saves them"
    )


def _packaged(source: str) -> Path | None:
    """Return the folder of an installed package that a name with dots stands for, ``None`` if there is none."""
    package, *folders = source.split(".")
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        return None
    for place in (spec and spec.submodule_search_locations) or ():
        folder = Path(place, *folders)
        if any((folder / within / "model.safetensors").is_file() for within in _PLACES):
            return folder
    return None


def _imported(source: str) -> _Loaded:
    module, _, name = source.partition(":") if ":" in source else source.rpartition(".")
    try:
        found: Any = import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
        if isinstance(found, type) or not _method_of(found):
            found = found()
    except Exception as error:  # whatever foreign code raises
        raise ConfigError(f"the embedding {source} cannot be imported ({_said(error)}); {_EXPECTED}") from error
    return _Custom(source, found)


def _said(error: Exception) -> str:
    """Return an exception of foreign code in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _method_of(model: object) -> Callable[[list[str]], Any] | None:
    """Return the method that embeds texts."""
    found = getattr(model, "embed", None) or getattr(model, "encode", None)
    return found if callable(found) else None


class _Custom(_Loaded):
    """An object of the user, or a model of sentence-transformers or Model2Vec."""

    def __init__(self, source: str, model: object) -> None:
        method = _method_of(model)
        if method is None:
            raise ConfigError(f"{source} is a {type(model).__name__} without a method embed or encode; {_EXPECTED}")
        self._method = method
        try:
            self._width = self._rows(["text"]).shape[1]
        except Exception as error:  # whatever foreign code raises
            raise ConfigError(
                f"the embedding {source} does not embed a text ({_said(error)}); it takes a list of n texts, and "
                "returns an array of shape (n, d)"
            ) from error
        digest = getattr(model, "digest", None)
        if not isinstance(digest, str) or not digest:
            digest = _hexadecimal(source.encode(), str(self._width).encode())
        super().__init__(source, digest)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._rows([text[:_LONGEST] for text in texts]) if texts else np.zeros((0, self._width), np.float32)

    def _rows(self, texts: list[str]) -> NDArray[np.float32]:
        found = np.asarray(self._method(texts), np.float32)
        if found.ndim != 2 or len(found) != len(texts) or not found.shape[1]:
            raise ValueError(f"it returned shape {found.shape} for {len(texts):,} texts")
        return _finite(found)


class _Table(_Loaded):
    """A table of vectors, and what finds the rows of a text in it."""

    def __init__(self, source: str, digest: str, table: NDArray[Any]) -> None:
        super().__init__(source, digest)
        self._table = table

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        found = np.zeros((len(texts), self._table.shape[1]), np.float32)
        start = 0
        for batch in _batches(texts):
            self._add_means(batch, found[start : start + len(batch)])
            start += len(batch)
        return _finite(found)

    def _add_means(self, texts: list[str], found: NDArray[np.float32]) -> None:
        """Write the means of some texts to rows of zeros."""
        ids, sizes = self._ids(texts)
        rows = self._rows_of(ids)
        known = rows >= 0
        counts = np.bincount(np.repeat(np.arange(len(texts)), sizes)[known], minlength=len(texts))
        if not known.any():
            return
        vectors = self._table[rows[known]].astype(np.float32)
        weights = self._weights_of(ids[known])
        if weights is not None:
            vectors *= weights[:, np.newaxis]
        some = counts > 0
        sums = np.add.reduceat(vectors, (np.cumsum(counts) - counts)[some], axis=0)
        found[some] = sums / counts[some, np.newaxis].astype(np.float32)

    @abstractmethod
    def _ids(self, texts: list[str]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the tokens of all texts, and how many each has."""

    def _rows_of(self, ids: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the rows of some tokens, -1 for unknown ones."""
        return ids

    def _weights_of(self, ids: NDArray[np.intp]) -> NDArray[np.float32] | None:
        """Return the weights of known tokens, ``None`` if all are 1."""
        return None


class _TokenTable(_Table):
    """A table with a tokenizer. Special tokens, single bytes, blanks and punctuation count as unknown."""

    def __init__(self, source: str, files: _Files) -> None:
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # its threads don't survive a fork
        try:
            digest = _digest_of(files)
            self._tokenizer = _tokenizer_of(files.tokenizer)
            arrays = _read_arrays(files.table)
            table = _table_of(arrays)
            self._rows = _rows_by_token(self._tokenizer, len(table), arrays.get("mapping"))
            self._weights = _weights_by_token(len(self._rows), arrays.get("weights"))
        except OSError as error:
            raise ConfigError(f"the embedding {source or files.table} cannot be read: {error.strerror}") from error
        except Exception as error:  # tokenizers raises a plain Exception for invalid files
            where = source or files.table.parent
            raise ConfigError(
                f"the embedding in {where} cannot be read ({_said(error)}); save or install it again"
            ) from error
        super().__init__(source, digest, table)

    def _ids(self, texts: list[str]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        try:
            encoded = self._tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        except TypeError:  # for characters that UTF-8 cannot encode
            texts = [text.encode("utf-8", "replace").decode() for text in texts]
            encoded = self._tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        return _flat([each.ids for each in encoded])

    def _rows_of(self, ids: NDArray[np.intp]) -> NDArray[np.intp]:
        return self._rows[ids]

    def _weights_of(self, ids: NDArray[np.intp]) -> NDArray[np.float32] | None:
        return None if self._weights is None else self._weights[ids]


class _WordTable(_Table):
    """Word vectors of gensim, those of frequent words with a small weight.

    Files have their words in the order of frequency. The weight is that of Arora, Liang, Ma: A Simple but
    Tough-to-Beat Baseline for Sentence Embeddings (2017), with the share of a word by Zipf's law.
    """

    def __init__(self, source: str, vectors: Any) -> None:
        try:
            self._vectors, table = vectors, np.asarray(vectors.vectors)
            if table.ndim != 2 or not table.size:
                raise ValueError(f"its shape is {table.shape}")
            words = "\n".join(vectors.key_to_index)
        except (AttributeError, TypeError, ValueError) as error:
            raise ConfigError(f"{source} has no table of word vectors ({error}); {_EXPECTED}") from error
        super().__init__(
            source, _hexadecimal(str(table.shape).encode(), words.encode("utf-8", "replace"), _sample_of(table)), table
        )
        shares = 1 / np.arange(1, len(table) + 1)
        shares /= shares.sum()
        self._weights = np.asarray(_COMMON / (_COMMON + shares), np.float32)

    def _weights_of(self, ids: NDArray[np.intp]) -> NDArray[np.float32]:
        return self._weights[ids]

    def _ids(self, texts: list[str]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        index = self._vectors.key_to_index
        return _flat(
            [[index[entry] for word in words_of(text) if (entry := entry_of(word, self._vectors))] for text in texts]
        )


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """Yield the beginnings of texts in parts that are small enough to be averaged at once."""
    batch: list[str] = []
    size = 0
    for text in texts:
        batch.append(text[:_LONGEST])
        size += len(batch[-1])
        if size >= _AT_ONCE:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _flat(ids: list[list[int]]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    sizes = np.fromiter(map(len, ids), np.intp, len(ids))
    return np.fromiter(chain.from_iterable(ids), np.intp, int(sizes.sum())), sizes


def _finite(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return rows with zeros in place of those that are not finite."""
    finite = np.asarray(np.isfinite(rows).all(axis=1))
    return rows if finite.all() else np.where(finite[:, np.newaxis], rows, np.float32(0))


def _digest_of(files: _Files) -> str:
    """Return what identifies a table and its tokenizer; the table is mapped anew, and its pages are freed at the end.

    Raises
    ------
    ValueError
        If the table is damaged.
    """
    arrays = _read_arrays(files.table)
    table = _table_of(arrays)
    sampled = _sample_of(table)
    if not np.isfinite(sampled).all():
        raise ValueError(f"{files.table.name} has numbers that are infinite or undefined")
    more = [np.ascontiguousarray(arrays[name]) for name in ("mapping", "weights") if name in arrays]
    return _hexadecimal(str((table.shape, table.dtype)).encode(), files.tokenizer.read_bytes(), sampled, *more)


def _table_of(arrays: dict[str, NDArray[Any]]) -> NDArray[Any]:
    table = next((arrays[name] for name in _TABLES if name in arrays), None)
    if table is None or table.ndim != 2 or not table.size:
        raise ValueError(f"it has no table {' or '.join(_TABLES)} of two dimensions")
    return table


def _tokenizer_of(path: Path) -> Any:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _rows_by_token(tokenizer: Any, n_rows: int, mapping: NDArray[Any] | None) -> NDArray[np.intp]:
    """Return the row of each token in the table, -1 for those without a meaning."""
    vocabulary: dict[str, int] = tokenizer.get_vocab(with_added_tokens=True)
    if not vocabulary:
        raise ValueError("its tokenizer has no tokens")
    n_ids = max(vocabulary.values()) + 1
    rows = np.full(n_ids, -1, np.intp)
    meant = np.arange(n_rows) if mapping is None else mapping.astype(np.intp).ravel()
    rows[: len(meant)] = meant[:n_ids]
    if rows.max() >= n_rows or not (rows >= 0).any():
        raise ValueError(f"its tokens belong to rows up to {rows.max():,} of {n_rows:,}")
    special = {number for number, token in tokenizer.get_added_tokens_decoder().items() if token.special}
    unknown = getattr(tokenizer.model, "unk_token", None)
    for token, number in vocabulary.items():
        if number in special or token == unknown or _BYTE.fullmatch(token) or not any(map(str.isalnum, token)):
            rows[number] = -1
    return rows


def _weights_by_token(n_ids: int, weights: NDArray[Any] | None) -> NDArray[np.float32] | None:
    if weights is None:
        return None
    found = np.ones(n_ids, np.float32)
    given = weights.ravel()[:n_ids]
    found[: len(given)] = given
    if not np.isfinite(found).all():
        raise ValueError("its weights are infinite or undefined")
    return found


def _sample_of(table: NDArray[Any]) -> NDArray[Any]:
    """Return the table, or evenly spaced rows of a large one."""
    return np.ascontiguousarray(table[:: -(-table.nbytes // _SAMPLED)])


def _hexadecimal(*parts: bytes | NDArray[Any]) -> str:
    """Return 32 hexadecimal digits that identify some parts."""
    made = blake2b(digest_size=16)
    for part in parts:
        made.update(part if isinstance(part, bytes) else part.data.cast("B"))
    return made.hexdigest()


def _read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays in a file of the safetensors format, mapped into memory: processes share their pages.

    Raises
    ------
    ValueError
        If the file is damaged.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        start = 8 + int.from_bytes(file.read(8), "little")
        if not 8 < start <= min(size, _HEADER):
            raise ValueError(f"{path.name} is not in the safetensors format, or it is cut")
        header = json.loads(file.read(start - 8))
    mapped = np.memmap(path, np.uint8, "r")
    found = {}
    for name, each in header.items():
        if name != "__metadata__":
            begin, end = each["data_offsets"]
            found[name] = _array_of(name, each, mapped[start:][begin:end])
    return found


def _array_of(name: str, said: dict[str, Any], content: NDArray[np.uint8]) -> NDArray[Any]:
    kind = _TYPES.get(said["dtype"])
    if kind is None:
        raise ValueError(f"its array {name} has numbers of the type {said['dtype']}; {', '.join(_TYPES)} can be read")
    shape = tuple(map(int, said["shape"]))
    if min(shape, default=0) < 0 or len(content) != np.dtype(kind).itemsize * int(np.prod(shape)):
        raise ValueError(f"its array {name} is cut: {len(content):,} bytes for the shape {shape}")
    return np.asarray(content).view(kind).reshape(shape)
