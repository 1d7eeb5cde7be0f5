"""Which pages a browser should render: the results of renderings, by template.

Pages of one template are alike: all need a browser, or none does. A comparison shows which. The plain page was
fetched, and its links are known, so the new links of its rendering are what only a browser sees. Signs, such as an
empty page, at most suggest where to begin: a full page may surround an empty list, and small pages may be complete.

If every page has a distinct name, each would be a separate template, and no rendering would predict the next. So only
the first few names in a folder are distinguished, and these are also judged together.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from scrapy_focus.web.templates import template_of

if TYPE_CHECKING:
    from collections.abc import Mapping

TRIES = 3  # renderings without results that close a template ...
MISSES = 30  # ... and so many in a row if one paid
AGAIN = 50  # plain pages of a closed template before one is rendered again; doubled each time
SURE = 2  # renderings that paid, after which pages without links are rendered at once ...
SHELLS = 2  # ... if so many plain ones in a row had none
CHECKS = 20  # of so many pages that are rendered at once, one is fetched plainly first

_IN_VAIN = 12  # renderings of a site, none of which paid, after which one of each template is enough
_JUDGED = 50  # links that renderings of a template brought before it is judged by their results
_NAMES, _FIRST_NAMES = 5, 12  # names distinguished in a folder, and in the first one
_DOUBLED = 20  # times at most
_MOST = 4096  # templates, and folders


class Rendered(NamedTuple):
    """Counts for the pages of a template."""

    plain: int = 0  # pages that were fetched, and have scripts
    shells: int = 0  # of these, the last ones in a row that had nothing new
    tried: int = 0  # renderings
    paid: int = 0  # of these, those that had something new
    misses: int = 0  # of these, the last ones in a row that had nothing new
    brought: int = 0  # links that renderings revealed
    fetched: int = 0  # of these, those that were fetched
    idle: int = 0  # 1: nothing that they led to was ever a target
    since: int = 0  # plain pages since it was closed, or tried again
    looks: int = 0  # times that it was tried again
    at_once: int = 0  # new links that were to be rendered at once, or checked
    from_api: int = 0  # always 0; in pickles and files of earlier versions this counts pages read from APIs

    @property
    def is_shell(self) -> bool:
        """Whether its plain pages bring nothing, and renderings do."""
        return self.shells >= SHELLS and self.paid >= SURE and 2 * self.paid >= self.tried

    @property
    def is_due(self) -> bool:
        """Whether it is time to try it again, if it is closed."""
        return self.since >= AGAIN << min(self.looks, _DOUBLED)

    def is_left(self, tries: int) -> bool:
        """Whether renderings bring nothing, or nothing any more."""
        return bool(self.idle) or self.misses >= (MISSES if self.paid else tries)

    def with_rendering(self, new: int) -> Rendered:
        """Return the counts after one more rendering, with so much that is new."""
        paid = new > 0
        return self._replace(
            tried=self.tried + 1, paid=self.paid + paid, misses=0 if paid else self.misses + 1,
            brought=self.brought + new,
        )  # fmt: skip

    def looked_at(self) -> Rendered:
        """Return the counts while it is tried again."""
        return self._replace(since=0, looks=self.looks + 1)


class Templates:
    """Remembers the results of plain pages and renderings for each template, and chooses which pages to render.

    A template is *closed* once three renderings brought nothing new, or 30 in a row if one paid. Templates that
    differ only in names are closed together after five, those of the first folder after twelve. A closed template is
    tried again after 50 plain pages, 100, and so on, and is open if that pays. A template is also closed if its
    renderings bring links, but nothing that these lead to is a target. It is *direct* if plain pages have nothing
    new, and renderings do.

    Notes
    -----
    *Memory*: twelve numbers for each of 4,096 templates, and the names of as many folders. The least recently used
    template is forgotten.

    Examples
    --------
    Three renderings bring nothing, so the template is closed.

    >>> templates = Templates()
    >>> for page in range(3):
    ...     template = templates.of(f"http://example.org/news/{page}")
    ...     templates.fetched(template, new=4)
    ...     if templates.wants(template):
    ...         templates.rendered(template, new=0)
    >>> template, templates.state(template), templates.wants(template)
    ('example.org/news/#', 'closed', False)
    """

    def __init__(self) -> None:
        self.seen: OrderedDict[str, Rendered] = OrderedDict()
        self.direct: dict[str, None] = {}  # those whose new links are to be rendered at once
        self._groups: OrderedDict[str, Rendered] = OrderedDict()  # of templates that differ only in names
        self._names = _Names()
        self._recalled: set[str] = set()  # that paid in another crawl, and have no rendering in this one yet
        self._tried = 0  # renderings of all templates
        self._paid = 0

    def of(self, url: str) -> str:
        """Return the template of a fetched page; its names are distinguished from now on, if there is room."""
        return self._names.told_apart(template_of(url), to_keep=True)

    def likely(self, url: str) -> str:
        """Return the expected template of a page."""
        return self._names.told_apart(template_of(url))

    def fetched(self, template: str, new: int) -> None:
        """Record a plain page with scripts, with so much that is new: links, or itself as a target."""
        known, group = self._of(template), _group_of(template)
        since = known.since + 1 if self.is_closed(template) else 0
        self._put(template, known._replace(plain=known.plain + 1, shells=0 if new else known.shells + 1, since=since))
        if group:
            of_all = self._of_group(group)
            self._put_group(group, of_all._replace(since=of_all.since + 1 if self._is_left(group) else 0))

    def wants(self, template: str) -> bool:
        """Whether the plain page just fetched should be rendered."""
        known = self._of(template)
        if known.is_left(self._tries):
            return known.is_due
        return not self._is_left(group := _group_of(template)) or self._of_group(group).is_due

    def look(self, template: str) -> bool:
        """Record that a plain page is going to be rendered; return whether that tries a closed template again."""
        if not self.is_closed(template):
            return False
        self._put(template, self._of(template).looked_at())
        if group := _group_of(template):
            self._put_group(group, self._of_group(group).looked_at())
        return True

    def rendered(self, template: str, new: int, *, failed: bool = False) -> None:
        """Record a rendering, with so much that its plain page did not have; a failed one makes no template direct."""
        known = self._of(template).with_rendering(new)
        self._recalled.discard(template)
        self._tried += 1
        self._paid += new > 0
        if group := _group_of(template):
            self._put_group(group, self._of_group(group).with_rendering(new))
        self._put(template, known._replace(shells=0) if failed else known)

    def came(self, template: str) -> bool:
        """Record the fetch of a link that a rendering revealed; return whether it is time to :meth:`judge` their
        results.
        """
        known = self._of(template)
        self._put(template, known._replace(fetched=known.fetched + 1))
        return bool(known.idle) or (known.fetched + 1) % _JUDGED == 0

    def judge(self, template: str, *, is_idle: bool) -> None:
        """Record whether anything revealed by renderings of a template led to targets; if not, close it."""
        self._put(template, self._of(template)._replace(idle=int(is_idle)))

    def at_once(self, template: str) -> bool:
        """Whether a new link of a direct template is to be rendered at once; some are fetched plainly first."""
        known = self._of(template)
        self._put(template, known._replace(at_once=known.at_once + 1))
        return (known.at_once + 1) % CHECKS != 0

    def has_room(self, template: str, flying: Mapping[str, float]) -> bool:
        """Whether one more page may be rendered before the results of those in flight are known, by template.

        For a template known from another crawl, the first one shows whether that still holds.
        """
        known, group = self._of(template), _group_of(template)
        here = flying.get(template, 0)
        if here:
            if template in self._recalled:
                return False
            if not known.paid and known.tried + here >= self._tries:
                return False
        if not group or self._of_group(group).paid:
            return True
        beside = sum(n for other, n in flying.items() if _group_of(other) == group)
        return not beside or self._of_group(group).tried + beside < _most_of(group)

    def is_needed(self, template: str) -> bool:
        """Whether a browser is known to be needed: a rendering paid, or plain pages in a row brought nothing."""
        known = self._of(template)
        return bool(known.paid) or known.shells >= SHELLS

    def is_recalled(self, template: str) -> bool:
        """Whether another crawl found that renderings pay, and none of this one has confirmed it yet."""
        return template in self._recalled

    def is_closed(self, template: str) -> bool:
        """Whether renderings are assumed to bring nothing."""
        return self._of(template).is_left(self._tries) or self._is_left(_group_of(template))

    def state(self, template: str) -> str:
        """Return ``"closed"``, ``"direct"`` or ``"open"``."""
        if self.is_closed(template):
            return "closed"
        return "direct" if template in self.direct else "open"

    def recall(self, seen: Mapping[str, Rendered]) -> None:
        """Start from what another crawl found; it counts as a few renderings."""
        for template, then in seen.items():
            paid = min(then.paid, SURE)
            misses = min(then.misses, MISSES if paid else TRIES)
            hits = paid if not then.paid else round(paid / then.paid * (then.tried - then.misses))
            known = Rendered(
                plain=min(then.plain, SHELLS), shells=min(then.shells, SHELLS), tried=hits + misses, paid=paid,
                misses=misses, idle=then.idle,
            )  # fmt: skip
            here = self._names.told_apart(template, to_keep=True)
            self._put(here, known)
            if paid:
                self._recalled.add(here)

    def go_plainly(self) -> None:
        """Record that no browser is available: no page is queued for one."""
        self._recalled.clear()

    @property
    def _tries(self) -> int:
        return 1 if self._tried >= _IN_VAIN and not self._paid else TRIES

    def _is_left(self, group: str) -> bool:
        known = self._of_group(group)
        return bool(group) and not known.paid and known.tried >= _most_of(group)

    def _of(self, template: str) -> Rendered:
        return self.seen.get(template, Rendered())

    def _of_group(self, group: str) -> Rendered:
        return self._groups.get(group, Rendered())

    def _put(self, template: str, known: Rendered) -> None:
        self.seen[template] = known
        self.seen.move_to_end(template)
        if known.is_shell and not self.is_closed(template):
            self.direct[template] = None
        else:
            self.direct.pop(template, None)
        if len(self.seen) > _MOST:
            gone, _ = self.seen.popitem(last=False)
            self.direct.pop(gone, None)

    def _put_group(self, group: str, known: Rendered) -> None:
        self._groups[group] = known
        self._groups.move_to_end(group)
        if len(self._groups) > _MOST:
            self._groups.popitem(last=False)


class _Names:
    """The first few names seen in each folder, and the first queries of each path; others are ``*``."""

    def __init__(self) -> None:
        self._seen: dict[str, dict[str, None]] = {}

    def told_apart(self, template: str, *, to_keep: bool = False) -> str:
        """Return a template with ``*`` in place of names beyond the limit; ``to_keep``: add new names while there is
        room.
        """
        path, mark, query = template.partition("?")
        folder, *names = path.split("/")
        for at, name in enumerate(names):
            most = _NAMES if at else _FIRST_NAMES
            folder += "/" + (name if "#" in name or self._has(folder, name, most, to_keep) else "*")
        return folder + mark + (query if not mark or self._has(folder + mark, query, _NAMES, to_keep) else "*")

    def _has(self, folder: str, name: str, most: int, to_keep: bool) -> bool:
        seen = self._seen.get(folder, {})
        if name in seen:
            return True
        if len(seen) >= most or (not seen and len(self._seen) >= _MOST):
            return False
        if to_keep:
            self._seen.setdefault(folder, {})[name] = None
        return True


def _group_of(template: str) -> str:
    """Return what a template has in common with those of other names, ``""`` if nothing that counts."""
    path, mark, query = template.partition("?")
    host, *names = path.split("/")
    first = names[:1] if len(names) > 1 else []  # a section of the site, more often than one page
    others = names[len(first) :]
    if all("#" in name for name in others):
        return ""
    return "/".join([host, *first, *[name if "#" in name else "*" for name in others]]) + mark + query


def _most_of(group: str) -> int:
    """Return how many renderings without results are allowed for templates that differ only in names."""
    return _NAMES if "/" in group.partition("?")[0].partition("/")[2] else _FIRST_NAMES
