"""Files that are complete or absent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from scrapy_focus.core.files import write_atomically

if TYPE_CHECKING:
    from pathlib import Path


def test_a_file_is_whole_or_not_there(tmp_path: Path) -> None:
    """What fails in writing leaves the old content, and no other file."""
    path = tmp_path / "state"
    write_atomically(path, b"old")
    with pytest.raises(TypeError):
        write_atomically(path, "no bytes")  # type: ignore[arg-type]
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]
