"""Named columns: the memory of a frontier, saved and restored as it is, without rebuilding."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias, overload

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Part: TypeAlias = "array[int] | array[float] | bytearray"
SIZES: Final = {"i": 4, "q": 8, "d": 8, "B": 1}  # bytes of a number, by the code of its kind


class Column(NamedTuple):
    """Numbers of one kind, in parts that follow each other."""

    code: str  # as in SIZES; parts of kind "B" are bytearrays, others arrays of this type code
    parts: Sequence[Part]


class Saved:
    """Columns by name. Added parts are not copied; the caller owns what it takes out."""

    def __init__(self, columns: dict[str, Column] | None = None, prefix: str = "") -> None:
        self.columns = {} if columns is None else columns
        self._prefix = prefix

    def under(self, name: str) -> Saved:
        """Return the same columns for a caller whose names all begin with a prefix."""
        return Saved(self.columns, f"{self._prefix}{name}.")

    def put(self, name: str, code: str, *parts: Part) -> None:
        """Add a column."""
        self.columns[self._prefix + name] = Column(code, parts)

    def put_ints(self, name: str, values: Iterable[int]) -> None:
        """Add a column of integers below 2**31 in size."""
        self.put(name, "i", array("i", values))

    @overload
    def take(self, name: str, code: Literal["i", "q"]) -> array[int]: ...
    @overload
    def take(self, name: str, code: Literal["d"]) -> array[float]: ...
    @overload
    def take(self, name: str, code: Literal["B"]) -> bytearray: ...
    def take(self, name: str, code: str) -> Part:
        """Take out a column that was read in one part.

        Raises
        ------
        LookupError
            If there is none of this name and kind.
        """
        found, parts = self.columns.pop(self._prefix + name)
        if found != code or len(parts) != 1:
            raise LookupError(f"the column {self._prefix + name} is not one of kind {code}")
        return parts[0]


class Pieces:
    """Cuts a column of integers into consecutive pieces, each with some spare room."""

    def __init__(self, column: array[int]) -> None:
        self._code = column.typecode
        self._size = column.itemsize
        self._bytes = memoryview(column).cast("B")
        self._at = 0

    def cut(self, length: int) -> array[int]:
        """Return the next integers, so many."""
        piece, start = array(self._code), self._at
        self._at += length * self._size
        piece.frombytes(self._bytes[start : self._at])  # the first insertion would move a slice of an array
        return piece

    def end(self) -> None:
        """Raise LookupError unless the pieces are exactly the column."""
        if self._at != len(self._bytes):
            raise LookupError(f"the pieces of a column have {self._at:,} bytes, not {len(self._bytes):,}")
