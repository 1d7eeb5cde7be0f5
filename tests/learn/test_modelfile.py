"""Model files that somebody sent: small ones that inflate to large ones, and headers that lie."""

from __future__ import annotations

import io
import json
import shutil
import struct
import tracemalloc
import zipfile
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest

from scrapy_focus import ConfigError
from scrapy_focus.learn.modelfile import read_model, write_model
from scrapy_focus.policies.branching.policy import BranchingBandit

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HEADER = json.dumps({"file": "scrapy_focus relevance model", "format": 1}).encode()
MEGABYTE = bytes(1 << 20)


def npy(shape: tuple[int, ...], kind: str = "<f8") -> bytes:
    """Return the beginning of an array in NumPy's format."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": kind, "fortran_order": False, "shape": shape})
    return file.getvalue()


def write(path: Path, parts: dict[str, list[bytes]], method: int = zipfile.ZIP_DEFLATED) -> None:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in {"header.npy": [npy((len(HEADER),), "|u1"), HEADER], **parts}.items():
            with archive.open(name, "w", force_zip64=True) as file:
                for part in content:
                    file.write(part)


def lie(path: Path) -> None:
    """Let the file say that each of its parts inflates to 200 bytes."""
    with zipfile.ZipFile(path) as archive:
        sizes = {part.file_size for part in archive.infolist() if part.file_size > 1 << 20}
    data = path.read_bytes()
    for size in sizes:
        data = data.replace(struct.pack("<Q", size), struct.pack("<Q", 200)).replace(
            struct.pack("<I", size), struct.pack("<I", 200)
        )
    path.write_bytes(data)


BOMBS: dict[str, Callable[[Path], None]] = {
    "numbers": lambda path: write(path, {"a.npy": [npy((400 << 17,)), *[MEGABYTE] * 400]}),
    "many of them": lambda path: write(path, {f"{n}.npy": [npy((8 << 17,)), *[MEGABYTE] * 8] for n in range(99)}),
    "a header": lambda path: write(path, {"header.npy": [npy((400 << 20,), "|u1"), *[MEGABYTE] * 400]}),
    "lists in a header": lambda path: write(path, {"header.npy": [npy((60 << 20,), "|u1"), b"[", b"[]," * (20 << 20)]}),
    "no array": lambda path: write(path, {"a.npy": [MEGABYTE] * 400}),
    "bzip2": lambda path: write(path, {"a.npy": [npy((400 << 17,)), *[MEGABYTE] * 400]}, zipfile.ZIP_BZIP2),
    "more parts than there are": lambda path: write(path, {f"{n}.npy": [npy((0,))] for n in range(3000)}),
    "a shape without numbers": lambda path: write(path, {"a.npy": [npy((10**12,))]}),
    "a shape of nothing": lambda path: write(path, {"a.npy": [npy((10**12,), "|V0")]}),
    "a shape that is too large": lambda path: write(path, {"a.npy": [npy((2**62, 2**62)), b"a"]}),
}  # fmt: skip


@pytest.fixture(scope="module")
def bombs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return what makes a file with a bomb, once for all tests."""

    @cache
    def made(bomb: str) -> Path:
        path = tmp_path_factory.mktemp("bombs") / "bomb.npz"
        BOMBS[bomb](path)
        return path

    return made


@pytest.mark.few(1)
@pytest.mark.parametrize("bomb", BOMBS)
@pytest.mark.parametrize("says", ["the truth", "less"])
def test_a_small_file_that_inflates_to_a_large_one_is_refused(
    bomb: str, says: str, bombs: Callable[[str], Path], tmp_path: Path
) -> None:
    """In one line, and there is never more of it in memory than the largest file that is read."""
    path = tmp_path / "a.npz"
    shutil.copy(bombs(bomb), path)
    if says == "less":
        lie(path)
    assert path.stat().st_size < 4e6
    tracemalloc.start()
    try:
        with pytest.raises(ConfigError, match=r"a\.npz is not a .*, or it is damaged") as raised:
            (read_model if says == "less" else BranchingBandit().load)(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 300e6
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 400


def test_what_is_written_can_be_read(tmp_path: Path) -> None:
    """A model that would be too large is refused before its file is made."""
    arrays = {"a": np.arange(6.0).reshape(2, 3), "b": np.asfortranarray(np.eye(3)), "c": np.array(["x", "yz"]),
              "d": np.zeros((0, 2), np.float32)}  # fmt: skip
    write_model(tmp_path / "a.npz", {}, arrays)
    _, back = read_model(tmp_path / "a.npz")
    assert {name: repr(array) for name, array in back.items()} == {name: repr(array) for name, array in arrays.items()}
    for header, more in [({"x": "a" * (17 << 20)}, {}), ({}, {"a": np.zeros(17 << 20)})]:
        with pytest.raises(ConfigError, match=r"are read again"):
            write_model(tmp_path / "b.npz", header, more)
    assert not (tmp_path / "b.npz").exists()


def test_parts_beside_a_model_are_passed_over(tmp_path: Path) -> None:
    """Earlier versions put texts there; the model is read as it was."""
    path = tmp_path / "a.npz"
    write_model(path, {"x": 1}, {"a": np.arange(6.0)})
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("beside-apis.npy", b"no array")
    header, arrays = read_model(path)
    assert header["x"] == 1
    assert {name: array.tolist() for name, array in arrays.items()} == {"a": [*range(6)]}
