"""Model files: numbers and a header in one ``.npz``. They are data: reading one runs no code, whoever made it."""

from __future__ import annotations

import json
import zipfile
import zlib
from hashlib import blake2b
from io import BytesIO
from pathlib import Path
from tokenize import TokenError
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from numpy.typing import NDArray

_FORMAT = 1  # of the file as a whole; a reader refuses what is newer


# what NumPy, JSON and zipfile raise for bytes that are not what was written
_DAMAGED = (
    ValueError, EOFError, KeyError, ArithmeticError, RecursionError, MemoryError, NotImplementedError, SyntaxError,
    TokenError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip


class Sort(NamedTuple):
    """What a file holds: its name, and how to make one."""

    name: str
    make: str


RELEVANCE = Sort("relevance model", "train one with scrapy focus-train")


def write_model(
    path: str | PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], sort: Sort = RELEVANCE
) -> None:
    """Write a model as one step: the file holds the old one or the new one. The same model gives the same bytes.

    Raises
    ------
    ConfigError
        If the file cannot be written.
    """
    said = json.dumps(
        {"file": f"scrapy_focus {sort.name}", "format": _FORMAT, **header}, ensure_ascii=False, sort_keys=True
    )
    buffer = BytesIO()
    np.savez_compressed(
        buffer, allow_pickle=False, header=np.frombuffer(said.encode("utf-8", "backslashreplace"), np.uint8), **arrays
    )
    try:
        write_atomically(Path(path), buffer.getvalue())
    except OSError as error:
        raise ConfigError(
            f"the {sort.name} cannot be written to {path}: {error.strerror}; name another file"
        ) from error


def read_model(path: str | PathLike[str], sort: Sort = RELEVANCE) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the header and the arrays of a model file.

    Raises
    ------
    ConfigError
        If the file is not there, is no model, is damaged, or was written by a newer version.
    """
    try:
        with Path(path).open("rb") as data:
            if not zipfile.is_zipfile(data):
                raise ValueError("it is no .npz")
            data.seek(0)
            with np.load(data, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
        header = json.loads(arrays.pop("header").tobytes())
    except FileNotFoundError as error:
        raise ConfigError(f"there is no file {path}; {sort.make}") from error
    except OSError as error:
        raise ConfigError(f"the {sort.name} {path} cannot be read: {error.strerror or error}") from error
    except _DAMAGED as error:
        raise ConfigError(f"{path} is no {sort.name}, or it is damaged ({error}); {sort.make}") from error
    if not isinstance(header, dict) or header.get("file") != f"scrapy_focus {sort.name}":
        raise ConfigError(f"{path} is no {sort.name}; {sort.make}")
    if not isinstance(header.get("format"), int) or header["format"] > _FORMAT:
        raise ConfigError(
            f"{path} has format {header.get('format')!r}, and this version of scrapy_focus reads {_FORMAT}; "
            f"install a newer one, or {sort.make}"
        )
    return header, arrays


def digest_of(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> str:
    """Return 32 hexadecimal digits that identify parameters: equal for equal ones, on every machine."""
    made = blake2b(json.dumps(header, ensure_ascii=False, sort_keys=True).encode("utf-8", "replace"), digest_size=16)
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        made.update(f"{name}:{array.dtype.str}:{array.shape};".encode())
        made.update(array.tobytes())
    return made.hexdigest()
