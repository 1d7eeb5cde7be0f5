"""Words of any language."""
# ruff: noqa: RUF001

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_focus.web.words import first_word, words_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        ("a b c", []),
        ("Don't _stop_ C++, e-mail!", ["don", "stop", "mail"]),
        ("/wine/red-wine_1999.html?id=12", ["wine", "red", "wine", "1999", "html", "id", "12"]),
        ("Été e\u0301te\u0301 NAÏVE", ["été", "été", "naïve"]),
        ("Ｆｕｌｌ ①②", ["full", "12"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("می\u200cخواهم کتاب", ["می\u200cخواهم", "کتاب"]),
        ("한국어 위키", ["한국어", "위키"]),
        ("中国的 酒", ["中国", "国的", "酒"]),
        ("ワインxyメーカー", ["ワイ", "イン", "xy", "メー", "ーカ", "カー"]),
        ("ไวน์", ["ไว", "วน", "น์"]),
        ("\U0001f377wine\U0001f377", ["wine"]),
        ("\ud800 abc", ["abc"]),
    ],
)
def test_words_of_any_language(text: str, words: list[str]) -> None:
    """Words are lower case, with their marks, and composed; scripts without blanks give pairs; symbols are no words."""
    assert words_of(text) == words
    assert first_word(text) == [*words, ""][0]


@given(st.text())
def test_words_are_words(text: str) -> None:
    """Whatever the text is, what comes of it has no blanks and no ASCII punctuation, and an ASCII text needs no other rule."""
    for word in words_of(text):
        assert word
        assert not set(word) & set(" \n\t_-.,!?'\"/")
    ascii_only = "".join(letter for letter in text if letter.isascii())
    assert words_of(ascii_only + " é") == words_of(ascii_only)
