"""The comparison of tables of vectors: its sentences are complete, and a table that knows a language does better in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import wikispeedia
from embeddings import LANGUAGES, SENTENCES, TITLES, Areas, Row, lines, measure

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

OWN = """
import numpy as np
from embeddings import TITLES

class German:
    def embed(self, texts):
        rows = np.zeros((len(texts), len(TITLES)))
        for i, (sentence, titles) in enumerate(TITLES.items()):
            for row, text in zip(rows, texts):
                row[i] = text == sentence or text in titles["de"]
        return rows
"""


def test_each_sentence_has_titles_in_all_languages() -> None:
    """Five different ones."""
    for titles in TITLES.values():
        assert tuple(titles) == LANGUAGES
        assert all(len(set(of_language)) == 5 for of_language in titles.values())


def test_the_subjects_are_those_of_wikispeedia() -> None:
    """The eight new ones are all among them, each with a sentence and a name."""
    assert {new.rpartition("=")[2] for new in wikispeedia.NEW} < set(SENTENCES)
    assert len(SENTENCES) == len(wikispeedia.NEW) + 5
    assert all(len(forms) == 2 for forms in SENTENCES.values())


def test_a_table_that_knows_german_alone_is_perfect_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the other languages it is at chance."""
    (tmp_path / "german_embedding.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    row = measure("own", "german_embedding:German", None)
    assert row.languages == (0.5, 1, 0.5, 0.5)
    assert "| own | 0.500 | 1.000 | 0.500 | 0.500 |" in lines([row])[-1]


def test_a_row_has_the_areas_of_both_forms() -> None:
    """Means and worst by sentence, means by name."""
    row = Row("own", Areas(0.9, 0.8, 0.7, 0.6), Areas(0.5, 0.4, 0.3, 0.2), (0.5,) * 4, (20, 2000), 30, 0.25)
    assert "| own | 0.900 | 0.800 | 0.700 | 0.600 | 0.500 | 0.300 |" in lines([row])
    assert lines([row])[-1].endswith(" | 20 | 2,000 | 30 | 0.2 |")
