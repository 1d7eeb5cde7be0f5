"""What the spiders of this package yield."""

from dataclasses import InitVar, dataclass
from typing import Any, Literal

#: On what the link to an article was found.
By = Literal["page", "feed", "sitemap", "start"]

#: From which relevance on a page counts as one on the topic.
RELEVANT = 0.5


@dataclass
class DataFile:
    """One data file that was found and stored.

    Its bytes are its ``content``, which is no field, and so no part of what feeds export, and empty once it is stored.
    """

    url: str
    mime: str  # as the server says, without parameters; or else as its extension or its first bytes say
    size: int  # bytes
    page: str  # URL of the page on which it was found
    anchor: str  # text of the link to it
    name: str  # as its server or URL calls it
    body: InitVar[bytes]
    sha256: str = ""
    path: str = ""  # where it is stored, relative to the folder of what was found
    state: str = ""  # since the last crawl with the folder: new, changed or same
    link: str = ""  # URL that was asked for, which may have redirected
    etag: str = ""
    last_modified: str = ""
    cut: bool = False  # whether it is known not to be all of it
    why: str = ""  # the link was followed: what was known of it when it was chosen
    unchanged: InitVar[bool] = False  # whether the server says so, and sent no bytes

    def __post_init__(self, body: bytes, unchanged: bool) -> None:
        self.content = body
        self.is_unchanged = unchanged


@dataclass
class GoneFile:
    """A file of an earlier crawl that is not there any more."""

    url: str


@dataclass
class SkippedFile:
    """What may have been a data file, and was not fetched to its end."""

    url: str
    reason: str
    page: str  # URL of the page on which it was found
    anchor: str  # text of the link to it


@dataclass
class TopicPage:
    """One page that was fetched in a search for a topic, whether it is on it or not."""

    url: str
    title: str
    relevance: float  # how likely it is on the topic: 0.5 or more counts as relevant
    host: str  # with its port, if the URL names one
    domain: str  # the registered domain of the host, within which per_domain counts
    depth: int  # clicks from a seed
    path: list[
        dict[str, str]
    ]  # from the seed on: each page (url), and the text of the link that was followed on it (anchor)
    why: str  # it was fetched: what was known of its link when it was chosen
    language: str  # as the page declares it, "" if it does not
    fetched_at: str  # ISO 8601, UTC


@dataclass
class ImportantPage:
    """One page that was fetched in a search for the most important ones."""

    url: str
    title: str
    depth: int  # clicks from where the crawl began
    status: int  # of HTTP
    page: str  # URL of the page on which it was found
    anchor: str  # text of the link to it
    fetched_at: str  # ISO 8601, UTC


@dataclass
class StructuredEntity:
    """One entity that a page describes, of those that are looked for."""

    url: str  # of the page
    number: int  # among these entities of its page, from 1
    types: list[str]  # names of schema.org, or full names of others
    syntax: str  # json-ld or microdata
    values: dict[str, Any]  # what the page says of it, entities in it included
    host: str  # with its port, if the URL names one
    domain: str  # the registered domain of the host, within which per_domain counts
    depth: int  # clicks from a seed
    page: str  # URL of the page that led there
    anchor: str  # text of its link
    why: str  # the page was fetched: what was known of its link when it was chosen
    fetched_at: str  # ISO 8601, UTC


@dataclass
class NewsArticle:
    """One article of a watched site, when it was seen first, or another version of it."""

    url: str
    title: str
    state: str  # new or changed
    at: float  # when this version was seen, in seconds since the epoch
    published: float | None  # as it says itself, likewise; None: it does not
    by: By  # what its link stood on: page, feed, sitemap, or start
    page: str  # URL of that, "" for a start
    anchor: str  # text of the link
    digest: str  # the same for the same text
    text: str  # a digest of its main text, which tells one version from another
    first_seen: str = ""  # ISO 8601, UTC
    changed_since: str = ""  # when the version before was seen, likewise
