"""The data that crosses a boundary: what was found, where it waits, what was chosen, what came back.

A :class:`Link` is placed by the policy (:class:`Placement`), waits in the frontier, leaves it as a :class:`Pick`, and
comes back as an :class:`Outcome`. All of them are immutable, and tuples, as they are made a hundred times a page.
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
    """What the crawl knows about a URL.

    ``FETCHED`` is also the state of those that failed; ``GIVEN_UP`` that of those that a policy wants not, which were
    never asked for. Both may be placed again, by a policy that asks for known links. ``WAITING`` is also the state of
    those that sleep until a time (:attr:`Placement.after`).
    """

    NEW = 0
    WAITING = 1
    FLYING = 2
    FETCHED = 3
    PROBED = 4
    GIVEN_UP = 5


class Link(NamedTuple):
    """One hyperlink as found, before any decision.

    ``key`` is a 63-bit fingerprint of the request, ``host`` the group within which requests are kept polite (for
    Scrapy, the key of the download slot), ``depth`` the number of clicks from a seed. ``tag_path`` runs from the root
    of the page to the link, one ``tag.class.class#id`` per element, joined by ``/``; it is empty where the link was not
    found in a page. ``anchor`` and ``context`` are the text of the link and around it. ``payload`` belongs to the
    adapter, which needs it to build the request again; no policy reads it. ``callback`` names what will read the page,
    where that is not what reads most pages; ``""`` where nobody says.
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
    """Where a link waits: in an arm, and among its equals by rank (the larger leaves first).

    ``memo`` is a small vector that the policy wants back with the pick, shape (d,): float32 where the policy keeps
    ranks, and bytes (uint8) of the width that it keeps where it keeps vectors. With ``method="HEAD"`` the link is
    looked at without its body first; the policy then places it again, in state ``PROBED``. With ``method="RENDER"`` a
    browser fetches it, and runs its scripts (:meth:`~scrapy_focus.core.abilities.Renders.render`).

    Before ``after``, in seconds since the epoch, the link does not leave: it sleeps. Its state is ``WAITING``, but no
    arm counts it until it is due, and then it waits in its arm as if it had been there all the time.
    """

    arm: int
    rank: float
    memo: Memo | None = None
    method: Method = "GET"
    after: float = 0.0


#: Says of a link "not now": it is not stored and not given up, and may be offered again when another page links to it.
NOT_NOW = Placement(-1, 0.0)


class Signal(NamedTuple):
    """Says of a page that is known when it changed last, other than by a visit: a sitemap, a feed, a ping."""

    key: int
    host: str  # of the page, as ``Link.host``
    modified: float  # seconds since the epoch
    kind: str  # who says so: "sitemap", "feed", "ping"


class Pick(NamedTuple):
    """A link that was taken out of the frontier to be fetched; ``id`` is valid until the pick is settled.

    ``origin`` is the arm of the page on which the link was found, -1 for seeds. ``chance`` is the probability with
    which the policy chose this link, where it is known: with it, a decision log can be evaluated off-policy.
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
    """A response as long as it lasts; the crawl never stores it. Text and headers may be made when asked for."""

    @property
    def url(self) -> str:
        """Where it came from, after redirects."""

    @property
    def status(self) -> int:
        """The HTTP status."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The HTTP headers, names as sent."""

    @property
    def text(self) -> str:
        """The decoded body, ``""`` where it is not text."""

    @property
    def kind(self) -> str:
        """The MIME type that the first bytes of the body speak for, ``""`` where they say nothing, or are not here."""


class Outcome(NamedTuple):
    """What fetching a pick brought back. Exactly one comes for each pick."""

    pick: Pick
    status: int | None = None  # HTTP status; None: there was no response, see error
    mime: str = ""  # type/subtype in lower case, without parameters; "": unknown
    size: int = 0  # bytes of the body as received, or as announced where it was not fetched
    seconds: float = 0.0  # from the choice to the outcome
    items: float = 0.0  # items that came out of the pipelines, weighted by RewardPipeline
    error: str = ""  # why there is no usable page; "": there is one
    reward: float = 0.0  # what the goal made of it
    at: float = 0.0  # when it came, in seconds since the epoch, as the crawl is told
    also: tuple[int, ...] = ()  # keys under which the page is known besides: those that it was redirected to
    changed: bool | None = None  # whether it is another one than was read last; None: not read before, or nothing came
    max_age: float | None = None  # seconds for which the page says that it stays as it is; None: it says nothing
    outside: int = 0  # different links of the page that lead where the crawl does not go, where the adapter counts them
    payload: bytes | None = None  # of the next visit of the page, where the adapter has another one than the pick's
    content: int | None = None  # what tells its content from others, where each content counts once; None: it does not
    once: bool = False  # whether it does not come back: its page is gone, or known by another key, under which it does
    scripted: bool = False  # whether its page has scripts that a browser could run, where one may be asked
    requests: int = 1  # that were sent for it, those of a browser too
    received: int = 0  # bytes that came over the network for it, likewise; 0: not known
    made: tuple[str, ...] = ()  # names of files that its scripts made in a browser, which have no URL
    page: Page | None = None

    @property
    def is_html(self) -> bool:
        """Whether a page came back in which links can be found."""
        return not self.error and "html" in self.mime
