"""The constants of TRES: the recommended ones, and those of its paper and released code."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.printable import brief
from scrapy_focus.policies.treeq.features import (
    HUB,
    IN_SHARE,
    KEYWORD_ANCHOR,
    KEYWORD_URL,
    MOST_ODDS,
    PROBABILITY,
    WORDS,
)  # fmt: skip
from scrapy_focus.policies.treeq.tree import Rule

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from scrapy_focus.policies.treeq.features import Layout

#: Contribution of codes to the log-odds: codes that hold log-odds count fully.
_WEIGHTS = {
    PROBABILITY: 2 * MOST_ODDS, WORDS: 2 * MOST_ODDS, KEYWORD_ANCHOR: 0.2, KEYWORD_URL: 0.2, IN_SHARE: 1.0, HUB: 1.0,
}  # fmt: skip
_FASTER = 3e-3  # learning rate where the prior is a probability
_KINDS = {float: "a number from 0", int: "a whole number", bool: "True or False", str: "a text"}
_MOST = 1 << 53  # of any number
_LEAST = {"warmup": 0, "max_depth": 0, "train_every": 0, "eager": 0}  # of whole numbers; 1 of all others


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The constants to change in ``TreeQ(rules=...)``."""

    gamma: float = 0.3  # discount of later rewards
    split: Rule = "chi2"  # of leaves; as released "variance", by the text of the paper "sample-variance"
    tau: float = 16.0  # least chi-square of a split
    min_samples: int = 10  # experiences in a leaf before it is split
    min_child: int = 5  # and in each half
    min_share: float = 0.0  # share of the experiences in each half, at least
    max_depth: int = 18
    max_leaves: int = 4096
    representatives: int = 256  # scored at each choice, in all; each leaf has at least one
    prior: bool = (
        True  # start from the prediction of the features, and learn a correction; otherwise start from nothing
    )
    warmup: int = 0  # outcomes until which a random link of a random leaf is chosen, without training
    train_every: int = 1  # outcomes; 0: never, so that the prior alone decides
    eager: int = 0  # first outcomes, each of which trains
    learning_rate: float = 1e-3
    batch: int = 60
    target_every: int = 500
    fan: int = 16  # links of a page that a target looks at, drawn at random
    only_with_links: bool = False  # the network learns only from pages that gave a new link, the tree from no failure
    seeds_are_experience: bool = False  # seeds earn 1 before they are fetched
    in_links: bool = True  # features of the links to it
    link_model: bool = False  # features learned during the crawl: results of the links beside it, its words
    words: bool = True  # the link model learns words; otherwise only from the pages with the link
    hosts: bool = True  # features of the host
    url_words: bool = True  # the classifier reads the words of a URL, too, as released; in the paper, the anchor alone
    groups: bool = False  # features of tag path, URL pattern and anchor

    def __post_init__(self) -> None:
        for field in fields(self):
            value, kind = getattr(self, field.name), type(field.default)
            least = _LEAST.get(field.name, 1)
            if not _fits(value, kind, least):
                takes = f"{_KINDS[kind]} from {least}" if kind is int else _KINDS[kind]
                raise ConfigError(f"rules has {field.name} = {brief(value)}; it takes {takes}")
        if self.gamma > 1 or self.split not in get_args(Rule) or self.min_share > 0.5 or self.batch > 20_000:
            raise ConfigError(
                f"rules has gamma = {self.gamma}, split = {self.split!r}, min_share = {self.min_share}, batch = "
                f"{self.batch}; gamma is at most 1, split is 'chi2', 'variance' or 'sample-variance', min_share at "
                "most 0.5, batch at most 20,000"
            )

    @classmethod
    def of(cls, preset: str, mode: str, changes: dict[str, Any], *, topical: bool, cap: int | None) -> Rules:
        """Return the rules of a preset with some changed; ``topical``: there are keywords or a classifier.

        Raises
        ------
        ConfigError
            If there is no such rule, or its value is invalid.
        """
        _check_names(changes, [field.name for field in fields(cls)])
        rules = cls(groups=not topical)
        if topical:
            rules = cls(
                link_model=changes.get("in_links") is not False, eager=500, train_every=4, learning_rate=_FASTER
            )
        if preset:
            rules = cls._published(mode, cap)
        rules = replace(rules, **changes)
        if rules.link_model and not rules.in_links:
            raise ConfigError("rules has link_model without in_links, which it needs; change one of them")
        return rules

    @classmethod
    def _published(cls, mode: str, cap: int | None) -> Rules:
        """Return the rules of the released code, which differ by the cap of pages per domain."""
        min_samples, min_share = 5, 0.0
        if cap == 20:
            min_samples, min_share = 10, 0.2
        if mode == "tree-random":
            min_samples, min_share = 20, 0.2
        return cls(
            gamma=0.99, split="variance", representatives=1, prior=False, min_child=1, min_samples=min_samples,
            min_share=min_share, fan=32, warmup=500 if cap in (20, 100) else 300, train_every=3,
            batch=128 if cap == 5 else 60, only_with_links=True, seeds_are_experience=True, in_links=False,
        )  # fmt: skip

    def trains(self, results: int) -> bool:
        """Whether the network is trained after so many outcomes."""
        every = self.train_every
        return every > 0 and (results <= self.eager or results % every == 0)

    def weights(self, layout: Layout) -> NDArray[np.float32]:
        """Return the initial value of each code, shape (n_codes,)."""
        weights = np.zeros(layout.n_codes, np.float32)
        if layout.link_model:
            for column, weight in _WEIGHTS.items():
                weights[column] = weight
            return weights
        weights[PROBABILITY] = 1.0
        weights[[KEYWORD_ANCHOR, KEYWORD_URL]] = 0.05
        if layout.groups:
            first = layout.n_codes - 10
            weights[first : first + 9] = [1, 1, 0.5] * 3
        return weights

    def bias(self, layout: Layout) -> float | None:
        """Return the log-odds of a link whose codes are all 0; ``None`` if the weights are not those of log-odds."""
        return -2 * MOST_ODDS if layout.link_model else None


def _check_names(changes: Mapping[str, Any], known: Sequence[str]) -> None:
    unknown = [name for name in changes if name not in known]
    if unknown:
        raise ConfigError(f"rules has {', '.join(map(brief, unknown[:3]))}; there are {', '.join(known)}")


def _fits(value: Any, kind: type[object], least: int) -> bool:
    """Whether a rule of this kind may have a value; whole numbers begin with ``least``, others with 0."""
    is_kind = type(value) is kind or (kind is float and type(value) is int)
    if not is_kind or kind not in (int, float):
        return is_kind
    lowest = least if kind is int else 0
    return bool(abs(value) <= _MOST and value >= lowest)
