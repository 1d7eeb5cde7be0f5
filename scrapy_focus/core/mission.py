"""What a crawl looks for: the same for a policy live, simulated, compared or checked.

A policy should do well without parameters. The user knows which files are wanted, which words suggest them and what
is to be saved. Settings or a goal state this once, and every policy receives it in this form. It fills in the
parameters that a policy leaves open.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, get_args, runtime_checkable

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.goal import OnTopic, heads_tell, types_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from scrapy_focus.core.goal import Goal

#: Default cost of a rendering, in requests, besides those that are sent for it.
RENDER_COST = 20.0

Unit = Literal["requests", "bytes", "seconds"]


class Topic(Protocol):
    """A model of a topic; :class:`~scrapy_focus.topic.relevance.LinearRelevance` is one."""

    @property
    def digest(self) -> str:
        """Identifies the model: another model has another digest."""

    def score(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return the probability that each text is on the topic, from 0 to 1, shape (n,)."""


@runtime_checkable
class LearningTopic(Topic, Protocol):
    """A model of a topic that learns from the pages of the crawl, without labels.

    A :class:`~scrapy_focus.goals.topic.TopicGoal` shows it each page that it judges, and a ``JOBDIR`` keeps its
    state. Its digest is that of its initial data, and does not change.
    """

    @property
    def refits(self) -> int:
        """Increases whenever scores of texts may have changed; recent scores are then forgotten."""

    @property
    def frequency(self) -> float | None:
        """The estimated share of on-topic pages among those met, from 0 to 1; ``None``: not known yet."""

    @property
    def alarm(self) -> str:
        """A sentence on why this model may mislead the crawl; ``""``: no sign of that."""

    def see(self, text: str, host: str = "") -> None:
        """Learn from the text of a page, before it is scored."""

    def state(self) -> Any:
        """Return the state: plain values, arrays of NumPy, and containers of them."""

    def restore(self, state: Any) -> None:
        """Restore the state of a model with the same digest."""


@runtime_checkable
class _Sees(Protocol):
    """What distinguishes a topic that learns, or is meant to."""

    def see(self, text: str, host: str) -> None:
        """Learn from a page."""


def topic_of(goal: Goal) -> Topic | None:
    """Return the model of the topic that a goal looks for, ``None`` without one."""
    return goal.relevance if isinstance(goal, OnTopic) else None


def learning(topic: Topic | None) -> LearningTopic | None:
    """Return a topic if it learns, ``None`` for any other.

    Raises
    ------
    ConfigError
        If it has a method ``see``, but lacks another attribute of a learning topic.
    """
    if not isinstance(topic, _Sees):
        return None
    if not isinstance(topic, LearningTopic):
        missing = [name for name in ("refits", "frequency", "alarm", "state", "restore") if not hasattr(topic, name)]
        raise ConfigError(
            f"{type(topic).__qualname__} learns from pages by its method see, and lacks {', '.join(missing)}: see "
            "scrapy_focus.core.mission.LearningTopic"
        )
    return topic


@dataclass(frozen=True, slots=True, kw_only=True)
class Mission:
    """What is looked for, as far as a policy may know it before the first page.

    Surrounding spaces, empty words and repeated words are dropped.

    Raises
    ------
    ConfigError
        If the unit is unknown, a type is not a MIME type, words are not a list, or the cost is not a number from 0.
    """

    types: frozenset[str] = frozenset()  # MIME types of targets, or patterns like image/*; empty: anything may be one
    words: tuple[str, ...] = ()  # words and phrases that suggest a target
    topic: Topic | None = None  # a model of the topic
    unit: Unit = "requests"  # what is to be saved
    rate: float | None = None  # requests per second that may be used in the long run; None: as many as possible
    render_cost: float = RENDER_COST  # cost of a rendering in requests, besides those sent for it
    renders: bool = True  # whether a browser may be available, as far as known before the crawl
    heads_tell: bool = False  # whether headers determine the reward, so that a HEAD is enough

    def __post_init__(self) -> None:
        if self.unit not in get_args(Unit):
            raise ConfigError(f"unit is {self.unit!r}; it is one of {', '.join(get_args(Unit))}")
        if not _are_texts(self.types) or not all("/" in each for each in self.types):
            raise ConfigError(
                f"types is {self.types!r}; it takes MIME types, or patterns like image/*, as a set of texts: "
                "FilesGoal makes them of names like csv"
            )
        if not _are_texts(self.words):
            raise ConfigError(f"words is {self.words!r}; it takes a list of words and phrases")
        if self.rate is not None and not 0 < self.rate < math.inf:
            raise ConfigError(f"rate is {self.rate!r}; it takes requests per second, above 0, or None for any")
        if not 0 <= self.render_cost < math.inf:
            raise ConfigError(f"render_cost is {self.render_cost!r}; it takes requests, 0 or more")
        words = dict.fromkeys(" ".join(word.split()) for word in self.words)
        object.__setattr__(self, "types", frozenset(self.types))
        object.__setattr__(self, "words", tuple(word for word in words if word))

    @classmethod
    def of(
        cls,
        goal: Goal,
        *,
        words: Collection[str] = (),
        topic: Topic | None = None,
        unit: Unit = "requests",
        render_cost: float = RENDER_COST,
        renders: bool = True,
    ) -> Self:
        """Return the mission that follows from a goal: from its attributes types, relevance and heads_tell, if it has
        them.
        """
        return cls(
            types=types_of(goal),  # type: ignore[arg-type]
            words=words if isinstance(words, str) else tuple(words),  # type: ignore[arg-type]
            topic=topic_of(goal) if topic is None else topic,
            unit=unit,
            render_cost=render_cost,
            renders=renders,
            heads_tell=heads_tell(goal),
        )

    def saving(self, unit: Unit) -> Self:
        """Return the same mission with another unit to be saved."""
        return replace(self, unit=unit)

    def at_rate(self, rate: float | None) -> Self:
        """Return the same mission with another rate, in requests per second."""
        return replace(self, rate=rate)

    def describe(self) -> dict[str, Any]:
        """Return as text what must be equal for a stored crawl to resume. The unit to be saved, the rate, the cost of
        a rendering and the use of a browser may change.
        """
        embedding = getattr(self.topic, "embedding", None)  # of a topic given by a sentence
        return {
            "types": ", ".join(sorted(self.types)),
            "words": ", ".join(self.words),
            "topic": "" if self.topic is None else self.topic.digest,
            "embedding": str(getattr(embedding, "digest", "")),
            "heads_tell": "yes" if self.heads_tell else "",
        }


def _are_texts(values: Iterable[object]) -> bool:
    """Whether these are several texts rather than one, which is also a collection of texts."""
    return not isinstance(values, str) and all(isinstance(each, str) for each in values)
