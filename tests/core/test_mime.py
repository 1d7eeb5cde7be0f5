"""MIME types and extensions: what users ask for, what servers say."""

from __future__ import annotations

import pytest

from scrapy_focus import ConfigError
from scrapy_focus.web.mime import (
    BLOCKED_EXTENSIONS,
    BLOCKED_MIMES,
    DATA_TYPES,
    blocked_extensions,
    effective_mime,
    extension,
    matches,
    parse_mime,
)
from scrapy_focus.web.wanted import parse_types


@pytest.mark.parametrize(
    ("header", "mime"),
    [
        ("text/html; charset=utf-8", "text/html"),
        ("Text/CSV", "text/csv"),
        (" application/pdf ;q=1", "application/pdf"),
        ("", ""),
        (";", ""),
    ],
)
def test_a_header_is_cut_to_the_type(header: str, mime: str) -> None:
    """Parameters and blanks go, letters are small."""
    assert parse_mime(header) == mime


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("http://h/a.CSV", "csv"),
        ("http://h/a.csv?x=b.pdf#c.doc", "csv"),
        ("http://h/a.tar.gz", "gz"),
        ("http://h.com", ""),
        ("http://h/v1.2/data", ""),
        ("http://h/a.", ""),
        ("http://h/.hidden", "hidden"),
        ("http://[h/a.csv", ""),
        ("", ""),
    ],
)
def test_the_extension_is_that_of_the_path(url: str, name: str) -> None:
    """Host, folders, query and fragment have no say; a URL that is none has no extension."""
    assert extension(url) == name


@pytest.mark.parametrize(
    ("mime", "url", "effective"),
    [
        ("", "http://h/a.xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
        ("application/octet-stream", "http://h/a.CSV?x", "text/csv"),
        ("text/plain", "http://h/a.yml", "application/yaml"),
        ("text/plain", "http://h/a.txt", "text/plain"),
        ("application/force-download", "http://h/a", "application/force-download"),
        ("text/html", "http://h/a.csv", "text/html"),
        ("application/json", "http://h/a.csv", "application/json"),
    ],
)
def test_the_extension_helps_where_the_server_says_nothing(mime: str, url: str, effective: str) -> None:
    """Only types that say nothing are overruled by the extension."""
    assert effective_mime(mime, url) == effective


def test_patterns_stand_for_all_of_a_kind() -> None:
    """``image/*`` matches every image, and nothing else."""
    assert matches("image/png", {"image/*"})
    assert matches("text/csv", {"image/*", "text/csv"})
    assert not matches("text/html", {"image/*", "text/csv"})
    assert not matches("", {"image/*"})


@pytest.mark.parametrize(
    ("words", "has"),
    [
        (["csv"], "text/csv"),
        (["CSV "], "application/csv"),
        ([".yml"], "application/yaml"),
        (["tgz"], "application/gzip"),
        (["image/*"], "image/*"),
        (["Application/Vnd.Foo+json"], "application/vnd.foo+json"),
        (["epub"], "application/epub+zip"),
        (["tsv", "data"], "application/pdf"),
    ],
)
def test_users_name_types_as_they_like(words: list[str], has: str) -> None:
    """Extensions, aliases, MIME types and patterns are understood, in any case."""
    assert has in parse_types(words)


@pytest.mark.parametrize("word", ["", "no-such-type", "text/", "/x/"])
def test_an_unknown_type_is_a_mistake(word: str) -> None:
    """The message quotes the word and says what can be named."""
    with pytest.raises(ConfigError, match="use an extension") as caught:
        parse_types(["csv", word])
    assert repr(word) in str(caught.value)


def test_the_types_of_the_paper() -> None:
    """Data types are those of the paper: documents, tables, archives; pages, pictures and later formats are not."""
    assert {"application/pdf", "text/csv", "application/zip", "text/plain", "application/octet-stream"} <= DATA_TYPES
    assert not {"text/html", "image/png", "text/tab-separated-values", "application/x-parquet"} & DATA_TYPES
    assert not any(matches(mime, BLOCKED_MIMES) for mime in DATA_TYPES)


def test_what_is_blocked_is_no_data() -> None:
    """No extension of a data file is blocked, and all are written small and without a dot."""
    assert not {"csv", "xls", "pdf", "zip", "json", "xml", "html", "php"} & BLOCKED_EXTENSIONS
    assert all(name == name.lower().strip(".") for name in BLOCKED_EXTENSIONS)
    assert {"jpg", "mp4", "css", "js", "woff2"} <= BLOCKED_EXTENSIONS


def test_what_is_wanted_is_not_blocked() -> None:
    """A search for films is not blocked by the list of types that are never worth a request."""
    assert blocked_extensions() == BLOCKED_EXTENSIONS
    allowed = BLOCKED_EXTENSIONS - blocked_extensions(["video/*", "image/png"])
    assert {"mp4", "avi", "png"} <= allowed
    assert not {"jpg", "mp3", "css"} & allowed
