"""Examples from folders, in whatever encoding, and the measures of a cross-validation."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
import pytest

from scrapy_focus import ConfigError
from scrapy_focus.topic.examples import read_examples, read_texts
from scrapy_focus.topic.relevance import LinearRelevance
from scrapy_focus.topic.validation import Validation, cross_validate, measure
from tests.learn.topics import examples

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("a.txt", "Käse\n und\tBrot".encode(), "Käse und Brot"),
        ("a.txt", "Käse".encode("cp1252"), "Käse"),
        ("a.txt", "Käse".encode("utf-16"), "Käse"),
        ("a.txt", "\ufeffKäse".encode(), "Käse"),
        ("a.txt", b"", ""),
        ("a.html", "<title>Brot</title><p>Käse<script>x</script>".encode(), "Brot Käse"),
        ("a.HTM", b"<meta charset=iso-8859-1><p>K\xe4se", "Käse"),
        ("a.html", '<meta charset="koi8-r"><p>вино'.encode("koi8-r"), "вино"),
        ("a.xhtml", '<?xml version="1.0" encoding="utf-8"?><html><body>Käse</body></html>'.encode(), "Käse"),
        ("a.html", b"", ""),
    ],
)
def test_the_text_of_a_file(tmp_path: Path, name: str, data: bytes, text: str) -> None:
    """A byte order mark or a <meta> says the encoding; else it is UTF-8 if it can be, or Windows-1252."""
    (tmp_path / name).write_bytes(data)
    assert read_texts(tmp_path) == {tmp_path / name: text}


def test_examples_of_two_folders(tmp_path: Path) -> None:
    """Files of both come in the order of names, with those in subfolders; others are passed over, empty ones named."""
    for name, text in (
        ("on/b.txt", "red wine"),
        ("on/a/x.html", "<p>dry wine"),
        ("on/c.html", "<p>"),
        ("on/d.pdf", "x"),
        ("off/a.txt", "steel"),
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    found = read_examples(tmp_path / "on", tmp_path / "off")
    assert found.texts == ["dry wine", "red wine", "steel"]
    assert found.labels == [True, True, False]
    assert [str(file.relative_to(tmp_path)) for file in found.files] == ["on/a/x.html", "on/b.txt", "off/a.txt"]
    assert found.empty == [tmp_path / "on/c.html"]


def test_folders_without_examples(tmp_path: Path) -> None:
    """No folder, an empty one, one with other files or with empty pages only: each is named, with what to do."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other/report.pdf").write_text("x")
    (tmp_path / "blank").mkdir()
    (tmp_path / "blank/a.html").write_text("<script>x</script>")
    for name, said in (
        ("none", "is not a folder"),
        ("empty", "has no example pages, .txt, .html or .htm (it is empty)"),
        ("other", "there is only report.pdf"),
        ("blank", "none of the 1 files"),
    ):
        with pytest.raises(ConfigError) as raised:
            read_examples(tmp_path / name, tmp_path)
        assert said in str(raised.value)
        assert str(tmp_path / name) in str(raised.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="everything can be read by root")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    """It is named."""
    (tmp_path / "a.txt").write_text("wine")
    (tmp_path / "a.txt").chmod(0)
    with pytest.raises(ConfigError, match=r"a\.txt cannot be read"):
        read_texts(tmp_path)


def test_precision_recall_and_f1() -> None:
    """By hand: four found, three of them right, of five; and nothing found."""
    true = np.array([1, 1, 1, 1, 1, 0, 0, 0], bool)
    found = np.array([1, 1, 1, 0, 0, 1, 0, 0], bool)
    assert measure(found, true) == pytest.approx((3 / 4, 3 / 5, 2 * 3 / 9))
    assert measure(~found, ~true) == pytest.approx((2 / 4, 2 / 3, 2 * 2 / 7))
    assert measure(np.zeros(8, bool), true) == (0.0, 0.0, 0.0)
    folds = np.array([[[0.75, 0.6, 0.66], [0.5, 0.66, 0.58]], [[1.0, 1.0, 1.0], [1.0, 0.0, 0.0]]])
    assert Validation(folds, np.zeros(16)).f_macro.tolist() == pytest.approx([0.62, 0.5]), "of each fold, both classes"


def test_each_page_is_judged_by_a_model_that_never_saw_it() -> None:
    """Folds hold the classes in their shares, and the scores are those of models of the other folds."""
    texts, labels = examples(12, 6)
    seen = []

    def fit(some: list[str], of: list[bool]) -> LinearRelevance:
        seen.append((set(some), sum(of), len(of)))
        return LinearRelevance().fit(some, of)

    validation = cross_validate(fit, texts, labels, folds=3)
    assert [counts for _, *counts in seen] == [[8, 12]] * 3
    assert validation.measures.shape == (3, 2, 3)
    for i, text in enumerate(texts):
        (without,) = (some for some, _, _ in seen if text not in some)
        again = LinearRelevance().fit(
            *zip(*[(t, y) for t, y in zip(texts, labels, strict=True) if t in without], strict=True)
        )
        assert validation.scores[i] == again.score([text])[0]


@pytest.mark.parametrize("folds", [1, 4])
def test_folds_that_cannot_be(folds: int) -> None:
    """Every fold needs a page of each class, and there are two at least."""
    with pytest.raises(ConfigError, match="there are 3 of one class"):
        cross_validate(LinearRelevance().fit, *examples(3, 9), folds=folds)
