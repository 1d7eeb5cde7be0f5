"""Append-only files of JSON lines, written by a process that may be killed at any time."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from scrapy_focus.core.errors import ConfigError, StorageError
from scrapy_focus.core.printable import brief, printable_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


def read_lines(path: Path, /, **kinds: type) -> Iterator[dict[str, Any]]:
    """Yield the objects in a file, one by one; skip a last line that a kill cut. No file: nothing.

    ``kinds`` gives the type of a field that is present and not ``null``.

    Raises
    ------
    ConfigError
        If the file cannot be read, or another line is not a JSON object or has a field of another type.
    """
    if not path.exists():
        return
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.endswith(b"\n"):
                    yield _checked(_read(line, path, number), kinds, path, number)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}; name another folder, or repair it") from error


def lines_of(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of a list, each with a URL, except a last one that is being written.

    The list may be from an unknown source. Only the URL of a line is checked here; :func:`text_in` and
    :func:`number_in` check the other fields.

    Raises
    ------
    ConfigError
        If another line is not such an object.
    StorageError
        If the list cannot be read.
    """
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    read = json.loads(line)
                    if not isinstance(read, dict) or not isinstance(read.get("url"), str):
                        raise ValueError("it has no URL")
                except (ValueError, RecursionError) as error:
                    if not line.endswith(b"\n"):
                        return
                    raise ConfigError(
                        f"line {number} of {path} was not written by a crawl: {error}; remove that line"
                    ) from error
                yield read
    except FileNotFoundError:
        return
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error}") from error


def text_in(line: dict[str, Any], name: str) -> str:
    """Return a text field of a line, ``""`` if missing."""
    value = line.get(name)
    return value if isinstance(value, str) else ""


def number_in(line: dict[str, Any], name: str) -> int:
    """Return a non-negative number field of a line, 0 if missing."""
    value = line.get(name)
    if isinstance(value, int) and 0 <= value < 1 << 63:
        return value
    return 0


def share_in(line: dict[str, Any], name: str) -> float | None:
    """Return a field from 0 to 1 of a line, ``None`` if missing."""
    value = line.get(name)
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1:
        return float(value)
    return None


def add_line(path: Path, line: dict[str, Any]) -> None:
    """Append a line to a file in one system call; make its folder if necessary."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab", buffering=0) as file:
        file.write(f"{printable_json(line)}\n".encode())


def web_url(url: str, path: Path) -> str:
    """Return a URL from a file, if a crawl may request it.

    Raises
    ------
    ConfigError
        If it is not an ``http`` or ``https`` URL with a host.
    """
    try:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return url
    except ValueError:
        pass
    raise ConfigError(
        f"{path} has {brief(url)}, where a URL with http:// or https:// was expected; remove it, or name another folder"
    )


def cut_line(path: Path) -> None:
    """Cut off an incomplete last line, so that lines can be appended."""
    if not path.exists():
        return
    with path.open("rb+") as file:
        end = file.seek(0, os.SEEK_END)
        while end:
            start = max(0, end - _CHUNK)
            file.seek(start)
            newline = file.read(end - start).rfind(b"\n")
            if newline >= 0:
                end = start + newline + 1
                break
            end = start
        file.truncate(end)


_CHUNK = 1 << 16  # bytes
_SAID = {str: "a text", int: "a whole number", dict: "an object", list: "a list"}


def _read(line: bytes, path: Path, number: int) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"line {number} of {path} is damaged ({error}); remove it, or name another folder") from error
    if not isinstance(found, dict):
        raise ConfigError(f"line {number} of {path} is not a JSON object; remove it, or name another folder")
    return found


def _checked(line: dict[str, Any], kinds: Mapping[str, type], path: Path, number: int) -> dict[str, Any]:
    for name, kind in kinds.items():
        value = line.get(name)
        if value is not None and not isinstance(value, kind):
            raise ConfigError(
                f"line {number} of {path} has the {name} {brief(value)}, where {_SAID[kind]} was expected; remove "
                "it, or name another folder"
            )
    return line
