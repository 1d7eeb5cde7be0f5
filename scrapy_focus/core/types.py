"""The data that crosses a boundary: links found, their placements, picks and outcomes.

A policy gives a :class:`Link` its :class:`Placement`. The link is then queued in the frontier, leaves it as a
:class:`Pick`, and ends as an :class:`Outcome`. All of these are immutable tuples, because a page makes about a
hundred of them.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeAlias, get_args

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

Method = Literal["GET", "HEAD", "RENDER"]
#: How a link may be fetched: whole, without its body, or by a browser that runs its scripts.
METHODS: tuple[Method, ...] = get_args(Method)
Memo: TypeAlias = "NDArray[np.float32] | NDArray[np.uint8]"


class State(IntEnum):
    """The state of a URL in the crawl.

    A URL whose fetch failed is also ``FETCHED``. A ``GIVEN_UP`` link was never requested, because a policy did not
    want it. A policy that asks for known links may place both again. ``WAITING`` covers queued links and those that
    sleep until a time (:attr:`Placement.after`).
    """

    NEW = 0
    WAITING = 1
    FLYING = 2
    FETCHED = 3
    PROBED = 4
    GIVEN_UP = 5


class Link(NamedTuple):
    """One hyperlink as found, before any decision.

    ``key`` is a 63-bit fingerprint of the request. ``host`` is the group whose requests are kept polite (for Scrapy,
    the key of the download slot). ``depth`` counts clicks from a seed. ``tag_path`` runs from the root of the page to
    the link, one ``tag.class.class#id`` per element, joined by ``/``; it is empty for a link that was not found in a
    page. ``anchor`` and ``context`` are the text of the link and the text around it. ``payload`` belongs to the
    adapter, which rebuilds the request from it; no policy reads it. ``callback`` names the function that will read
    the page, if it is not the usual one; ``""`` if not known.
    """

    url: str
    key: int
    host: str = ""
    depth: int = 0
    anchor: str = ""
    tag_path: str = ""
    context: str = ""
    state: State = State.NEW
    payload: bytes = b""
    callback: str = ""


class Placement(NamedTuple):
    """Where a link is queued: its arm, and its rank in that arm (the largest leaves first).

    ``memo`` is a small vector, shape (d,), that the pick carries back to the policy: float32 for a policy that keeps
    ranks, or bytes (uint8) of the declared width for one that keeps vectors. With ``method="HEAD"`` the link is
    requested without its body first; the policy then places it again, in state ``PROBED``. With ``method="RENDER"`` a
    browser fetches it and runs its scripts (:meth:`~scrapy_focus.core.abilities.Renders.render`).

    The link sleeps until ``after``, in seconds since the epoch. Its state is ``WAITING``, but no arm counts it until
    it is due. Then it takes the place in its arm that it would have had all along.
    """

    arm: int
    rank: float
    memo: Memo | None = None
    method: Method = "GET"
    after: float = 0.0


#: "Not now": the link is neither stored nor given up, and may be offered again when another page links to it.
NOT_NOW = Placement(-1, 0.0)


class Signal(NamedTuple):
    """A report, other than from a visit, of when a known page last changed: by a sitemap, a feed or a ping."""

    key: int
    host: str  # of the page, as ``Link.host``
    modified: float  # seconds since the epoch
    kind: str  # the reporter: "sitemap", "feed", "ping"


class Pick(NamedTuple):
    """A link taken out of the frontier to be fetched; ``id`` is valid until the pick is settled.

    ``origin`` is the arm of the page where the link was found, -1 for seeds. ``chance`` is the probability with which
    the policy chose this link, where it is known; a decision log with it can be evaluated off-policy.
    """

    id: int
    key: int
    url: str
    host: str
    depth: int
    arm: int
    rank: float
    memo: Memo | None
    origin: int
    method: Method
    payload: bytes
    chance: float | None = None


class Page(Protocol):
    """A response while it lasts; the crawl never stores it. Text and headers may be decoded on demand."""

    @property
    def url(self) -> str:
        """The URL after redirects."""

    @property
    def status(self) -> int:
        """The HTTP status."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The HTTP headers, names as sent."""

    @property
    def text(self) -> str:
        """The decoded body, ``""`` if it is not text."""

    @property
    def kind(self) -> str:
        """The MIME type that the first bytes of the body suggest; ``""`` if they suggest none or are missing."""


class Outcome(NamedTuple):
    """The result of fetching a pick. There is exactly one for each pick."""

    pick: Pick
    status: int | None = None  # HTTP status; None: no response, see error
    mime: str = ""  # type/subtype in lower case, without parameters; "": unknown
    size: int = 0  # bytes of the body as received, or as announced if it was not fetched
    seconds: float = 0.0  # from the choice to the outcome
    items: float = 0.0  # items from the pipelines, weighted by RewardPipeline
    error: str = ""  # why there is no usable page; "": the page is usable
    reward: float = 0.0  # the value that the goal gave it
    at: float = 0.0  # time of the outcome, in seconds since the epoch by the crawl's clock
    also: tuple[int, ...] = ()  # other keys of the page: the URLs that it was redirected to
    changed: bool | None = None  # whether the content changed since the last visit; None: first visit, or no response
    max_age: float | None = None  # seconds for which the page claims to stay unchanged; None: no claim
    outside: int = 0  # different links to places outside the crawl, where the adapter counts them
    payload: bytes | None = None  # for the next visit of the page, where it differs from the pick's
    content: int | None = None  # digest of the content, where each content counts once; None: otherwise
    once: bool = False  # whether it is never revisited: the page is gone, or is revisited under another key
    scripted: bool = False  # whether a browser could run scripts of the page, where one is available
    requests: int = 1  # requests sent for it, the browser's included
    received: int = 0  # bytes received over the network for it, the browser's included; 0: not known
    made: tuple[str, ...] = ()  # names of files that its scripts made in a browser and that have no URL
    page: Page | None = None

    @property
    def is_html(self) -> bool:
        """Whether the response is a page that may contain links."""
        return not self.error and "html" in self.mime
