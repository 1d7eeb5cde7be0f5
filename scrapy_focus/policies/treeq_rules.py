"""The numbers by which TRES works: those that are recommended, and those of its paper and released code."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.policies.linkfeatures import KEYWORD_ANCHOR, KEYWORD_URL, PROBABILITY

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from scrapy_focus.policies.linkfeatures import Layout


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What can be changed in ``TreeQ(rules=...)``."""

    gamma: float = 0.3  # discount of what comes later
    split: Literal["chi2", "variance"] = "chi2"
    tau: float = 16.0  # least chi-square of a split
    min_samples: int = 10  # experiences in a leaf before it is split
    min_child: int = 5  # and in each half
    min_share: float = 0.0  # share of the experiences in each half, at least
    max_depth: int = 18
    max_leaves: int = 4096
    representatives: int = 256  # judged at each choice, in all; each leaf has one at least
    prior: bool = (
        True  # begin with what the features promise, and learn what is to be added; otherwise begin with nothing
    )
    warmup: int = 0  # outcomes until which a random link of a random leaf is chosen, and nothing is trained
    train_every: int = 1  # outcomes
    batch: int = 60
    target_every: int = 500
    only_with_links: bool = False  # only pages that gave a new link are experiences
    seeds_are_experience: bool = False  # seeds earn 1 before they are fetched
    in_links: bool = True  # features of the links that lead there
    hosts: bool = True  # features of the host
    groups: bool = False  # features of tag path, URL pattern and anchor

    @classmethod
    def of(cls, preset: str, changes: dict[str, Any], *, topical: bool, per_domain: int | None) -> Rules:
        """Return the rules of a preset with some changed; ``topical``: there are keywords or a classifier.

        Raises
        ------
        ConfigError
            If there is no such preset, or no such rule.
        """
        if preset not in ("", "tres-2023"):
            raise ConfigError(f"preset is {preset!r}; it is '' or 'tres-2023'")
        names = [field.name for field in fields(cls)]
        if unknown := sorted(changes.keys() - set(names)):
            raise ConfigError(f"rules has {', '.join(unknown)}; there are {', '.join(names)}")
        rules = cls(groups=not topical)
        if preset:
            rules = cls(
                gamma=0.99, split="variance", min_samples=5, min_child=1, representatives=1,
                prior=False, warmup=500 if per_domain in (None, 20, 100) else 300, train_every=3,
                batch=128 if per_domain == 5 else 60, only_with_links=True, seeds_are_experience=topical,
                in_links=False,
            )  # fmt: skip
        return replace(rules, **changes)

    def weights(self, layout: Layout) -> NDArray[np.float32] | None:
        """Return what each code is worth before anything was learned, shape (n_codes,); ``None``: nothing is known of that."""
        if not self.prior:
            return None
        weights = np.zeros(layout.n_codes, np.float32)
        weights[PROBABILITY] = 1.0
        weights[[KEYWORD_ANCHOR, KEYWORD_URL]] = 0.05
        if layout.groups:
            first = layout.n_codes - 10
            weights[first : first + 9] = [1, 1, 0.5] * 3
        return weights
