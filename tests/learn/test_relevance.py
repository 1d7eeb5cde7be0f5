"""The linear relevance model: what it learns from few pages and in any language, and its file."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from scrapy_focus import ConfigError
from scrapy_focus.topic.models import load_relevance, relevance_of
from scrapy_focus.topic.relevance import LinearRelevance
from scrapy_focus.web.words import words_of
from tests.examples import n_examples
from tests.learn.topics import WORDS, examples, pages

DIGEST = """
from scrapy_focus.topic.relevance import LinearRelevance
from tests.learn.topics import examples
print(LinearRelevance().fit(*examples(20, 20)).digest)
"""


@pytest.fixture(scope="module")
def model() -> LinearRelevance:
    """A model of twenty pages of each class."""
    return LinearRelevance().fit(*examples(20, 20))


def odds(scores: np.ndarray) -> np.ndarray:
    """Return log-odds of probabilities."""
    return np.log(scores / (1 - scores))


# Learning


@pytest.mark.parametrize(
    ("svm", "theirs"),
    [
        (False, LogisticRegression(class_weight="balanced", max_iter=1000)),
        (True, LinearSVC(class_weight="balanced", random_state=0)),
    ],
)
def test_it_is_tfidf_and_a_linear_model(svm: bool, theirs: Any) -> None:
    """Among pages with equally many known words, the log-odds are those of scikit-learn, stretched and shifted."""
    texts, labels = examples(20, 20)
    model = LinearRelevance(svm=svm).fit(texts, labels)
    vectorizer = TfidfVectorizer(sublinear_tf=True, analyzer=words_of)
    theirs.fit(vectorizer.fit_transform(texts), labels)
    others = pages(60, on=True, seed=1, length=200) + pages(60, on=False, seed=1, length=200)  # all words occur in each
    expected = theirs.decision_function(vectorizer.transform(others))
    found = odds(model.score(others))
    slope, shift = np.polyfit(expected, found, 1)
    assert slope > 0
    np.testing.assert_allclose(found, slope * expected + shift, atol=1e-3)


@pytest.mark.few(2)
@pytest.mark.parametrize("language", WORDS)
def test_five_pages_of_each_class_are_enough(language: str) -> None:
    """Other pages are on the right side of 0.5, in any script; so are most link texts of two words that say something."""
    model = LinearRelevance().fit(*examples(5, 5, language=language))
    texts, labels = examples(40, 40, language=language, seed=1)
    assert ((model.score(texts) >= 0.5) == labels).mean() >= 0.95
    on, off, common = (words.split() for words in WORDS[language])
    links = model.score([*(f"{word} {common[0]}" for word in on), *(f"{word} {common[0]}" for word in off)])
    assert links[: len(on)].mean() > 0.5 > links[len(on) :].mean()


@pytest.mark.few(1)
@pytest.mark.parametrize(("on", "off"), [(6, 60), (60, 6), (3, 3)])
def test_half_parts_the_classes_whatever_their_sizes(on: int, off: int) -> None:
    """With ten times as many examples of one class, or three of each, pages are still separated at 0.5."""
    model = LinearRelevance().fit(*examples(on, off))
    scores = model.score(examples(50, 50, seed=1)[0])
    assert (scores[:50] >= 0.5).mean() >= 0.9
    assert (scores[50:] < 0.5).mean() >= 0.9


@pytest.mark.parametrize(("on", "off", "prior"), [(10, 30, 0.25), (20, 20, 0.49), (30, 10, 0.49)])
def test_a_text_that_says_nothing_has_the_prior(on: int, off: int, prior: float) -> None:
    """That is the share of examples on the topic, and never reaches one half."""
    model = LinearRelevance().fit(*examples(on, off))
    np.testing.assert_allclose(model.score(["", "!?", "zzz", "ещё что-то"]), prior)


def test_a_link_text_that_says_little_is_near_the_prior() -> None:
    """The words of any page leave a link where one without known words is, whatever a page of them would be."""
    model = LinearRelevance().fit(*examples(40, 10, length=200))
    nothing, little, telling, other = model.score(["", "home page", "wine grape", "steel engine"])
    assert abs(little - nothing) < 0.2
    assert telling > max(little, nothing) + 0.1
    assert other < min(little, nothing) - 0.1


def test_the_words_that_tell(model: LinearRelevance) -> None:
    """Those of the topic, those of the others, and none of those of any page among the first."""
    on, off, _ = (set(words.split()) for words in WORDS["English"])
    assert set(model.telling["on topic"][: len(on)]) == on
    assert set(model.telling["off topic"][: len(off)]) == off


def test_few_words_are_kept() -> None:
    """With a small vocabulary the most frequent words are known, the others are as if they were not there."""
    texts = ["wine red", "wine dry", "steel red", "steel old"]
    model = LinearRelevance(max_words=3).fit(texts, [True, True, False, False])
    wine, steel, dry = model.score(["wine", "steel", "dry"])
    assert wine > 0.5 > steel
    assert dry == model.prior


def test_scores_do_not_depend_on_company(model: LinearRelevance) -> None:
    """Texts are scored one by one or together, with the same result; no text gives no score."""
    texts = [*pages(5, on=True, seed=3), "", "wine", *pages(5, on=False, seed=3)]
    together = model.score(texts)
    assert together.dtype == np.float64
    np.testing.assert_allclose(together, [model.score([text])[0] for text in texts], rtol=1e-12)
    assert model.score([]).shape == (0,)


@pytest.mark.slow
def test_it_is_the_same_in_every_process() -> None:
    """The digest depends on the examples alone, not on the order of a set or on hash seeds."""
    found = set()
    for seed in ("0", "1"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        root = Path(__file__).parents[2]
        command = [sys.executable, "-c", DIGEST]
        found.add(subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=root).stdout)
    assert len(found) == 1
    assert len(found.pop().strip()) == 32


@pytest.mark.parametrize(
    ("texts", "labels", "said"),
    [
        (["a wine", "b wine"], [True, True], "got 2 examples on the topic and 0 off it"),
        ([], [], "got 0 examples on the topic and 0 off it"),
        (["!", "a"], [True, False], "no words to learn from"),
    ],
)
def test_examples_that_teach_nothing(texts: list[str], labels: list[bool], said: str) -> None:
    """One class only, or no words: the message says what is needed."""
    with pytest.raises(ConfigError, match=said):
        LinearRelevance().fit(texts, labels)


# Files


def test_a_model_survives_its_file_and_a_pickle(model: LinearRelevance, tmp_path: Path) -> None:
    """Scores, digest, prior and telling words are the same afterwards; the same model gives the same bytes."""
    model.save(tmp_path / "a.npz")
    model.save(tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    texts = [*pages(9, on=True, seed=5), "", "wine"]
    for other in (
        load_relevance(tmp_path / "a.npz"),
        relevance_of(str(tmp_path / "a.npz")),
        pickle.loads(pickle.dumps(model)),
    ):
        assert isinstance(other, LinearRelevance)
        assert (other.digest, other.prior, other.telling) == (model.digest, model.prior, model.telling)
        assert repr(other) == repr(model)
        np.testing.assert_array_equal(other.score(texts), model.score(texts))
    assert relevance_of(model) is model
    svm = LinearRelevance(svm=True).fit(*examples(20, 20))
    svm.save(tmp_path / "svm.npz")
    other = load_relevance(tmp_path / "svm.npz")
    assert isinstance(other, LinearRelevance)
    assert other.svm
    assert other.digest == svm.digest != model.digest


def test_the_digest_tells_models_apart(model: LinearRelevance) -> None:
    """Other examples give another digest, also when a model is trained again."""
    again = LinearRelevance().fit(*examples(20, 20))
    assert again.digest == model.digest
    assert again.fit(*examples(20, 21)).digest != model.digest


def header_of(path: Path) -> dict:
    with np.load(path) as file:
        return json.loads(file["header"].tobytes())


def rewrite(path: Path, header: dict, **arrays: np.ndarray) -> None:
    """Write a model file again, with another header and other arrays."""
    with np.load(path) as file:
        kept = {name: file[name] for name in file.files}
    kept.update(arrays, header=np.frombuffer(json.dumps(header).encode(), np.uint8))
    np.savez(path, **kept)


def test_files_of_another_kind_are_refused(tmp_path: Path) -> None:
    """No file, a folder, text, other arrays, a pickle: each with a message that names the file."""
    (tmp_path / "text.npz").write_text("wine\n")
    (tmp_path / "empty.npz").write_bytes(b"")
    np.savez(tmp_path / "arrays.npz", a=np.ones(3))
    np.save(tmp_path / "one.npy", np.ones(3))
    np.savez(tmp_path / "other.npz", header=np.frombuffer(b'{"file": "other"}', np.uint8))
    np.savez(tmp_path / "list.npz", header=np.frombuffer(b"[1]", np.uint8))
    np.savez(tmp_path / "objects.npz", header=np.array([{"file": 1}], object))
    (tmp_path / "pickle.npz").write_bytes(pickle.dumps([1]))
    for path in [tmp_path, tmp_path / "none.npz", *sorted(tmp_path.iterdir())]:
        with pytest.raises(ConfigError) as raised:
            load_relevance(path)
        assert str(path) in str(raised.value)
        assert "focus train" in str(raised.value) or path == tmp_path


def test_no_pickle_in_a_file_is_run(tmp_path: Path) -> None:
    """A file whose header is an object that would write a file when it is read writes none."""
    trap = tmp_path / "trap"

    class Trap:
        def __reduce__(self) -> tuple:
            return (Path.touch, (trap,))

    np.savez(tmp_path / "evil.npz", header=np.array([Trap()], object))
    with pytest.raises(ConfigError):
        load_relevance(tmp_path / "evil.npz")
    assert not trap.exists()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"format": 2}, "format 2, and this version of scrapy_focus reads 1"),
        ({"format": "x"}, "format 'x'"),
        ({"version": 2}, "kind 'linear', version 2"),
        ({"kind": "quantum"}, "kind 'quantum'"),
        ({"parameters": {"colour": 1}}, "damaged"),
        ({"prior": None}, "damaged"),
        ({"prior": 7}, "damaged"),
        ({"telling": []}, "damaged"),
    ],
)
def test_newer_and_damaged_headers(model: LinearRelevance, tmp_path: Path, changes: dict, said: str) -> None:
    """A newer format, version or kind is refused as newer, and what does not fit together as damaged."""
    path = tmp_path / "m.npz"
    model.save(path)
    rewrite(path, {**header_of(path), **changes})
    with pytest.raises(ConfigError, match=said):
        load_relevance(path)


@pytest.mark.parametrize("name", ["numbers", "idf", "weights"])
def test_damaged_numbers(model: LinearRelevance, tmp_path: Path, name: str) -> None:
    """Arrays of another length, type, order, or that are no numbers, are damage."""
    path = tmp_path / "m.npz"
    model.save(path)
    header = header_of(path)
    with np.load(path) as file:
        good = file[name]
    bad = [good[:-1], good.astype(str), good[None], good[::-1] if name == "numbers" else good * np.float32(np.nan)]
    for array in bad:
        rewrite(path, header, **{name: array})
        with pytest.raises(ConfigError, match="damaged"):
            load_relevance(path)


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a file is damaged."""
    return tmp_path_factory.mktemp("damaged") / "m.npz"


@settings(max_examples=n_examples(100), deadline=None)
@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7), cut=st.booleans())
def test_damage_anywhere_is_seen(model: LinearRelevance, damaged: Path, place: float, bit: int, cut: bool) -> None:
    """A file with one bit changed, or cut off, either gives the very same model or a clear error."""
    path = damaged
    model.save(path)
    data = bytearray(path.read_bytes())
    where = int(place * len(data))
    data[where] ^= 1 << bit
    path.write_bytes(bytes(data[:where]) if cut else bytes(data))
    try:
        assert load_relevance(path).digest == model.digest
    except ConfigError as error:
        assert str(path) in str(error)  # noqa: PT017


def test_a_model_that_cannot_be_written(model: LinearRelevance, tmp_path: Path) -> None:
    """A folder that is not there is an error of the argument."""
    with pytest.raises(ConfigError, match="cannot be written"):
        model.save(tmp_path / "no" / "m.npz")


def test_what_is_no_model() -> None:
    """An object without score and digest is refused where it is given."""
    with pytest.raises(ConfigError, match="takes the file of a model"):
        relevance_of(BytesIO())  # type: ignore[arg-type]
