"""The relevance model of the TRES paper: a bidirectional LSTM over the first words of a text. It needs PyTorch."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.extras import require_extra
from scrapy_focus.learn.modelfile import digest_of, write_model
from scrapy_focus.learn.vectors import entry_of
from scrapy_focus.topic.relevance import SURE, UNSURE, check_classes
from scrapy_focus.web.words import words_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from numpy.typing import NDArray

    from scrapy_focus.learn.vectors import Vectors

_LAYERS = (300, 150, 85, 45)  # behind the LSTM, each with half of its inputs dropped out
_LAST = (50, 10)
_STEPS = 30  # minimum steps per pass over the examples, or it learns nothing in 25 passes with so much dropout
_AT_ONCE = 256  # texts that are scored together


class NeuralRelevance:
    """A bidirectional LSTM over the first ``length`` known words of a text, its states averaged, and dense layers
    behind it.

    It takes hundreds of examples to learn anything, and a second or two of a processor for each; for fewer, and for
    link texts, :class:`~scrapy_focus.topic.relevance.LinearRelevance` is better. Its probabilities are not calibrated:
    most are near 0 or
    1. A text without a word that the model knows has the probability ``prior``.

    Parameters
    ----------
    length
        Words of a text that are read.
    width
        Dimensions of the word vectors, where none are given to :meth:`fit`.
    hidden
        Units of the LSTM in each direction.
    epochs, batch
        Passes over the examples, and examples in a step; fewer if there are not many, so that a pass has thirty
        steps.
    rate
        Step size of Adam.
    max_words
        Words that are kept, those that occur in most examples.
    seed
        Of the first weights, of the order of examples and of dropout. On one machine the same seed gives the same
        model.

    Notes
    -----
    With the defaults the model has some two million numbers, and ``max_words`` times ``width`` for the words: 20 MB
    in memory, in a file, and in each checkpoint of a crawl with it.

    **As published**: the paper gives no sizes. **As released**, also here: 300 words of 300 dimensions, 300 units in
    each direction, mean over the words, dense layers of 300, 150, 85, 45, 50 and 10 units, dropout of one half, Adam
    at 0.001, and a configuration of 25 epochs. **As released, not here**: a program that makes one epoch, keywords of
    the topic as inputs beside the text, and an English stop list. Without vectors from a file, those of the words are
    also learned.

    References
    ----------
    Kontogiannis, Kelesis, Pollatos, Giannakopoulos, Paliouras: Tree-based Focused Web Crawling with Reinforcement
    Learning (2021).
    """

    kind = "neural"

    def __init__(
        self,
        *,
        length: int = 300,
        width: int = 300,
        hidden: int = 300,
        epochs: int = 25,
        batch: int = 256,
        rate: float = 1e-3,
        max_words: int = 20_000,
        seed: int = 42,
    ) -> None:
        _torch()
        self.length = length
        self.width = width
        self.hidden = hidden
        self.epochs = epochs
        self.batch = batch
        self.rate = rate
        self.max_words = max_words
        self.seed = seed
        self.prior = UNSURE
        self._words: list[str] = []  # in the order of their numbers, which begin with 1
        self._arrays: dict[str, NDArray[Any]] = {}  # parameters by name, and "words" of shape (n_words + 1, d), float16

    def fit(self, texts: Sequence[str], labels: Sequence[bool], *, vectors: Vectors | None = None) -> NeuralRelevance:
        """Learn from examples, discarding earlier learning; ``labels`` say which texts are on the topic.

        With ``vectors`` only words that have one are known, and these vectors do not change.

        Raises
        ------
        ConfigError
            If there are not examples of both classes, or they have no words.
        """
        torch = _torch()
        y = np.asarray(labels, bool)
        check_classes(y)
        found = [words_of(text) for text in texts]
        self._forget()
        self._words = self._frequent(found, vectors)
        self.prior = min(float(y.mean()), UNSURE)
        if not self._words:
            raise ConfigError(
                "the examples have no words to learn from; give longer texts, or vectors of their language"
            )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            table = self._first_table(vectors)
            net = self._net(int(table.shape[1]), len(table))
            net["words"].weight.data.copy_(table)
            net["words"].weight.requires_grad_(vectors is None)
            numbers = [self._numbers(words) for words in found]
            readable = [i for i, each in enumerate(numbers) if len(each)]
            self._train(net, [numbers[i] for i in readable], y[readable])
        self._arrays = {
            name: value.numpy().astype(np.float16 if name == "words.weight" else np.float32)
            for name, value in net.state_dict().items()
        }
        return self

    def _first_table(self, vectors: Vectors | None) -> Any:
        """Return a vector for each word before learning, after one for no word, shape (n_words + 1, width)."""
        torch = _torch()
        if vectors is None:
            return torch.randn(len(self._words) + 1, self.width) * 0.1
        rows = [vectors[entry_of(word, vectors)] for word in self._words]
        return torch.tensor(np.array([np.zeros_like(rows[0]), *rows]))

    def score(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return the probability that each text is on the topic, shape (len(texts),)."""
        torch = _torch()
        rows = [self._numbers(words_of(text)) for text in texts]
        scores = np.full(len(rows), self.prior)
        known = [i for i, row in enumerate(rows) if len(row)]
        with torch.inference_mode():
            for start in range(0, len(known), _AT_ONCE):
                part = known[start : start + _AT_ONCE]
                odds = _odds(self._ready, [rows[i] for i in part])
                scores[part] = torch.sigmoid(odds.double().clamp(-SURE, SURE)).numpy()
        return scores

    def _train(self, net: Any, rows: list[NDArray[np.int64]], y: NDArray[np.bool_]) -> None:
        torch = _torch()
        truth = torch.tensor(y.astype(np.float32))
        optimizer = torch.optim.Adam([each for each in net.parameters() if each.requires_grad], lr=self.rate)
        loss = torch.nn.BCEWithLogitsLoss()
        rng = np.random.default_rng(self.seed)
        batch = max(1, min(self.batch, len(rows) // _STEPS))
        net.train()
        for _ in range(self.epochs):
            order = rng.permutation(len(rows))
            for start in range(0, len(order), batch):
                part = order[start : start + batch].tolist()
                optimizer.zero_grad()
                loss(_odds(net, [rows[i] for i in part]), truth[part]).backward()
                optimizer.step()

    def _frequent(self, found: list[list[str]], vectors: Vectors | None) -> list[str]:
        counts: dict[str, int] = {}
        for words in found:
            for word in dict.fromkeys(words):
                counts[word] = counts.get(word, 0) + 1
        known = [word for word in counts if vectors is None or entry_of(word, vectors)]
        return sorted(known, key=lambda word: (-counts[word], word))[: self.max_words]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {word: i for i, word in enumerate(self._words, 1)}

    def _numbers(self, words: list[str]) -> NDArray[np.int64]:
        places = self._places
        known = [places[word] for word in words if word in places]
        return np.array(known[: self.length], np.int64)

    def _net(self, width: int, n_words: int) -> Any:
        nn = _torch().nn
        sizes = [2 * self.hidden, *_LAYERS]
        dense: list[Any] = []
        for before, after in zip(sizes, [*_LAYERS, _LAST[0]], strict=True):
            dense += [nn.Dropout(0.5), nn.Linear(before, after), nn.ReLU()]
        dense += [nn.Dropout(0.5), nn.Linear(*_LAST), nn.ReLU(), nn.Linear(_LAST[1], 1)]
        return nn.ModuleDict(
            {
                "words": nn.Embedding(n_words, width, padding_idx=0),
                "lstm": nn.LSTM(width, self.hidden, batch_first=True, bidirectional=True),
                "dense": nn.Sequential(*dense),
            }
        )

    @cached_property
    def _ready(self) -> Any:
        torch = _torch()
        if not self._arrays:
            raise ConfigError("the model was not trained; call fit() first, or load one")
        net = self._net(self._arrays["words.weight"].shape[1], len(self._arrays["words.weight"]))
        net.load_state_dict({name: torch.tensor(value.astype(np.float32)) for name, value in self._arrays.items()})
        return net.eval()

    def _forget(self) -> None:
        for name in ("digest", "_places", "_ready"):
            self.__dict__.pop(name, None)

    def _header(self) -> dict[str, Any]:
        names = ("length", "width", "hidden", "epochs", "batch", "rate", "max_words", "seed")
        return {"kind": self.kind, "parameters": {name: getattr(self, name) for name in names}, "prior": self.prior}

    @cached_property
    def digest(self) -> str:
        """Identifies the parameters: two models with one digest give the same scores."""
        return digest_of({**self._header(), "words": self._words}, self._arrays)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to a file, ``.npz``; :func:`~scrapy_focus.topic.models.load_relevance` reads it."""
        words = np.frombuffer("\n".join(self._words).encode("utf-8", "replace"), np.uint8)
        write_model(path, {**self._header(), "version": 1}, {**self._arrays, "vocabulary": words})

    @classmethod
    def from_parts(cls, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> NeuralRelevance:
        """Make a model from the contents of a file; ``KeyError``, ``TypeError`` or ``ValueError`` if they are
        inconsistent.
        """
        model = cls(**header["parameters"])
        model.prior = float(header["prior"])
        model._words = arrays.pop("vocabulary").tobytes().decode().split("\n")
        model._arrays = arrays
        if len(arrays["words.weight"]) != len(model._words) + 1:
            raise ValueError("its words and its numbers do not fit together")
        try:
            model.score(model._words[:1])
        except RuntimeError as error:
            raise ValueError("its layers do not fit together") from error
        return model

    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in self.__dict__.items() if name not in ("_places", "_ready")}
        return {**state, "_words": "\n".join(self._words)}  # one text: thousands take ten times as long to pickle

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _words=state["_words"].split("\n") if state["_words"] else [])

    def __repr__(self) -> str:
        return f"NeuralRelevance({len(self._words):,} words, {self.digest})"


def _odds(net: Any, rows: list[NDArray[np.int64]]) -> Any:
    """Return the log-odds of texts with at least one word each, shape (len(rows),)."""
    torch = _torch()
    rnn = torch.nn.utils.rnn
    lengths = torch.tensor([len(row) for row in rows])
    words = net["words"](rnn.pad_sequence([torch.from_numpy(row) for row in rows], batch_first=True))
    packed = rnn.pack_padded_sequence(words, lengths, batch_first=True, enforce_sorted=False)
    states, _ = rnn.pad_packed_sequence(net["lstm"](packed)[0], batch_first=True)  # zero after the end of a text
    return net["dense"](states.sum(dim=1) / lengths[:, None])[:, 0]


def _torch() -> Any:
    require_extra("a neural model", "neural", "torch")
    import torch

    return torch
