"""Files are stored only in their folder, under names that are valid on every file system."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path, PurePosixPath

import pytest

from scrapy_focus.finders.files.file_names import Names, folder_of
from scrapy_focus.web.safe_names import safe_name

HOSTILE = [
    "", ".", "..", "...", "../../etc/passwd", "/etc/passwd", "\\\\server\\share", "C:\\windows\\x.dll", "a\x00b.csv",
    ".htaccess", "con", "CON.csv", "nul.tar.gz", "COM1", "lpt9.txt", "aux.", "a" * 10_000, "ä" * 10_000 + ".csv",
    "x." + "y" * 10_000, "trailing. . .", " leading", "a\nb\r\nc.csv", "\u202egnp.exe", "a\u200bb.csv", "\ud800.csv",
    "e\u0301.csv", "*?<>|:\".csv", "~", "-rf", "%2e%2e%2f", "file.csv/", "\ufe0f", "a\u2028b", "${HOME}", "name ", "🙂.csv",
]  # fmt: skip
RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_is_harmful(name: str, tmp_path: Path) -> None:
    """For any name that a server sends, a file gets a writable path of three plain parts below its folder."""
    path = Names().give(f"http://{name[:50].strip()}/{name}/{name}", name)
    parts = PurePosixPath(path).parts
    assert len(parts) == 3
    for part in parts:
        assert part not in ("", ".", "..")
        assert not part.startswith((".", " ", "-", "~"))
        assert not part.endswith((".", " "))
        assert not RESERVED.fullmatch(part)
        assert not set(part) & set('/\\:*?"<>|')
        assert part.isprintable()
        assert part == unicodedata.normalize("NFC", part)
        assert len(part.encode()) <= 160
    there = tmp_path / path
    assert there.resolve().is_relative_to(tmp_path.resolve())
    there.parent.mkdir(parents=True)
    there.write_bytes(b"")


def test_an_extension_outlives_a_cut() -> None:
    """A long name is cut before its extension, unless that is too long itself."""
    assert safe_name("a" * 1000 + ".csv") == "a" * 146 + ".csv"
    assert len(safe_name("x." + "y" * 1000)) == 150


def test_no_two_paths_differ_only_in_case() -> None:
    """Names that differ only in case, composition or width get numbers, even in folders that differ likewise."""
    names = Names(["a.test/data/old.csv"])
    given = [
        names.give(f"http://a.test/{section}/x", name)
        for section in ("data", "DATA")
        for name in ("prices.csv", "Prices.csv", "PRICES.CSV", "é", "e\u0301", "ﬁle", "file", "old.csv", "README")
    ]
    assert len({unicodedata.normalize("NFKC", path).casefold() for path in given}) == len(given)
    assert given[:3] == ["a.test/data/prices.csv", "a.test/data/Prices-2.csv", "a.test/data/PRICES-3.CSV"]
    assert given[7] == "a.test/data/old-2.csv"
    assert given[-1] == "a.test/DATA/README-2"


def test_thousands_of_equal_names_are_fast() -> None:
    """The search for a free number does not restart each time."""
    names = Names()
    paths = [names.give("http://a.test/d/x", "download.csv") for _ in range(20_000)]
    assert len(set(paths)) == 20_000
    assert paths[-1] == "a.test/d/download-20000.csv"


def test_folders_of_urls() -> None:
    """They are the host with its port, and the first folder; an invalid URL has a folder, too."""
    assert folder_of("http://[::1]:8000/a/b/c.csv") == "1_8000/a"
    assert folder_of("http://a.test/%2e%2e/%2fetc/x") == "a.test/etc"
    assert folder_of("http://a.test//x.csv?y=/z/") == "a.test/top"
    assert folder_of("http://[broken/x/y") == "host/top"
