"""Model files: numbers and a header in one ``.npz``. They are data: reading one runs no code, whatever its source.

They are compressed, and three megabytes may be three gigabytes of zeros. The sizes that a file states need not be
true. So each part is read up to a limit, and an array is made when all of its bytes are present.
"""

from __future__ import annotations

import json
import math
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
_LARGEST = 128 << 20  # bytes of all arrays
_LONGEST = 16 << 20  # bytes of the header
_PARTS = 100  # arrays
_HEADER = "header"
_BESIDE = "beside-"  # prefix of the parts that earlier versions added to the model
_PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # others are inflated without a limit


# exceptions of NumPy, JSON and zipfile for invalid bytes
_DAMAGED = (
    ValueError, EOFError, KeyError, ArithmeticError, RuntimeError, MemoryError, SyntaxError,
    TokenError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip


class Sort(NamedTuple):
    """The contents of a file: the name, and how to make one."""

    name: str
    make: str


RELEVANCE = Sort("relevance model", "train one with focus train")


def write_model(
    path: str | PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], sort: Sort = RELEVANCE
) -> None:
    """Write a model in one step: the file holds the old one or the new one. The same model gives the same bytes.

    Raises
    ------
    ConfigError
        If the file cannot be written, or would be too large to be read again.
    """
    said = json.dumps(
        {"file": f"scrapy_focus {sort.name}", "format": _FORMAT, **header}, ensure_ascii=False, sort_keys=True
    )
    written = np.frombuffer(said.encode("utf-8", "backslashreplace"), np.uint8)
    size = sum(array.nbytes for array in arrays.values())
    if len(written) > _LONGEST or size > _LARGEST:
        raise ConfigError(
            f"the {sort.name} for {path} has {len(written):,} bytes of texts and {size:,} bytes of numbers, and files "
            f"of up to {_LONGEST:,} and {_LARGEST:,} are read again"
        )
    buffer = BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, header=written, **arrays)
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
        If the file does not exist, is not a model, is damaged, or was written by a newer version.
    """
    try:
        with Path(path).open("rb") as data:
            if not zipfile.is_zipfile(data):
                raise ValueError("it is not an .npz file")
            with zipfile.ZipFile(data) as archive:
                arrays = _read_arrays(archive)
        header = json.loads(arrays.pop(_HEADER).tobytes())
    except FileNotFoundError as error:
        raise ConfigError(f"there is no file {path}; {sort.make}") from error
    except OSError as error:
        raise ConfigError(f"the {sort.name} {path} cannot be read: {error.strerror or error}") from error
    except _DAMAGED as error:
        raise ConfigError(f"{path} is not a {sort.name}, or it is damaged ({error}); {sort.make}") from error
    if not isinstance(header, dict) or header.get("file") != f"scrapy_focus {sort.name}":
        raise ConfigError(f"{path} is no {sort.name}; {sort.make}")
    if not isinstance(header.get("format"), int) or header["format"] > _FORMAT:
        raise ConfigError(
            f"{path} has format {header.get('format')!r}, and this version of scrapy_focus reads {_FORMAT}; "
            f"install a newer one, or {sort.make}"
        )
    return header, arrays


def _read_arrays(archive: zipfile.ZipFile) -> dict[str, NDArray[Any]]:
    """Return the arrays in a file by name.

    Raises
    ------
    ValueError
        If one is invalid, or all of them together are larger than any that are written.
    """
    arrays: dict[str, NDArray[Any]] = {}
    parts = archive.infolist()
    if len(parts) > _PARTS:
        raise ValueError(f"it has {len(parts):,} parts")
    left = _LARGEST
    for part in parts:
        if part.compress_type not in _PACKED:
            raise ValueError(f"its part {part.filename!r:.80} is compressed in an unusual way")
        name = part.filename.removesuffix(".npy")
        most = min(left, _LONGEST) if name == _HEADER else left
        with archive.open(part) as file:
            content = file.read(most + 1)
        if len(content) > most:
            raise ValueError(f"its part {part.filename!r:.80} inflates to more than {most:,} bytes")
        left -= len(content)
        if name.startswith(_BESIDE):
            continue
        arrays[name] = _array_of(content)
    return arrays


def _array_of(content: bytes) -> NDArray[Any]:
    """Return the array in a file in NumPy's format."""
    file = BytesIO(content)
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    shape, by_columns, dtype = read[np.lib.format.read_magic(file)](file)
    here, needed = len(content) - file.tell(), math.prod(shape) * dtype.itemsize
    if dtype.hasobject or not dtype.itemsize or here != needed:
        raise ValueError(f"an array of the shape {shape!s:.80} and the type {dtype!s:.80} has {here:,} bytes")
    values = np.frombuffer(content, dtype, offset=file.tell()) if here else np.empty(0, dtype)
    return values.reshape(shape, order="F" if by_columns else "C").copy(order="K")


def digest_of(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> str:
    """Return 32 hexadecimal digits that identify parameters: the same for equal ones, on every machine."""
    made = blake2b(json.dumps(header, ensure_ascii=False, sort_keys=True).encode("utf-8", "replace"), digest_size=16)
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        made.update(f"{name}:{array.dtype.str}:{array.shape};".encode())
        made.update(array.tobytes())
    return made.hexdigest()
