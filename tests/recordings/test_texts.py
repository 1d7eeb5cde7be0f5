"""Strings in columns are what they were as lists and dicts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_focus.lab.recordings.texts import Labels, Notes, Numbers, Texts, hash_of, in_order, pack

STRINGS = st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=20)


@given(STRINGS)
def test_texts_are_a_list(strings: list[str]) -> None:
    """By number from both ends, by slice, one after the other, and compared."""
    texts = Texts(*pack(strings))
    assert texts == strings
    assert list(texts) == strings
    assert texts[1:5] == strings[1:5]
    assert texts[::-2] == strings[::-2]
    assert [texts[np.int32(i)] for i in range(-len(strings), len(strings))] == strings * 2
    assert texts != [*strings, ""]
    assert texts != [*strings[:-1], 1]
    for outside in (len(strings), -len(strings) - 1):
        with pytest.raises(IndexError):
            texts[outside]


@given(STRINGS, st.data())
def test_labels_are_a_list_and_notes_a_dict(names: list[str], data: st.DataObject) -> None:
    """Whichever of the names are used, and however often; notes are those that say something."""
    names = ["", *dict.fromkeys(names)]
    numbers = data.draw(st.lists(st.integers(0, len(names) - 1), max_size=20))
    strings = [names[number] for number in numbers]
    labels = Labels(np.array(numbers, np.int32), Texts(*pack(names)))
    assert labels == strings
    assert labels[-3:] == strings[-3:]
    assert labels.some(range(len(strings))) == strings
    assert all(labels[i] is labels[j] for i, a in enumerate(numbers) for j, b in enumerate(numbers) if a == b)
    notes, expected = Notes(labels), {i: text for i, text in enumerate(strings) if text}
    assert notes == expected
    assert len(notes) == len(expected)
    for number in range(-2, len(strings) + 2):
        assert (number in notes) == (number in expected)
        assert notes.get(number, "none") == expected.get(number, "none")


@given(STRINGS, st.text())
def test_numbers_are_a_dict(strings: list[str], other: str) -> None:
    """Whatever is asked for, what cannot be encoded too."""
    strings = list(dict.fromkeys(strings))
    expected = {text: number for number, text in enumerate(strings)}
    numbers = Numbers(strings, *in_order(np.array([hash_of(text) for text in strings], np.int64)))
    assert dict(numbers) == expected
    for text in (other, "\ud800"):
        assert numbers.get(text) == expected.get(text)


def test_equal_hashes_are_told_apart() -> None:
    """Among strings with one hash, the string decides."""
    wanted = hash_of("b")
    numbers = Numbers(["a", "b", "c"], np.full(3, wanted), np.array([2, 0, 1], np.int32))
    assert numbers["b"] == 1
    numbers = Numbers(["a", "c"], np.full(2, wanted), np.array([0, 1], np.int32))
    assert "b" not in numbers
