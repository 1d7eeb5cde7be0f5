"""Items of the spiders in this package."""

from collections.abc import Collection
from dataclasses import InitVar, dataclass, field, fields
from typing import Any, Literal

#: Where the link to an article was found.
By = Literal["page", "feed", "sitemap", "start"]

#: The least relevance of a page that counts as on topic.
RELEVANT = 0.5


@dataclass(slots=True)
class PageSource:
    """A page whose contents are stored with its items."""

    html: str
    contents: dict[str, str] | None = None  # once they are stored


def _content() -> Any:
    """Declare a field for the contents of a page: listed only if they are stored, and empty if nothing was found."""
    return field(default="", metadata={"is_content": True})


def listed_fields(item: Any, contents: Collection[str]) -> list[str]:
    """Return the fields of an item, or of its class, that belong into a list; of contents, only those given, last."""
    is_content = {each.name: bool(each.metadata.get("is_content")) for each in fields(item)}
    return [name for name in sorted(is_content, key=is_content.__getitem__) if not is_content[name] or name in contents]


@dataclass(kw_only=True)
class WithContents:
    """An item about a page, which has the contents of the page, if they are stored."""

    author: str = _content()
    published: str = _content()  # YYYY-MM-DD, as the page states it
    text_file: str = _content()  # path of the text, relative to the folder
    markdown_file: str = _content()  # likewise
    text: str = _content()  # the text itself, without a folder
    markdown: str = _content()  # likewise
    page_source: InitVar[PageSource | None] = None

    def __post_init__(self, page_source: PageSource | None) -> None:
        self.source = page_source


@dataclass
class DataFile:
    """A data file that was found and, if it is relevant enough, stored.

    Its bytes are in ``content``, which is not a field, so feeds do not export it; it is empty once the file is stored.
    """

    url: str
    mime: str  # from the server, without parameters; else from the extension or the first bytes
    size: int  # bytes
    page: str  # URL of the page on which it was found
    anchor: str  # text of the link to it
    name: str  # from its server or URL
    body: InitVar[bytes]
    sha256: str = ""
    path: str = ""  # where it is stored, relative to the output folder
    state: str = ""  # since the last crawl with the folder: new, changed or same
    link: str = ""  # URL that was requested, which may have redirected
    etag: str = ""
    last_modified: str = ""
    cut: bool = False  # whether it is known to be incomplete
    why: str = ""  # why the link was followed: what was known about it when it was chosen
    relevance: float | None = None  # to what the user looks for, from 0 to 1; None: the user did not say
    words: str = ""  # those of its link and name that spoke for it, separated by commas
    unchanged: InitVar[bool] = False  # whether the server reported that, and sent no bytes
    irrelevant: InitVar[bool] = False  # whether it is to be listed without being stored

    def __post_init__(self, body: bytes, unchanged: bool, irrelevant: bool) -> None:
        self.content = body
        self.is_unchanged = unchanged
        self.is_relevant = not irrelevant


@dataclass
class GoneFile:
    """A file of an earlier crawl that no longer exists."""

    url: str


@dataclass
class SkippedFile:
    """A possible data file that was not fetched completely."""

    url: str
    reason: str
    page: str  # URL of the page on which it was found
    anchor: str  # text of the link to it


@dataclass
class TopicPage(WithContents):
    """A page that was fetched in a search for a topic, on topic or not."""

    url: str
    title: str
    relevance: float  # probability that it is on topic: 0.5 or more counts as relevant
    host: str  # with its port, if the URL names one
    domain: str  # the registered domain of the host, within which per_domain counts
    depth: int  # clicks from a seed
    path: list[
        dict[str, str]
    ]  # from the seed on: each page (url), and the text of the link that was followed on it (anchor)
    why: str  # why it was fetched: what was known about its link when it was chosen
    language: str  # as the page declares it, "" if it does not
    fetched_at: str  # ISO 8601, UTC


@dataclass
class ImportantPage(WithContents):
    """A page that was fetched in a search for the most important ones."""

    url: str
    title: str
    depth: int  # clicks from the start URL
    status: int  # of HTTP
    page: str  # URL of the page on which it was found
    anchor: str  # text of the link to it
    fetched_at: str  # ISO 8601, UTC
    language: str = _content()  # as the page declares it


@dataclass
class StructuredEntity(WithContents):
    """An entity of a wanted type that a page describes."""

    url: str  # of the page
    number: int  # its position among these entities of its page, from 1
    types: list[str]  # names of schema.org, or full names of others
    syntax: str  # json-ld or microdata
    values: dict[str, Any]  # its values on the page, including nested entities
    host: str  # with its port, if the URL names one
    domain: str  # the registered domain of the host, within which per_domain counts
    depth: int  # clicks from a seed
    page: str  # URL of the page that led there
    anchor: str  # text of its link
    why: str  # why the page was fetched: what was known about its link when it was chosen
    fetched_at: str  # ISO 8601, UTC
    relevance: float | None = None  # probability that the page is on the topic; None: there is no topic
    title: str = _content()  # of the page
    language: str = _content()  # as the page declares it


@dataclass
class NewsArticle:
    """An article of a watched site when it was first seen, or a later version of it."""

    url: str
    title: str
    state: str  # new or changed
    at: float  # when this version was seen, in seconds since the epoch
    published: float | None  # as stated on the page, likewise; None: not stated
    by: By  # where its link was found: page, feed, sitemap, or start
    page: str  # URL of that, "" for a start
    anchor: str  # text of the link
    digest: str  # the same for the same text
    text: str  # a digest of its main text, which identifies a version
    first_seen: str = ""  # ISO 8601, UTC
    changed_since: str = ""  # when the previous version was seen, likewise
