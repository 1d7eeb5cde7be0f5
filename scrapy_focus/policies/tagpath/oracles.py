"""Policies that know the truth before the crawl: bounds for comparison, for recorded sites only.

How good could a crawl be? A replay knows the whole site, so it can run a policy that knows it, too. The finds of such
a policy with so many requests are at best approached by a crawl that has to learn; nobody can run such a crawl live.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from attrs import field

from scrapy_focus.core.errors import PolicyError
from scrapy_focus.core.parameters import configurable
from scrapy_focus.core.policy import Policy
from scrapy_focus.core.reason import Part, Reason, depth_of
from scrapy_focus.core.types import Placement
from scrapy_focus.learn.classifier import Model
from scrapy_focus.policies.tagpath.link_texts import Features
from scrapy_focus.policies.tagpath.policy import FIRST, TARGETS, TagPath

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from scrapy_focus.core.frontier import Ranked
    from scrapy_focus.core.types import Link, Outcome, Pick

Kind = Literal["page", "target", "redirect", "dead", "other", "unknown"]


class Truth(Protocol):
    """The truth about a recorded site."""

    def kind(self, url: str) -> Kind:
        """Return the kind of a URL: a page with links, a target, a redirect, an error (dead), or anything unwanted.

        ``"unknown"`` is a URL that was not recorded.
        """

    def targets(self) -> Sequence[Link]:
        """Return a link, of depth 0, to every target of the site, in the order of their discovery."""

    def leads_to(self, key: int) -> NDArray[np.int64]:
        """Return the keys of the links that a request for a URL, given by its key, would bring, each once.

        They are those on a page, in document order, or the target of a redirect; shape (n_links,).
        """


class Informed(Policy):
    """Base of policies that receive the truth, by :meth:`inform`, before they place anything.

    The truth is not pickled: after a resume, inform the policy again.

    Raises
    ------
    PolicyError
        If the truth is needed and was never given.
    """

    _truth: Truth | None = None

    @property
    def needs_truth(self) -> bool:
        """Whether the truth is required; such a policy cannot crawl live."""
        return True

    @property
    def truth(self) -> Truth:
        """The truth."""
        if self._truth is None:
            raise PolicyError(
                f"{type(self).__name__} was not given the truth about the site; call inform(truth) before the crawl "
                "and after a resume, in a replay of a recorded site; for a live crawl choose another policy"
            )
        return self._truth

    def inform(self, truth: Truth) -> None:
        """Give the policy the truth."""
        self._truth = truth

    def seeds(self) -> Sequence[Link] | None:
        """Return the links to start with, ``None`` for the usual seeds of the site."""
        return None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_truth"}


class Omniscient(Informed):
    """The upper bound of the SB-CLASSIFIER paper: it starts with all targets and requests nothing else.

    It finds one target with each request. Links to anything else are given up, whoever found them.

    Examples
    --------
    >>> from scrapy_focus import Link
    >>> class Portal:
    ...     def kind(self, url):
    ...         return "target" if url.endswith(".csv") else "page"
    ...     def targets(self):
    ...         return [Link("http://a/1.csv", 1), Link("http://a/2.csv", 2)]
    >>> policy = Omniscient()
    >>> policy.inform(Portal())
    >>> [place.rank for place in policy.place(policy.seeds(), None)]
    [-1.0, -2.0]
    """

    summary: ClassVar[str] = "Receives the addresses of all targets, and requests nothing else: no crawl can do better."
    paper_names: ClassVar[Mapping[str, Mapping[str, Any]]] = {"OMNISCIENT": {}}
    is_bound: ClassVar[bool] = True
    reads_page: ClassVar[bool] = False

    frontier: Ranked

    def __init__(self) -> None:
        self._found = 0

    def seeds(self) -> Sequence[Link] | None:
        return self.truth.targets()

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        kind = self.truth.kind
        return [self._queue() if kind(link.url) == "target" else None for link in links]

    def select(self, busy: Collection[str]) -> Pick | None:
        _ = self.truth  # raises without the truth, even after a resume
        return self.frontier.pop(0, busy)

    def _queue(self) -> Placement:
        self._found += 1
        return Placement(0, -float(self._found))


@configurable
class OracleTagPath(TagPath, Informed):
    """SB-ORACLE: the bandit of :class:`~scrapy_focus.policies.tagpath.TagPath` with the truth for a classifier.

    Links to targets are fetched at once, links to pages and redirects are queued in the cluster of their tag path,
    and links that are dead, worthless or unknown are given up. It only has to learn which cluster leads to targets.
    So it shows the largest possible gain from a better classifier in TagPath.

    Notes
    -----
    As released, no HEAD is sent and dead links cost nothing. That makes it a bound; its number of requests is not
    comparable with that of crawls that have to find out. Seeds are fetched whatever their kind, as released.

    Examples
    --------
    >>> import numpy as np
    >>> from scrapy_focus import Link, Mission, memory_frontier
    >>> class Portal:
    ...     def kind(self, url):
    ...         return {"csv": "target", "old": "dead"}.get(url.rpartition(".")[2], "page")
    ...     def targets(self):
    ...         return []
    >>> policy = OracleTagPath()
    >>> policy.inform(Portal())
    >>> policy.open(memory_frontier(), np.random.default_rng(0), Mission())
    >>> policy.place([Link("http://a/", 1)], None)[0].arm
    2
    >>> policy.place([Link("http://a/1.csv", 2)], None)[0].arm
    0
    """

    summary: ClassVar[str] = (
        "Learns which places on a page have links that lead to targets, and receives the kind of each address."
    )
    paper_names: ClassVar[Mapping[str, Mapping[str, Any]]] = {"SB-ORACLE": {}}

    # unused, because there is nothing to learn about URLs
    batch: int = field(default=10, init=False)
    classifier: Model = field(default="logistic", init=False)
    features: Features = field(default="url", init=False)
    case_sensitive: bool = field(default=False, init=False)
    probe: bool | None = field(default=False, init=False)
    blocked: Collection[str] | None = field(default=frozenset(), init=False)

    def select(self, busy: Collection[str]) -> Pick | None:
        _ = self.truth  # raises without the truth, even after a resume
        return super().select(busy)

    def explain(self, pick: Pick) -> Reason:
        if pick.arm == TARGETS:
            return Reason(depth_of(pick), Part("a known find", {"kind": "known target"}))
        return super().explain(pick)

    def _classify(self, link: Link, *, seed: bool) -> int | None:
        kind = self.truth.kind(link.url)
        if kind == "target":
            return TARGETS
        return FIRST if seed or kind in ("page", "redirect") else None

    def _label(self, outcome: Outcome) -> bool:
        return outcome.reward > 0
