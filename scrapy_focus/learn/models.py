"""Models of a topic, of whichever kind, from their files."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.printable import brief
from scrapy_focus.learn.modelfile import read_model
from scrapy_focus.learn.relevance import LinearRelevance

if TYPE_CHECKING:
    from scrapy_focus.core.mission import Topic


def load_relevance(path: str | PathLike[str]) -> Topic:
    """Return the model in a file that ``save`` or ``scrapy focus-train`` wrote, of whichever kind.

    Raises
    ------
    ConfigError
        If the file is not there, is no model, is damaged, or comes from a newer version; or if the package that its
        kind of model needs is not installed.
    """
    header, arrays = read_model(path)
    kind, version = header.get("kind"), header.get("version")
    if kind not in ("linear", "neural") or version != 1:
        raise ConfigError(
            f"{path} is a model of kind {kind!r}, version {version!r}, which this version of scrapy_focus does not "
            "know; install a newer one, or train it again with scrapy focus-train"
        )
    try:
        if kind == "linear":
            return LinearRelevance.from_parts(header, arrays)
        from scrapy_focus.learn.neural import NeuralRelevance  # PyTorch takes seconds

        return NeuralRelevance.from_parts(header, arrays)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(f"{path} is damaged ({error}); train the model again with scrapy focus-train") from error


def relevance_of(model: Topic | str | PathLike[str]) -> Topic:
    """Return a model as it is, or the one in a file; ``ConfigError`` for what is neither."""
    if isinstance(model, (str, PathLike)):
        return load_relevance(model)
    if not (callable(getattr(model, "score", None)) and isinstance(getattr(model, "digest", None), str)):
        raise ConfigError(
            f"relevance is {brief(model)}; it takes the file of a model, or an object with score(texts) and a digest"
        )
    return model
