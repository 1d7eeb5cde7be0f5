"""What TagPath's classifier reads of a link: by hand, and the same when the link is found and when it is fetched."""

from __future__ import annotations

import numpy as np
import pytest

from scrapy_focus.learn.text import N_PAIRS
from scrapy_focus.policies.tagpath.link_texts import LinkTexts
from tests.made import link

IN_CONTEXT = LinkTexts("context", case_sensitive=False)


def pair(two: str) -> int:
    """Return the number of a pair among those of the 95 characters from space to tilde."""
    return (ord(two[0]) - 32) * 95 + ord(two[1]) - 32


def test_the_features_of_a_link_by_hand() -> None:
    """Pairs in lower case; four texts have blocks of 9,025 features, in the order URL, anchor, path, context (4.6)."""
    found = link(1, url="a:Bb", anchor="CSV", tag_path="p/a", context="ab\u00e9ab")
    url = [pair("a:"), pair(":b"), pair("bb")]
    assert LinkTexts("url", case_sensitive=False).found(found).tolist() == url
    assert LinkTexts("url", case_sensitive=True).found(found).tolist() == [pair("a:"), pair(":B"), pair("Bb")]
    assert IN_CONTEXT.found(found).tolist() == [
        *url,
        *(9025 + pair(two) for two in ("cs", "sv")),
        *(2 * 9025 + pair(two) for two in ("p/", "/a")),
        *(3 * 9025 + pair(two) for two in ("ab", "ab")),
    ]
    assert LinkTexts("url", case_sensitive=True).n_features == N_PAIRS == 9025
    assert IN_CONTEXT.n_features == 4 * 9025


@pytest.mark.parametrize("case_sensitive", [False, True])
@pytest.mark.parametrize(
    "text",
    [
        "",
        "Data, 3 files",
        "\u0391\u03b8\u03ae\u03bd\u03b1 2024",
        "\u0130stanbul, 300 \u212a",  # in lower case, these have letters of ASCII
        "\x1e\x1f\x00 \x7f\x80",
        "\ud800 alone",
        "Table " * 100,
        "\u4e0b" * 100 + "end",
    ],
)
def test_a_fetched_link_has_the_features_it_was_found_with(text: str, case_sensitive: bool) -> None:
    """Whatever its texts are, the note in its memo, of some finite numbers, brings them back."""
    texts = LinkTexts("context", case_sensitive)
    for anchor, context in ((text, ""), ("", text), (text, text), ("About", text)):
        found = link(1, url="http://h/Table.CSV", anchor=anchor, context=context, tag_path=f"html/{'div/' * 200}a")
        note = texts.note(found)
        assert note.dtype == np.float32
        assert len(note) <= 101
        assert np.isfinite(note).all()
        assert texts.noted(found.url, found.tag_path, note).tolist() == texts.found(found).tolist()


def test_a_link_without_a_note_has_a_url() -> None:
    """A link that another policy queued has no texts."""
    plain = link(1, url="http://h/table.csv")
    assert IN_CONTEXT.noted(plain.url, "", np.zeros(0, np.float32)).tolist() == IN_CONTEXT.found(plain).tolist()
