"""What somebody looks for, in words, and what files are by their first bytes and names."""

from __future__ import annotations

import gzip
import io
import random
import re
import tarfile
import zipfile
from types import SimpleNamespace

import pytest

from scrapy_focus import ConfigError, FilesGoal
from scrapy_focus.web.sniff import sniff
from scrapy_focus.web.wanted import Wanted, slips, split_words

OCTETS = "application/octet-stream"
WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
EXCEL = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


def archive(*names: str, mimetype: str = "") -> bytes:
    """Return a ZIP archive."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as members:
        if mimetype:
            members.writestr("mimetype", mimetype, zipfile.ZIP_STORED)
        for name in names:
            members.writestr(name, "<x/>" * 100)
    return file.getvalue()


def old_office(name: str) -> bytes:
    """Return an OLE file whose list of contents, in its tenth sector, has a name."""
    head = bytearray(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504))
    head[30:32] = (9).to_bytes(2, "little")
    head[48:52] = (10).to_bytes(4, "little")
    return bytes(head) + bytes(512 * 10) + f"Root Entry\0{name}\0".encode("utf-16-le") + bytes(512)


def tar() -> bytes:
    """Return an archive of one file."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as members:
        members.addfile(tarfile.TarInfo("a"), io.BytesIO())
    return file.getvalue()


FILES = {
    "application/pdf": b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n",
    "application/zip": archive("prices.csv", "readme.txt"),
    WORD: archive("[Content_Types].xml", "_rels/.rels", "word/document.xml"),
    EXCEL: archive("[Content_Types].xml", "_rels/.rels", "xl/workbook.xml"),
    "application/vnd.oasis.opendocument.spreadsheet": archive(
        "content.xml", mimetype="application/vnd.oasis.opendocument.spreadsheet"
    ),
    "application/epub+zip": archive("c.xml", mimetype="application/epub+zip"),
    "application/msword": old_office("WordDocument"),
    "application/vnd.ms-excel": old_office("Workbook"),
    "application/x-gzip": gzip.compress(b"name,value"),
    "application/x-tar": tar(),
    "image/png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(30),
    "text/html": b"<!DOCTYPE html><html>",
    "": b"name,value\na,1\n",
}


@pytest.mark.parametrize(("mime", "body"), FILES.items(), ids=lambda value: value if isinstance(value, str) else "")
def test_first_bytes_tell_what_a_file_is(mime: str, body: bytes) -> None:
    """Office files are distinguished from other archives and from each other; plain text is not recognised."""
    assert sniff(body) == mime


def test_no_bytes_break_the_sniffing() -> None:
    """Whatever is changed in files, or cut off, or made up, the answer is a MIME type or nothing."""
    rng = random.Random(0)
    for _ in range(2000):
        body = bytearray(rng.choice(list(FILES.values())))
        for _ in range(rng.randrange(8)):
            body[rng.randrange(len(body))] = rng.randrange(256)
        kind = sniff(bytes(body[: rng.randrange(len(body) + 1)]))
        assert not kind or re.fullmatch(r"[\w.+-]+/[\w.+-]+", kind), kind
    for size in range(64):
        sniff(rng.randbytes(size))
        sniff(b"PK\x03\x04" + rng.randbytes(size))
        sniff(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\xff" * size)


@pytest.mark.parametrize(
    ("words", "mime", "url", "taken"),
    [
        (["dat"], OCTETS, "http://h/a.DAT?x=1", True),
        (["dat"], "application/x-unknown", "http://h/a.dat", True),
        (["dat"], "text/html", "http://h/a.dat", False),
        (["dat"], OCTETS, "http://h/dat", False),
        (["tar.zst"], OCTETS, "http://h/a.tar.zst", True),
        (["epub"], OCTETS, "http://h/a.epub", True),
        (["epub"], "application/epub+zip", "http://h/7", True),
        (["/download/"], "application/x-unknown", "http://h/download/7", True),
        (["/download/"], "text/html", "http://h/download/7", False),
        (["/download/", "html"], "text/html", "http://h/download/7", True),
        ([r"format=(csv|dat)$"], "text/plain", "http://h/?format=dat", True),
        (["image/*"], "image/png", "http://h/a", True),
        (["csv"], "text/plain", "http://h/a.dat", False),
    ],
)
def test_any_extension_type_or_expression_can_be_asked_for(words: list[str], mime: str, url: str, taken: bool) -> None:
    """Unregistered extensions are recognised by the URL; neither they nor expressions match pages as files."""
    assert FilesGoal(types=words).wants(mime, url) == taken


@pytest.mark.parametrize(
    ("types", "body", "name", "url", "found"),
    [
        (["pdf"], b"%PDF-1.4\n", "", "http://h/get?id=7", True),
        (["csv"], b"%PDF-1.4\n", "", "http://h/get?id=7", False),
        (["docx"], FILES[WORD], "", "http://h/get", True),
        (["docx"], FILES["application/zip"], "", "http://h/get", False),
        (["zip"], FILES[WORD], "", "http://h/get", False),
        (["csv"], b"name,value", "prices.csv", "http://h/get", True),
        (["dem"], b"1 2 3", "map.dem", "http://h/get", True),
        (["csv"], b"name,value", "", "http://h/get", False),
        (["bin"], b"%PDF-1.4\n", "", "http://h/get", True),
        (["/get"], b"<!DOCTYPE html><html>", "", "http://h/get", False),
        (["pdf"], b"<!DOCTYPE html><html>", "", "http://h/a.pdf", True),
    ],
)
def test_what_a_server_does_not_say_is_told_by_name_and_bytes(
    types: list[str], body: bytes, name: str, url: str, found: bool
) -> None:
    """The extension of the URL comes first, then the name that the server gives, then the first bytes."""
    headers = {"content-disposition": f'attachment; filename="{name}"'} if name else {}
    page = SimpleNamespace(url=url, headers=headers, kind=sniff(body))
    assert FilesGoal(types=types).finds(OCTETS, url, page) == found
    said = "text/x-said"
    assert not FilesGoal(types=["pdf", "docx", "zip", "csv"]).finds(said, "http://h/get", page)


@pytest.mark.parametrize("word", ["", " ", ".", "no-such-type", "text/", "image", "*", "(", "[a-"])
def test_what_is_no_type_is_a_mistake(word: str) -> None:
    """The message quotes the word, in one line."""
    with pytest.raises(ConfigError) as caught:
        Wanted.of(["csv", word])
    assert repr(word) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_different_types_are_described_differently() -> None:
    """A job resumes only under the same goal, which is identified by its text."""
    said = {repr(FilesGoal(types=words)) for words in (["csv"], ["dat"], ["/dat/"], ["csv", "dat"], ["dat", "dem"])}
    assert len(said) == 5
    assert repr(FilesGoal(types=["dem", "dat"])) == repr(FilesGoal(types=["dat", "dem"])) == "files: dat, dem"


def test_words_are_separated_by_commas_outside_of_brackets() -> None:
    """So an expression can have one, as in a count."""
    assert split_words(r"csv,/\d{1,3}/, (a,b),") == ["csv", r"/\d{1,3}/", "(a,b)", ""]


def test_a_slip_of_the_finger_is_noticed() -> None:
    """What is one letter off, or turned round; not what only looks alike, or is known."""
    assert slips(["cvs", "pfd", "jsn"]) == [("cvs", "csv"), ("pfd", "pdf"), ("jsn", "json")]
    assert not slips(["csv", "dat", "dem", "rds", "epub", "data", "/cvs/", "text/cvs", "tif", "sav"])
