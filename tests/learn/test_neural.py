"""The neural relevance model, small: what it learns, that it is the same again, and its file."""

from __future__ import annotations

import json
import pickle
from typing import TYPE_CHECKING

import numpy as np
import pytest

from scrapy_focus import ConfigError
from tests.learn.topics import examples, pages

if TYPE_CHECKING:
    from pathlib import Path

torch = pytest.importorskip("torch")

from scrapy_focus.topic.models import load_relevance  # noqa: E402
from scrapy_focus.topic.neural import NeuralRelevance  # noqa: E402

SMALL = {"length": 40, "width": 16, "hidden": 16, "epochs": 40, "rate": 3e-3}


def test_the_released_layers_by_hand() -> None:
    """Two LSTMs of 300 units over 300 dimensions, then dense layers of 300, 150, 85, 45, 50 and 10: 1,689,776 weights.

    4 gates * 300 * (300 + 300 + 2), twice; 601 * 300 + 301 * 150 + 151 * 85 + 86 * 45 + 46 * 50 + 51 * 10 + 11.
    """
    net = NeuralRelevance()._net(300, 1)
    sizes = {name: sum(each.numel() for each in net[name].parameters()) for name in ("lstm", "dense")}
    assert sizes == {"lstm": 1_444_800, "dense": 244_976}


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def model() -> NeuralRelevance:
    """A model of sixty pages of each class."""
    return NeuralRelevance(**SMALL).fit(*examples(60, 60))


def test_it_tells_the_classes_apart(model: NeuralRelevance) -> None:
    """Pages that it never saw are on the right side of 0.5; what says nothing has the prior, below it."""
    texts, labels = examples(40, 40, seed=1)
    assert ((model.score(texts) >= 0.5) == labels).mean() >= 0.95
    np.testing.assert_array_equal(model.score(["", "zzz"]), [0.49, 0.49])
    assert model.score([]).shape == (0,)


def test_texts_are_scored_alike_in_any_company(model: NeuralRelevance) -> None:
    """A short text beside longer ones has the same score as alone: the padding is not read."""
    texts = ["wine", *pages(3, on=False), "steel wine", pages(1, on=True, length=500)[0]]
    np.testing.assert_allclose(model.score(texts), [model.score([text])[0] for text in texts], rtol=1e-4)


def test_the_same_seed_gives_the_same_model(model: NeuralRelevance) -> None:
    """Training is repeatable, and leaves the random numbers of others alone."""
    before = torch.random.get_rng_state()
    again = NeuralRelevance(**SMALL).fit(*examples(60, 60))
    assert torch.equal(before, torch.random.get_rng_state())
    assert again.digest == model.digest
    assert NeuralRelevance(**{**SMALL, "seed": 1, "epochs": 1}).fit(*examples(60, 60)).digest != model.digest


def test_a_model_survives_its_file_and_a_pickle(model: NeuralRelevance, tmp_path: Path) -> None:
    """Scores, digest and prior are the same afterwards."""
    model.save(tmp_path / "m.npz")
    texts = [*pages(3, on=True, seed=2), ""]
    for other in (load_relevance(tmp_path / "m.npz"), pickle.loads(pickle.dumps(model))):
        assert isinstance(other, NeuralRelevance)
        assert (other.digest, other.prior, repr(other)) == (model.digest, model.prior, repr(model))
        np.testing.assert_array_equal(other.score(texts), model.score(texts))


@pytest.mark.parametrize(
    "change", [{"hidden": 3}, {"length": "x"}, {"colour": 1}, {"prior": None}], ids=lambda change: next(iter(change))
)
def test_a_damaged_file(model: NeuralRelevance, tmp_path: Path, change: dict) -> None:
    """Parameters that do not fit the numbers are damage."""
    path = tmp_path / "m.npz"
    model.save(path)
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    header = json.loads(arrays["header"].tobytes())
    (header if "prior" in change else header["parameters"]).update(change)
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    np.savez(path, **arrays)
    with pytest.raises(ConfigError, match="damaged"):
        load_relevance(path)


class Vectors:
    """Word vectors of three words."""

    key_to_index = {"wine_NOUN": 0, "steel": 1, "the": 2}

    def __getitem__(self, key: str) -> np.ndarray:
        return np.eye(3, dtype=np.float32)[self.key_to_index[key]]


def test_vectors_that_are_given_stay_as_they_are(tmp_path: Path) -> None:
    """Only their words are known, and training does not change them."""
    model = NeuralRelevance(**{**SMALL, "epochs": 3}).fit(*examples(30, 30), vectors=Vectors())
    model.save(tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz") as file:
        words = file["vocabulary"].tobytes().decode().split("\n")
        table = file["words.weight"]
    assert sorted(words) == ["steel", "the", "wine"]
    assert table[1 + words.index("wine")].tolist() == [1, 0, 0]
    assert table[0].tolist() == [0, 0, 0]
    assert model.score(["grape"])[0] == model.prior


def test_examples_that_teach_nothing() -> None:
    """One class only, or no words."""
    with pytest.raises(ConfigError, match="2 examples on the topic and 0 off it"):
        NeuralRelevance(**SMALL).fit(["a wine", "b wine"], [True, True])
    with pytest.raises(ConfigError, match="no words to learn from"):
        NeuralRelevance(**SMALL).fit(["!", "?"], [True, False])
