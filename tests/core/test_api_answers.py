"""JSON of sites: what is read of it, and what is refused."""

from __future__ import annotations

import contextlib
import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_focus.web.apis.answers import (
    DEEPEST,
    MOST,
    Unreadable,
    data_in_page,
    leaves,
    links_in,
    located,
    read_json,
)
from scrapy_focus.web.apis.templates import slots_of, spelled, template_of

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 70), 1 << 70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=20,
)


@given(VALUES)
def test_what_is_json_is_read(data: Any) -> None:
    """Data that was written as JSON is read as it was, in the encodings that JSON has."""
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-32-le"):
        assert read_json(json.dumps(data).encode(encoding)) == data


@given(st.binary() | st.text().map(lambda text: b'{"a": "' + text.encode("utf-8", "replace")))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    """Whatever a server sends, nothing else is raised."""
    with contextlib.suppress(Unreadable):
        read_json(body)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"[" * 10_000 + b"]" * 10_000, "too deep"),
        (b'{"a":' * 10_000 + b"1" + b"}" * 10_000, "too deep"),
        (b"[" * (DEEPEST + 1) + b"]" * (DEEPEST + 1), "too deep"),
        (b"[" + b"1," * (25 << 20) + b"1]", "too large"),
        (b"<html>", "no JSON"),
        (b"", "no JSON"),
        (b"9" * 5000, "no JSON"),
        (b'{"a": 1', "no JSON"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_refused_has_a_reason(body: bytes, reason: str) -> None:
    """Levels without end, 50 MB and what is no JSON are refused, each by its name; the reason can be pickled."""
    with pytest.raises(Unreadable) as caught:
        read_json(body)
    assert caught.value.reason == reason
    assert pickle.loads(pickle.dumps(caught.value)).reason == reason


def test_what_is_nearly_json_is_read() -> None:
    """NaN, a wrong encoding, a guard before the data and as many levels as are allowed harm nothing."""
    assert read_json(b'{"a": NaN, "b": -Infinity}') == {"a": None, "b": None}
    assert read_json('{"a": "é"}'.encode("latin-1")) == {"a": "\ufffd"}
    assert read_json(b")]}',\n[1]") == [1]
    assert read_json(b"while(1);[1]") == [1]
    assert read_json(b"[" * DEEPEST + b"]" * DEEPEST)


def walk(data: Any, path: str = "") -> list[tuple[str, Any]]:
    """Return what leaves() yields, by recursion."""
    if isinstance(data, dict):
        return [
            leaf
            for key, each in data.items()
            for leaf in walk(each, f"{path}.{key.replace('/', '|')}" if path else key.replace("/", "|"))
        ]
    if isinstance(data, list):
        return [leaf for each in data for leaf in walk(each, f"{path}[]")]
    wanted = isinstance(data, str) and data
    wanted = wanted or (type(data) is int and -(1 << 63) <= data < 1 << 63)
    return [(path, data)] if wanted else []


@given(VALUES)
def test_leaves_are_texts_and_whole_numbers(data: Any) -> None:
    """All texts and whole numbers are leaves, in order, with their paths; nothing else is."""
    assert list(leaves(data)) == walk(data)


def test_leaves_are_bounded() -> None:
    """Values without end, levels without end and long texts are left out; the rest is there."""
    assert len(list(leaves(list(range(MOST + 5))))) == MOST
    assert len(list(leaves([[]] * 300_000 + [1]))) == 0
    nested: Any = "x"
    for _ in range(5_000):
        nested = [nested, 1]
    assert 0 < len(list(leaves(nested))) < 100
    assert list(leaves(["a" * 5_000, "b"])) == [("[]", "b")]
    assert [leaf.indexes for leaf in located({"a": [[1], [2, 3]]})] == [(0, 0), (1, 0), (1, 1)]


def test_links_are_values_that_plainly_are() -> None:
    """Absolute URLs and rooted paths are links; units, templates, words and other schemes are not."""
    data = {
        "next": "https://b.test/x?y=1#top",
        "files": [{"url": "/files/a.csv"}, {"url": "/files/a.csv"}, {"url": "/search?q=1"}, {"url": "//c.test/d"}],
        "no": [
            "/day",
            "/",
            "km/h",
            "a/b",
            "/a b",
            "/x/{id}",
            "mailto:a@b.test",
            "http://",
            "https:///x",
            "//x",
            "http://[/",
        ],
    }
    assert links_in(data, "http://a.test/p/q") == [
        ("https://b.test/x?y=1", "next"),
        ("http://a.test/files/a.csv", "files[].url"),
        ("http://a.test/search?q=1", "files[].url"),
        ("http://c.test/d", "files[].url"),
    ]


@given(VALUES)
def test_links_of_any_data_are_absolute(data: Any) -> None:
    """Whatever is in an answer, links are absolute and have no fragment."""
    for url, _ in links_in([data, "/a/b#c"], "http://a.test/"):
        assert url.startswith(("http://", "https://"))
        assert "#" not in url


def test_data_in_the_page_is_read() -> None:
    """Data for scripts is read by its type or its name; what is for search engines, broken or a program is not."""
    page = """<html><script type="application/ld+json">{"a": 1}</script>
    <script id="__NEXT_DATA__">{"a": "</p>"}</script><script type="Application/JSON; charset=utf-8">[2]</script>
    <script type="application/vnd.api+json">3</script><script type="application/json">{broken</script>
    <script>{"json": 4}</script><script type="application/json">[5]</script>"""
    assert data_in_page(page) == [{"a": "</p>"}, [2], 3, [5]]
    assert data_in_page("") == []
    assert len(data_in_page('<script type="application/json">1</script>' * 100)) == 50
    large = f'<script type="application/json">"{"a" * 5_000_000}"</script>'
    assert len(data_in_page(large + large[:-1_000_010] + '"</script>')) == 1


@given(st.text())
def test_any_text_is_a_page(source: str) -> None:
    """Whatever a page is, its data is a list."""
    assert isinstance(data_in_page(f'<script type="application/json">{source}'), list)


@pytest.mark.parametrize(
    ("url", "template"),
    [
        ("http://A.test/app/dataset/d17", "a.test/app/dataset/#"),
        ("http://a.test/app/list?page=2&a=1&page=3", "a.test/app/list?a&page"),
        ("http://a.test/v2/sets/7.csv", "a.test/v2/sets/#.csv"),
        ("http://a.test/open-data/all", "a.test/open-data/all"),
        ("http://a.test/a-b-c-d/all", "a.test/#/all"),
        ("http://a.test/x/M%C3%BCnchen", "a.test/x/#"),
        ("http://a.test", "a.test/"),
        ("no url", ""),
        ("http://[", ""),
    ],
)
def test_templates(url: str, template: str) -> None:
    """What tells pages of a kind apart is left out of their template."""
    assert template_of(url) == template


@given(st.text(max_size=60))
def test_any_text_is_a_url(text: str) -> None:
    """No text makes an exception, and what is spelled stays as it is."""
    for url in (text, f"http://a.test/{text}", f"http://a.test/x/1?{text}"):
        assert spelled(spelled(url)) == spelled(url)
        assert isinstance(template_of(url), str)
        assert all(slots_of(url).values())
