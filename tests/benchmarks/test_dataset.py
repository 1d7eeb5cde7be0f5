"""The data set of recordings: the same on this machine as where its sums were written, and whatever changed is seen."""

from __future__ import annotations

import json
import re
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import dataset

if TYPE_CHECKING:
    from collections.abc import Iterator

SMALLEST = "portal-small-0"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the smallest recording."""
    made = tmp_path_factory.mktemp("data")
    assert dataset.main(["--out", str(made), SMALLEST]) == 0
    return made


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    """Another one, to change it."""
    path = dataset.path_of(SMALLEST, tmp_path)
    path.write_bytes(dataset.path_of(SMALLEST, folder).read_bytes())
    return path


def change(path: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute(statement, values)
        database.commit()


def test_the_smallest_recording_has_the_committed_sum(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is made here as it was made for the manifest, and verifies."""
    assert dataset.main(["--out", str(folder), "--verify", SMALLEST]) == 0
    assert capsys.readouterr().out.endswith("as in the manifest\n")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["profile-nces-0", "news-0", "topic-web-0", "structured-web-0"])
def test_each_kind_of_recording_has_the_committed_sum(name: str, tmp_path: Path) -> None:
    """The other generators make the same here, too."""
    assert dataset.main(["--out", str(tmp_path), name]) == 0


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE pages SET status = 404 WHERE id = 5",
        "UPDATE pages SET size = size + 1 WHERE id = 5",
        "UPDATE texts SET text = text || '.' WHERE id = (SELECT anchor FROM links WHERE anchor > 0 LIMIT 1)",
        "DELETE FROM links WHERE source = 0 AND position = 3",
        "UPDATE meta SET value = '[\"http://site.example/data\"]' WHERE name = 'roots'",
    ],
)
def test_a_change_of_the_content_changes_the_sum(
    copy: Path, statement: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """An answer, a text, a link, or where crawls start: each is in the sum, and verifying says so."""
    before = dataset.content_sum(copy)
    change(copy, statement)
    assert dataset.content_sum(copy) != before == dataset.read_manifest()[SMALLEST].sha256
    copy.with_name(f"{copy.name}.columns").unlink(missing_ok=True)
    assert dataset.main(["--out", str(copy.parent), "--verify", SMALLEST]) == 1
    assert "differs from the manifest" in capsys.readouterr().out


def test_how_it_is_stored_does_not_change_the_sum(copy: Path) -> None:
    """Pages of SQLite in another order, and bodies that are compressed otherwise, are the same content."""
    before = dataset.content_sum(copy)
    change(copy, "UPDATE pages SET body = ? WHERE id = 5", zlib.compress(b"text", 1))
    fast = dataset.content_sum(copy)
    change(copy, "UPDATE pages SET body = ? WHERE id = 5", zlib.compress(b"text", 0))
    change(copy, "VACUUM")
    assert dataset.content_sum(copy) == fast != before


def test_what_is_not_made_does_not_verify(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A missing file is said, with status 1; a name that does not exist is refused."""
    assert dataset.main(["--out", str(tmp_path), "--verify", SMALLEST]) == 1
    assert capsys.readouterr().out == f"{SMALLEST}: not made\n"
    with pytest.raises(SystemExit):
        dataset.main(["--out", str(tmp_path), "portal-tiny-0"])


def families() -> Iterator[str]:
    for entry in dataset.entries():
        yield re.sub(r"-\d+$", "", re.sub(r"^profile-\w+", "profile-NAME", entry.name))


def test_manifest_and_datasheet_have_all_recordings() -> None:
    """Each recording has its sum, and each family a row in the datasheet."""
    assert list(dataset.read_manifest()) == [entry.name for entry in dataset.entries()]
    assert all(re.fullmatch(r"[0-9a-f]{64}", row.sha256) for row in dataset.read_manifest().values())
    assert all(row.targets > 0 for row in dataset.read_manifest().values())
    text = (Path(dataset.__file__).parent / "dataset.rst").read_text()
    assert all(f"``{family}-" in text for family in families())
    assert json.loads(dataset.MANIFEST.read_text())["format"] == "scrapy_focus data set"
