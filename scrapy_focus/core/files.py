"""Files that are complete or absent."""

from __future__ import annotations

import errno
import os
from pathlib import Path


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file in one step: after a kill at any instant it has the old content or the new."""
    temporary = _temporary(path)
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def try_to_write(path: Path) -> None:
    """Create the folder of a file to be written later, and check that it is writable; the file is unchanged.

    Raises
    ------
    OSError
        If :func:`write_atomically` would fail now.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    temporary = _temporary(path)
    try:
        temporary.write_bytes(b"\0")
    finally:
        temporary.unlink(missing_ok=True)


def symbolic_link(*paths: Path) -> Path | None:
    """Return the first symbolic link among paths and everything below them, ``None`` if there is none."""
    for path in paths:
        if path.is_symlink():
            return path
        for folder, folders, files in os.walk(path):
            links = (link for name in (*folders, *files) if (link := Path(folder, name)).is_symlink())
            if (found := next(links, None)) is not None:
                return found
    return None


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.tmp")
