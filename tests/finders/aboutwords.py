"""A stand-in for the model of a sentence: a text is as relevant as the share of the words of the sentence in it."""

from __future__ import annotations

import hashlib
import re
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from scrapy_focus.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


class AboutWords:
    """Learns nothing but the number of pages and links that it was shown."""

    alarm = ""
    frequency: float | None = None
    refits = 0

    def __init__(self, about: str, *, embedding: str = "") -> None:
        if about == "???":
            raise ConfigError("about is '???': no word of it is known")
        self.about = about
        self.digest = hashlib.sha256(about.encode()).hexdigest()
        self.pages = 0
        self.links = 0

    def score(self, texts: Sequence[str]) -> NDArray[np.float64]:
        wanted = set(self.about.split())
        return np.array([len(wanted & _words(text)) / len(wanted) for text in texts])

    def words_for(self, text: str) -> list[str]:
        return [word for word in self.about.split() if word in _words(text)]

    def see(self, text: str, host: str = "") -> None:
        self.pages += 1

    def see_links(self, texts: Sequence[str]) -> None:
        self.links += len(texts)

    def state(self) -> Any:
        return {"pages": self.pages, "links": self.links}

    def restore(self, state: Any) -> None:
        self.pages, self.links = state["pages"], state["links"]


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def stand_in() -> ModuleType:
    """Return a module like that of the model, with the stand-in."""
    module = ModuleType("scrapy_focus.topic.about")
    module.AboutTopic = AboutWords  # type: ignore[attr-defined]
    return module


def install() -> None:
    """Let this process use the stand-in."""
    sys.modules["scrapy_focus.topic.about"] = stand_in()
