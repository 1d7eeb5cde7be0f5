"""A goal for files of given types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.printable import printable
from scrapy_focus.web.mime import DATA_TYPES, effective_mime, is_vague, matches
from scrapy_focus.web.names import announced_name
from scrapy_focus.web.wanted import Wanted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from os import PathLike

    from scrapy_focus.core.mission import Topic
    from scrapy_focus.core.types import Link, Outcome, Page
    from scrapy_focus.goals.link_relevance import LinkRelevance
    from scrapy_focus.goals.topic_pages import TopicPages

_LONGEST_ABOUT = 200  # characters of what the files are about, in a description


class FilesGoal:
    """The reward is 1 for a file of a wanted type; for a rendered page, the number of such files that its scripts made.

    The type is the one that the server sends. If that is unspecific (``application/octet-stream``, ``text/plain``, no
    type), the extension of the URL decides, or else that of the file name that the server sends, or else the first
    bytes, if available.

    With a model of a topic, the reward of such a file is its relevance, from 0 to 1. It is judged by the text of its
    link and the text around it, the title of the page with the link, and the name of the file
    (:class:`~scrapy_focus.goals.link_relevance.LinkRelevance`). A file whose link was not seen, or too long ago, is
    judged by its name alone. A model that learns from the crawl (:class:`~scrapy_focus.core.mission.LearningTopic`)
    sees each HTML page; what it learned is stored in the ``JOBDIR``.

    Parameters
    ----------
    types
        Extensions like ``csv``, MIME types, patterns like ``image/*``, or regular expressions of URLs; by default
        ``data``, the types of the SB-CLASSIFIER paper.
    stored
        Count a file only if it yielded an item: with a pipeline that drops files stored before, copies of a file under
        other URLs earn nothing.
    relevance
        A model of the topic that the files are about, the file that ``focus train`` wrote, or a dict: see
        :func:`~scrapy_focus.topic.models.relevance_of`. ``None``: files on any topic.
    """

    heads_tell = True
    #: The noun for what is counted.
    noun = "files"
    #: The model of the topic, ``None`` without one.
    relevance: Topic | None = None
    #: The method of a goal that sees links; it exists only if there is a topic.
    see_links: Callable[[Sequence[Link], Outcome | None], None]

    _links: LinkRelevance | None = None
    _pages: TopicPages | None = None

    def __init__(
        self,
        *,
        types: Collection[str] = DATA_TYPES,
        stored: bool = False,
        relevance: Topic | str | PathLike[str] | Mapping[str, Any] | None = None,
    ) -> None:
        if isinstance(types, str):
            raise ConfigError(f"types is {types!r}; it takes a list, such as [{types!r}]")
        self.wanted = Wanted.of(types)
        self.types = self.wanted.types
        self.stored = stored
        if relevance is not None:
            from scrapy_focus.goals.link_relevance import LinkRelevance  # not needed by most crawls
            from scrapy_focus.goals.topic_pages import TopicPages
            from scrapy_focus.topic.models import relevance_of

            self.relevance = topic = relevance_of(relevance)
            self.noun = "relevant files"
            self._links, self._pages = LinkRelevance(topic), TopicPages(topic)
            self.see_links = self._links.see

    def on(self, topic: Topic) -> FilesGoal:
        """Return a goal for files of the same types that are on a topic."""
        goal = FilesGoal(stored=self.stored, relevance=topic)
        goal.wanted, goal.types = self.wanted, self.types
        return goal

    def __call__(self, outcome: Outcome) -> float:
        if self._pages is None:
            return self._worth(outcome)
        if self._pages.learner is not None:
            self._pages.see(outcome)
        worth = self._worth(outcome)
        return worth and worth * self.relevance_of(outcome)

    def _worth(self, outcome: Outcome) -> float:
        """Return how many wanted files an outcome brought, whatever they are about."""
        if outcome.status is None or not 200 <= outcome.status < 300 or outcome.error:
            return 0.0
        if outcome.made:
            return self._worth_of_made(outcome)
        url = outcome.pick.url if outcome.page is None else outcome.page.url
        if not self.finds(outcome.mime, url, outcome.page):
            return 0.0
        if self.stored and outcome.pick.method == "GET":
            return float(outcome.items > 0)
        return 1.0

    def _worth_of_made(self, outcome: Outcome) -> float:
        """Return how many of the files made by a page are wanted; if files are stored, at most its items."""
        made = float(sum(self.makes(name) for name in outcome.made))
        if self.stored:
            return min(made, outcome.items)
        return made

    @property
    def about(self) -> str:
        """What the files are about, in words: ``about "rivers and lakes"``; ``""`` without a topic."""
        if self.relevance is None:
            return ""
        said = printable(str(getattr(self.relevance, "about", "") or ""), _LONGEST_ABOUT)
        return f'about "{said}"' if said else f"on the topic of model {self.relevance.digest[:12]}"

    def relevance_of(self, outcome: Outcome) -> float:
        """Return how relevant the file of an outcome is, from 0 to 1; of several that scripts made, the mean.

        Without a topic, every file is relevant: 1. Whether it is of a wanted type does not matter.
        """
        wanted = [name for name in outcome.made if self.makes(name)]
        if not wanted:
            return self.relevance_at(outcome.pick.url, outcome.page)
        return sum(self.relevance_at(outcome.pick.url, None, name) for name in wanted) / len(wanted)

    def relevance_at(self, url: str, page: Page | None = None, name: str = "") -> float:
        """Return how relevant the file of a link is, from 0 to 1; without a topic, 1.

        Parameters
        ----------
        url
            The URL of the link, before redirects.
        page
            The response, whose own URL or headers may name the file better.
        name
            Another name of the file, if there is one.
        """
        return 1.0 if self._links is None else self._links.of(url, page, name)

    def words_at(self, url: str, page: Page | None = None, name: str = "", anchor: str = "") -> list[str]:
        """Return the words of a link (its text is ``anchor``) and of the names of its file that spoke for it.

        The parameters are those of :meth:`relevance_at`. Empty without a topic, or with one that does not tell.
        """
        return [] if self._links is None else self._links.words(url, page, name, anchor)

    @property
    def alarm(self) -> str:
        """Why the crawl may be off topic, according to a learning model; ``""`` without one, or without a sign."""
        return "" if self._pages is None else self._pages.alarm

    def said(self) -> list[str]:
        """Say what is counted, and how frequent the topic is among pages, as estimated by a learning model."""
        if self._pages is None:
            return []
        return ["each file counts as its relevance, a number from 0 to 1", *self._pages.said()]

    def state(self) -> Any:
        """Return what is known of links and pages, for a goal with a topic; ``None`` for others."""
        if self._pages is None or self._links is None:
            return None
        return {**self._pages.state(), "links": self._links.state()}

    def restore(self, state: Any) -> None:
        """Restore a state."""
        if self._pages is not None and self._links is not None:
            self._pages.restore(state)
            self._links.restore(state["links"])

    def wants(self, mime: str, url: str) -> bool:
        """Whether a file of this MIME type, from this URL, is a target, judging by these two only."""
        return self._is_one(mime, url) or self.wanted.takes(mime, url)

    def makes(self, name: str) -> bool:
        """Whether a file that scripts made is a target, judging by its name."""
        name = _as_path(name)
        return self.wants(effective_mime("", name), name)

    def finds(self, mime: str, url: str, page: Page | None) -> bool:
        """Whether a response is a target, judging by all its properties."""
        if page is None or not is_vague(mime) or self._is_one(mime, url):
            return self.wants(mime, url)
        mime, name = _told(mime, url, page)
        return self.wants(mime, url) or self.wants(mime, name)

    def _is_one(self, mime: str, url: str) -> bool:
        return matches(mime, self.types) or matches(effective_mime(mime, url), self.types)

    def __repr__(self) -> str:
        return f"files: {self.wanted}{', each content once' if self.stored else ''}{self.about and f', {self.about}'}"


def file_mime(mime: str, url: str, page: Page) -> str:
    """Return the MIME type of a file: from its server, or else from its URL, its name or its first bytes."""
    return effective_mime(*_told(mime, url, page)) if is_vague(mime) else mime


def _as_path(name: str) -> str:
    """Return a file name as the path of a URL, in which ``?`` or ``#`` would end the path."""
    return name.replace("?", "_").replace("#", "_")


def _told(mime: str, url: str, page: Page) -> tuple[str, str]:
    """Return a MIME type and a name with extension, for a file whose server sends an unspecific type."""
    if effective_mime(mime, url) != mime:
        return mime, url
    name = _as_path(announced_name(page.headers))
    return (mime, name) if effective_mime(mime, name) != mime else (page.kind or mime, name or url)
