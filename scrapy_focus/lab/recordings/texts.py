"""Many strings without a Python object for each: one blob of bytes, and the start of each string in it.

A recording has millions of URLs, anchors and contexts, and a crawl looks at a few of them. As lists of ``str`` they
would take seconds to make and hundreds of megabytes in each process. Here they are columns, which can be mapped from
a file, and a string is made on demand.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from operator import eq
from typing import TYPE_CHECKING, Any, overload

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from scrapy_focus.lab.recordings.columns import Arrays

_AT_ONCE = 10_000  # strings


class Strings(Sequence[str]):
    """The operations of a list of strings, for classes that make each string on demand."""

    __hash__ = None  # type: ignore[assignment]

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return self.some(range(*place.indices(len(self))))
        return self.some((place if place >= 0 else range(len(self))[place],))[0]

    def __iter__(self) -> Iterator[str]:
        for first in range(0, len(self), _AT_ONCE):
            yield from self.some(range(first, min(len(self), first + _AT_ONCE)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return len(self) == len(other) and all(map(eq, self, other))

    def __repr__(self) -> str:
        return f"<{len(self):,} strings>"

    @abstractmethod
    def some(self, numbers: Iterable[int]) -> list[str]:
        """Return the strings with these numbers, from 0."""


class Texts(Strings):
    """Strings in a blob, each made on demand; about 0.3 microseconds each.

    Parameters
    ----------
    starts
        Where each begins in the blob, and where the last ends, in bytes; shape (n_strings + 1,).
    blob
        Their UTF-8, shape (n_bytes,).

    Examples
    --------
    >>> texts = Texts(*pack(["a", "", "böse"]))
    >>> texts[2], texts[:2], len(texts)
    ('böse', ['a', ''], 3)
    """

    def __init__(self, starts: NDArray[np.int64], blob: NDArray[np.uint8]) -> None:
        self._starts = starts.data  # indexing is faster than for an array
        self._blob = blob.data

    def __len__(self) -> int:
        return len(self._starts) - 1

    def some(self, numbers: Iterable[int]) -> list[str]:
        starts, blob = self._starts, self._blob
        return [blob[starts[number] : starts[number + 1]].tobytes().decode() for number in numbers]


class Labels(Strings):
    """Strings with many repetitions: each different one is made once.

    Parameters
    ----------
    numbers
        The name of each, as a number, shape (n_strings,).
    names
        The different ones.

    Examples
    --------
    >>> labels = Labels(np.array([1, 0, 1], np.int32), ["text/csv", "text/html"])
    >>> list(labels)
    ['text/html', 'text/csv', 'text/html']
    """

    def __init__(self, numbers: NDArray[np.int32], names: Sequence[str]) -> None:
        self.numbers = numbers
        self.names = names
        self._numbers = numbers.data
        self._made = _Made(names)

    def __len__(self) -> int:
        return len(self._numbers)

    def some(self, numbers: Iterable[int]) -> list[str]:
        of, made = self._numbers, self._made
        return [made[of[number]] for number in numbers]

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        return super().__getitem__(place) if isinstance(place, slice) else self._made[self._numbers[place]]


class Notes(Mapping[int, str]):
    """Strings that few items have, by number, as in a dict.

    Parameters
    ----------
    labels
        The string of each; empty for none.
    """

    def __init__(self, labels: Labels) -> None:
        self._labels = labels
        self._n = len(labels)

    def __len__(self) -> int:
        return len(self._those())

    def __iter__(self) -> Iterator[int]:
        return iter(self._those())

    def __getitem__(self, number: int) -> str:
        text: str | None = self.get(number)
        if text is None:
            raise KeyError(number)
        return text

    def get(self, number: int, default: Any = None) -> Any:
        """Return the string of a number, as a dict does."""
        return (self._labels[number] or default) if 0 <= number < self._n else default

    def _those(self) -> list[int]:
        is_empty = np.array([not name for name in self._labels.names] or [True])
        return np.flatnonzero(~is_empty[self._labels.numbers]).tolist()


class Numbers(Mapping[str, int]):
    """The number of each of many strings, found by a hash of 64 bits; a few microseconds each.

    Parameters
    ----------
    texts
        The strings.
    hashes, order
        The result of :func:`in_order` for their hashes.

    Examples
    --------
    >>> names = ["a", "b", "c"]
    >>> numbers = Numbers(Texts(*pack(names)), *in_order(np.array([hash_of(name) for name in names])))
    >>> numbers["b"], "d" in numbers
    (1, False)
    """

    def __init__(self, texts: Sequence[str], hashes: NDArray[np.int64], order: NDArray[np.int32]) -> None:
        self._texts = texts
        self._hashes = hashes
        self._order = order

    def __len__(self) -> int:
        return len(self._texts)

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __getitem__(self, text: str) -> int:
        wanted = hash_of(text)
        place = int(np.searchsorted(self._hashes, wanted))
        while place < len(self._hashes) and self._hashes[place] == wanted:
            number = int(self._order[place])
            if self._texts[number] == text:
                return number
            place += 1
        raise KeyError(text)


class _Made(dict[int, str]):
    """The names that were asked for, by number."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def __missing__(self, number: int) -> str:
        name = self[number] = self._names[number]
        return name


def pack(texts: Iterable[str]) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return strings as :class:`Texts` takes them: where each begins, and their bytes."""
    packer = Packer()
    packer.add(texts)
    return packer.done()


class Packer:
    """Packs strings that arrive in several lots, as :func:`pack` does."""

    def __init__(self) -> None:
        self._blob = bytearray()
        self._lengths = [np.zeros(1, np.int64)]

    def add(self, texts: Iterable[str]) -> None:
        """Pack some more."""
        encoded = [str.encode(text) for text in texts]
        self._lengths.append(np.array([len(text) for text in encoded], np.int64))
        self._blob += b"".join(encoded)

    def done(self) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        """Return all, as :func:`pack` does."""
        return np.cumsum(np.concatenate(self._lengths)), np.frombuffer(self._blob, np.uint8)


class Sorter:
    """Numbers strings: equal ones get the number of the first of them."""

    def __init__(self, *first: str) -> None:
        self._numbers = {name: number for number, name in enumerate(first)}

    def __call__(self, text: str) -> int:
        return self._numbers.setdefault(text, len(self._numbers))

    def names(self) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        """Return the different ones, packed."""
        return pack(self._numbers)


def hash_of(text: str) -> int:
    """Return a hash that is the same in all processes, 64 bits."""
    return int.from_bytes(blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest(), "little", signed=True)


def in_order(hashes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return hashes in rising order, and the number of the string that each is of."""
    order = np.argsort(hashes, kind="stable")
    return hashes[order], order.astype(np.int32)


def texts_in(columns: Arrays, name: str) -> Texts:
    """Return packed strings among the columns of a recording."""
    return Texts(columns[f"{name}.starts"], columns[f"{name}.bytes"])


def packed(name: str, texts: tuple[NDArray[np.int64], NDArray[np.uint8]]) -> Arrays:
    """Return packed strings as columns of a recording."""
    return {f"{name}.starts": texts[0], f"{name}.bytes": texts[1]}
