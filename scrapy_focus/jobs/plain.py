"""Serializes plain values to bytes that are safe to read from anybody: numbers, texts, bytes, and containers of them.

The bytes are pickles, as nothing else in the standard library is as fast to write. A reader first examines each
instruction, and accepts only those that plain values need. None of these names, imports or calls anything, or takes
more memory than in proportion to its bytes.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np

_ALLOWED = (
    "PROTO FRAME STOP MARK MEMOIZE BINGET LONG_BINGET NONE NEWTRUE NEWFALSE BININT BININT1 BININT2 LONG1 LONG4",
    "BINFLOAT SHORT_BINUNICODE BINUNICODE BINUNICODE8 SHORT_BINBYTES BINBYTES BINBYTES8 BYTEARRAY8 EMPTY_LIST APPEND",
    "APPENDS EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 EMPTY_DICT SETITEM SETITEMS EMPTY_SET ADDITEMS FROZENSET",
)
_LENGTHS = {  # bytes of a length field, by its name in pickletools
    pickletools.TAKEN_FROM_ARGUMENT1: 1, pickletools.TAKEN_FROM_ARGUMENT4: 4, pickletools.TAKEN_FROM_ARGUMENT4U: 4,
    pickletools.TAKEN_FROM_ARGUMENT8U: 8,
}  # fmt: skip
_STOP = pickle.STOP[0]

#: By instruction: the number of bytes that follow it, or minus the size of a length field.
_FOLLOWING: dict[int, int] = {}
for _each in pickletools.opcodes:
    if _each.name in " ".join(_ALLOWED).split():
        _n = 0 if _each.arg is None else _each.arg.n
        _FOLLOWING[ord(_each.code)] = _n if _n >= 0 else -_LENGTHS[_n]


def dumps_plain(value: object) -> bytes:
    """Serialize a value. Subclasses of numbers, texts and containers become plain ones.

    Raises
    ------
    TypeError
        If it contains anything else.
    """
    try:
        return _dumps(value)
    except _NotPlainError:
        return _dumps(_plain(value))


def loads_plain(data: bytes) -> Any:
    """Return the value of bytes made by :func:`dumps_plain`; linear in their number.

    Raises
    ------
    ValueError
        If they are anything else.
    """
    if not _is_plain(data):
        raise ValueError("the stored data is cut off, or has more than plain values")
    try:
        return pickle.loads(data)  # noqa: S301 (it names and calls nothing, as was looked up)
    except Exception as error:  # whatever instructions in a wrong order raise
        raise ValueError(f"the stored data is invalid: {error}") from error


def _is_plain(data: bytes) -> bool:
    """Whether a pickle has only instructions that plain values need."""
    at, end = 0, len(data)
    while at < end:
        instruction = data[at]
        following = _FOLLOWING.get(instruction)
        if following is None:
            return False
        at += 1
        if following >= 0:
            at += following
        else:
            at -= following
            at += int.from_bytes(data[at + following : at], "little")
        if instruction == _STOP:
            return at == end
    return False


class _NotPlainError(Exception):
    pass


class _Pickler(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        """Called for every object that is not a plain value."""
        raise _NotPlainError


def _dumps(value: object) -> bytes:
    file = io.BytesIO()
    _Pickler(file, protocol=5).dump(value)
    return file.getvalue()


def _plain(value: Any) -> Any:
    """Convert a value to plain ones: for example, numbers of NumPy and strings of lxml."""
    if value is None or type(value) in (bool, int, float, str, bytes, bytearray):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    return _plain_container(value)


def _plain_container(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {_plain(name): _plain(each) for name, each in value.items()}
    if isinstance(value, Set):
        return set(map(_plain, value))
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    if isinstance(value, Sequence):
        return list(map(_plain, value))
    raise TypeError(f"{value!r:.80} is a {type(value).__qualname__}, and only plain values can be stored")
