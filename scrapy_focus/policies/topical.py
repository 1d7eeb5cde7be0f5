"""The common base of policies that read links by a topic."""

from __future__ import annotations

from collections.abc import Collection
from os import PathLike

from scrapy_focus.core.mission import Topic
from scrapy_focus.core.parameters import configurable, parameter
from scrapy_focus.core.policy import Policy
from scrapy_focus.policies.domains import Domains
from scrapy_focus.topic.models import relevance_of


def plain(texts: Collection[str]) -> tuple[str, ...]:
    """Return texts as a tuple of plain ones."""
    return tuple(map(str, texts))


@configurable
class TopicPolicy(Policy):
    """Base of policies that read links by a topic, and limit the pages of a domain."""

    keywords: Collection[str] | None = parameter(
        "Words and phrases of the topic, see :class:`~scrapy_focus.learn.matching.Keywords`; by default those of the "
        "mission.",
        default=None,
        convert=plain,
    )
    relevance: str | PathLike[str] | Topic | None = parameter(
        "A classifier of texts, or the file of one that ``focus train`` wrote; by default the topic of the mission.",
        default=None,
        convert=relevance_of,
    )
    per_domain: int | None = parameter(
        "Maximum pages of one domain, of any type, including requested ones; ``None``: no limit. Ten "
        "failures count as one page.",
        default=None,
        at_least=1,
    )
    per_domain_least: int | None = parameter(
        "That number is halved after each ``falls_every`` requested pages, but not below this; ``None``: it "
        "is constant.",
        default=None,
        at_least=1,
    )
    falls_every: int = parameter("Requested pages after which ``per_domain`` is halved.", default=6_666, at_least=1)
    per_host: bool = parameter("Count hosts instead of registered domains.", default=False)

    def __attrs_post_init__(self) -> None:
        self.domains = Domains(
            self.per_domain, least=self.per_domain_least, falls_every=self.falls_every, by_host=self.per_host
        )
