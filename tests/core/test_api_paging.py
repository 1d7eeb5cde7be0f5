"""What comes behind an answer, where it says that there is one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_focus.web.apis.answers import Call
from scrapy_focus.web.apis.paging import cursor_name, last_number, next_of

API = "http://a.test/api"
ROWS = [{"id": 1}, {"id": 2}]


@pytest.mark.parametrize(
    ("asked", "data", "following", "how"),
    [
        ("?p=1", {"next": f"{API}?p=2", "items": ROWS}, "?p=2", "url"),
        ("?p=1", {"next": "?p=2", "items": ROWS}, "?p=2", "url"),
        ("?p=1", {"_links": {"next": {"href": "/api?p=2"}}, "items": ROWS}, "?p=2", "url"),
        ("?p=1", {"@odata.nextLink": f"{API}?skip=2", "value": ROWS}, "?skip=2", "url"),
        ("?p=1", {"links": [{"rel": "self", "href": "/x"}, {"rel": "next", "href": "/api?p=2"}]}, "?p=2", "url"),
        ("?p=1", {"next": "http://b.test/api?p=2", "items": ROWS}, "", "end"),
        ("?p=1", {"next": f"{API}?p=1", "items": ROWS}, "", "end"),
        ("?p=1", {"next": None, "pages": 9, "items": ROWS}, "", "end"),
        ("?page=1", {"pages": 2, "items": ROWS}, "?page=2", "number"),
        ("?page=2", {"pages": 2, "items": ROWS}, "", "end"),
        ("?page=1", {"meta": {"pagination": {"total_pages": "3"}}, "items": ROWS}, "?page=2", "number"),
        ("?page=1&size=2", {"total": 3, "items": ROWS}, "?page=2&size=2", "number"),
        ("?page=2&size=2", {"total": 3, "items": ROWS[:1]}, "", "end"),
        ("?page=1", {"total": 3, "items": []}, "", "end"),
        ("?page=1", {"items": ROWS}, "", ""),
        ("?page=1", ROWS, "", ""),
        ("?page=1", {"count": 2, "items": ROWS}, "", "end"),
        ("?nr=3", {"page": 3, "pages": 4, "items": ROWS}, "?nr=4", "number"),
        ("?offset=4&limit=2", {"hits": {"total": {"value": 9}, "hits": ROWS}}, "?offset=6&limit=2", "number"),
        ("?offset=7&limit=2", {"total": 9, "items": ROWS}, "", "end"),
        ("?offset=7", {"has_more": True, "items": ROWS}, "", "flag"),
        ("?offset=7", {"done": True, "total": 90, "items": ROWS}, "", "end"),
        ("/page/3?a=b", {"pages": 4, "items": ROWS}, "/page/4?a=b", "number"),
        ("/page/4?a=b", {"pages": 4, "items": ROWS}, "", "end"),
        ("?cursor=a", {"next_cursor": "b=", "items": ROWS}, "?cursor=b%3D", "cursor"),
        ("", {"next_cursor": "b=", "items": ROWS}, "", ""),
        ("?cursor=a", {"next_cursor": "b", "has_more": False, "items": ROWS}, "", "end"),
        ("?page=1", {"price": {"total": 900}, "items": ROWS}, "", ""),
    ],
)  # fmt: skip
def test_next(asked: str, data: Any, following: str, how: str) -> None:
    """A next page is a URL, a cursor or a number within a total that the answer states, and nothing else."""
    said = next_of(Call(API + asked, data))
    assert (said.url, said.how) == (API + following if following else "", how)


def test_what_scripts_were_seen_to_do() -> None:
    """A cursor goes where scripts put it; a mere flag counts if the caller says so; pages may begin at zero."""
    call = Call(f"{API}?q=x", {"page_info": {"end_cursor": "a b"}, "items": ROWS})
    assert cursor_name(f"{API}?q=x&after=a%20b", call) == "after"
    assert cursor_name(f"{API}?q=y&after=a%20b", call) == ""
    assert cursor_name(f"{API}?q=x&after=c", call) == ""
    assert next_of(call, cursors=["after"]).url == f"{API}?q=x&after=a%20b"
    assert next_of(Call(f"{API}?offset=7", {"done": False, "items": ROWS}), by_flag=True).url == f"{API}?offset=9"
    assert next_of(Call(f"{API}?page=1", {"pages": 2, "items": ROWS}), zero=True).url == ""
    assert last_number(Call(f"{API}?page=1&size=4", {"total": 9, "items": ROWS})) == 3


@given(
    st.dictionaries(
        st.sampled_from(["next", "pages", "total", "count", "has_more", "next_cursor", "items", "links", "meta", "page"]),
        st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.lists(st.integers(), max_size=3)
        | st.dictionaries(st.sampled_from(["next", "href", "total", "value"]), st.integers() | st.text(), max_size=2),
    ),
    st.sampled_from(["?page=1", "?offset=0&limit=2", "?cursor=x", "/page/2", "", "?page=" + "9" * 30, "?page=²"]),
)  # fmt: skip
def test_any_answer_says_something(data: Any, asked: str) -> None:
    """Whatever an answer says, what follows is another URL of the same site, or none."""
    said = next_of(Call(API + asked, data), cursors=["after"], by_flag=True)
    assert said.url != API + asked
    assert not said.url or said.url.startswith("http://a.test")
