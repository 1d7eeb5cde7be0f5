"""Templates: what the URLs of one kind of page have in common."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_focus.web.templates import template_of


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
    """The differing parts of pages of a kind are not in their template."""
    assert template_of(url) == template


@given(st.text(max_size=60))
def test_any_text_is_a_url(text: str) -> None:
    """No text makes an exception."""
    for url in (text, f"http://a.test/{text}", f"http://a.test/x/1?{text}"):
        assert isinstance(template_of(url), str)
