"""The common base of policies that group links by their tag paths."""

from __future__ import annotations

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.parameters import configurable, parameter
from scrapy_focus.core.policy import Policy
from scrapy_focus.learn.clusters import Clusters, Index
from scrapy_focus.learn.text import GramProjector


@configurable
class GroupsTagPaths(Policy):
    """Base of policies that group links by their tag paths."""

    theta: float = parameter("Cosine similarity at which a tag path joins a cluster.", default=0.75, above=0, at_most=1)
    n: int = parameter("Length of the n-grams, in elements of the path.", default=2, at_least=1)
    m: int = parameter("Vectors have ``2**m`` dimensions.", default=12, at_least=1, at_most=30)
    w: int = parameter(
        "Positions of the vocabulary are hashed modulo ``2**w``; at least `m`.", default=15, at_least=1, at_most=30
    )
    index: Index = parameter(
        "How the nearest cluster is found, see :class:`~scrapy_focus.learn.clusters.Clusters`.", default="numpy"
    )
    max_clusters: int = parameter("See :class:`~scrapy_focus.learn.clusters.Clusters`.", default=4096, at_least=1)

    def __attrs_post_init__(self) -> None:
        if self.m > self.w:
            raise ConfigError(f"{type(self).__qualname__}(m={self.m}, w={self.w}): m is at most w")
        self.projector = GramProjector(n=self.n, m=self.m, w=self.w)
        self.clusters = Clusters(
            dim=1 << self.m, threshold=self.theta, max_clusters=self.max_clusters, index=self.index
        )
