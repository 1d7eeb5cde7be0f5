"""Models of a topic, of any kind, from their files."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.printable import brief
from scrapy_focus.learn.modelfile import read_model
from scrapy_focus.topic.examples import read_given
from scrapy_focus.topic.keywords import KeywordRelevance
from scrapy_focus.topic.relevance import LinearRelevance
from scrapy_focus.topic.shifted import ShiftedRelevance

if TYPE_CHECKING:
    from scrapy_focus.core.mission import Topic
    from scrapy_focus.topic.examples import Given

_MANY = 10  # examples of a kind, from which unlabelled pages no longer improved live crawls
_GIVEN = ("about", "positive", "negative", "keywords", "frequency", "embedding")  # the possible sources of a model


def load_relevance(path: str | PathLike[str]) -> Topic:
    """Return the model in a file that ``save`` or ``focus train`` wrote, of any kind.

    Raises
    ------
    ConfigError
        If the file does not exist, is not a model, is damaged, or comes from a newer version; or if the package that
        its kind of model needs is not installed.
    """
    header, arrays = read_model(path)
    kind, version = header.get("kind"), header.get("version")
    if kind not in ("linear", "neural") or version != 1:
        raise ConfigError(
            f"{path} is a model of kind {kind!r}, version {version!r}, which this version of scrapy_focus does not "
            "know; install a newer one, or train it again with focus train"
        )
    try:
        if kind == "linear":
            return LinearRelevance.from_parts(header, arrays)
        from scrapy_focus.topic.neural import NeuralRelevance  # PyTorch takes seconds

        return NeuralRelevance.from_parts(header, arrays)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(f"{path} is damaged ({error}); train the model again with focus train") from error


def relevance_of(model: Topic | str | PathLike[str] | Mapping[str, Any]) -> Topic:
    """Return a model unchanged, the one in a file, or one that learns from the crawl, from a description.

    The description is a dict with ``about``, a sentence, ``positive`` and ``negative``, folders of example pages,
    ``keywords``, ``frequency``, the share of all pages that are on the topic if it is known, and ``embedding``: see
    :func:`model_of`.

    Raises
    ------
    ConfigError
        For anything else.
    """
    if isinstance(model, Mapping):
        if unknown := sorted({str(name) for name in model} - {*_GIVEN}):
            raise ConfigError(f"there is no {unknown[0]!r} of a topic; there are {', '.join(_GIVEN)}")
        return model_of(**model)
    if isinstance(model, (str, PathLike)):
        return load_relevance(model)
    if not (callable(getattr(model, "score", None)) and isinstance(getattr(model, "digest", None), str)):
        raise ConfigError(
            f"relevance is {brief(model)}; it takes the file of a model, an object with score(texts) and a digest, or "
            "a dict like {'about': 'a sentence', 'keywords': ['some', 'words']}"
        )
    return model


def model_of(
    *,
    about: str = "",
    positive: str | PathLike[str] = "",
    negative: str | PathLike[str] = "",
    keywords: Collection[str] = (),
    frequency: float | None = None,
    embedding: str = "",
) -> Topic:
    """Return a model of a sentence, folders of example pages, keywords, or some of them, see :func:`made_of`.

    Raises
    ------
    ConfigError
        If there are no data on the topic, or some of them cannot be used.
    """
    if isinstance(keywords, str) or not all(isinstance(each, str) for each in keywords):
        raise ConfigError(f"keywords is {brief(keywords)}; it takes a list of words and phrases")
    if not about and not positive and not keywords:
        raise ConfigError(
            "what is the topic? Give a sentence (about), a folder with pages on it (positive), keywords, or several of "
            "these; pages that are not on it (negative) help, and are no topic"
        )
    return made_of(read_given(positive, negative), keywords, frequency, about=about, embedding=embedding)


def made_of(
    given: Given, keywords: Collection[str], frequency: float | None, *, about: str = "", embedding: str = ""
) -> Topic:
    """Return a model of a sentence, example pages, keywords, or some of them.

    With a sentence (``about``) it is an :class:`~scrapy_focus.topic.about.AboutTopic`, with or without the others.
    ``embedding`` is the source of its embedding. ``frequency`` is the share of all pages that are on the topic, if it
    is known.

    Without a sentence, keywords alone are used as they are. Ten examples of each kind or more, without keywords, train
    a model where only the probabilities follow the topic's frequency in the crawl. Anything else makes a model that
    learns from the pages of the crawl.

    Raises
    ------
    ConfigError
        If there are no data, or some are invalid.
    """
    if about:
        from scrapy_focus.topic.about import AboutTopic  # other topics need no embedding

        examples = len(given.positives) + len(given.negatives)
        others = made_of(given, keywords, frequency) if examples or keywords else None
        return AboutTopic(about, others=others, examples=examples, frequency=frequency, embedding=embedding)
    if embedding:
        raise ConfigError(f"embedding is {brief(embedding)}, and there is no sentence (about) to use it for")
    if keywords and not given.positives and frequency is None:
        return KeywordRelevance(keywords)
    if min(len(given.positives), len(given.negatives)) >= _MANY and not keywords:
        model = LinearRelevance(frequency=0.5)
        model.fit([*given.positives, *given.negatives], [True] * len(given.positives) + [False] * len(given.negatives))
        return ShiftedRelevance(model, frequency=frequency)
    from scrapy_focus.topic.adaptive import AdaptiveRelevance  # scikit-learn takes a second

    return AdaptiveRelevance(
        positives=given.positives, negatives=given.negatives, keywords=keywords, frequency=frequency
    )
