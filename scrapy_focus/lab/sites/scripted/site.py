"""A site with parts that can only be seen if its scripts run, and the truth about all of it.

A test of rendering needs sites where it matters, where it does not, and where it is in vain. This one has all three
in any shares. What a browser would show is computed without one, so that both can be compared.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

from scrapy_focus.lab.sites.portal import files
from scrapy_focus.lab.sites.portal.portal import Page
from scrapy_focus.lab.sites.scripted import plan as plans
from scrapy_focus.lab.sites.scripted.api import Api
from scrapy_focus.lab.sites.scripted.assets import assets_of
from scrapy_focus.lab.sites.scripted.html import Pages
from scrapy_focus.lab.sites.scripted.plan import KINDS, SHOWN, Mix, Plan

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from scrapy_focus.lab.sites.scripted.plan import Kind

#: Two sections, as different as easy APIs are.
APIS = (plans.Api("pages", "ids"), plans.Api("next", "urls"))
_HREF = re.compile(r'<a [^>]*?href="([^"]+)"')
_NUMBERED = re.compile(r"/(lists|collections|news|exports)/([1-9]\d{0,5})\Z", re.ASCII)


class ScriptedSite:
    """A synthetic site with files in plain pages, and files behind scripts.

    There are five kinds of pages. *Lists* have their files in the HTML. The *app* has list pages and dataset pages that
    are all the same empty shell over a JSON API. *Collections* show a few files, and more when a button is clicked or
    their end is scrolled to. *News* run the same scripts, which do nothing of use. *Exports* have a button that
    downloads one file, from a URL or as a ``blob:`` that scripts make.

    A *target* is a file that the site shows and that has a URL.

    Parameters
    ----------
    mix
        How many pages of each kind; 72 % of 618 files are behind scripts by default.
        :data:`~scrapy_focus.lab.sites.scripted.plan.MIXES` has others.
    seed
        Sites with the same parameters are the same to the byte, on every machine.
    apis
        A section of the app for each, with a share of its lists.
    forbidden
        Paths that robots.txt forbids, such as ``/api/health/``.

    Raises
    ------
    ValueError
        If an API is unknown, if there are more of them than lists of the app, or if a forbidden path is none.

    Examples
    --------
    >>> site = ScriptedSite(seed=0)
    >>> site.n_pages, site.n_targets, site.n_blobs, round(site.share, 2)
    (258, 618, 10, 0.72)
    >>> site.needs_browser("/news/1"), site.needs_browser("/collections/1")
    (False, True)
    >>> len(site.plain_links("/collections/1")), len(site.rendered_links("/collections/1"))
    (22, 38)
    """

    def __init__(
        self, *, mix: Mix | None = None, seed: int = 0, apis: Sequence[plans.Api] = APIS, forbidden: Sequence[str] = ()
    ) -> None:
        for path in forbidden:
            if not re.fullmatch(r"/[!-~]*", path):
                raise ValueError(f"{path!r} cannot be forbidden; give a path that begins with a slash, as '/api/'")
        self.mix = mix if mix is not None else Mix()
        self.seed = seed
        self.apis = tuple(apis)
        self.forbidden = tuple(forbidden)
        self._plan = Plan(self.mix, self.apis, seed=seed)
        self._html = Pages(self._plan)
        self._api = Api(self._plan)
        made = {
            name: {"make": section.make, "shape": section.shape, "size": section.size, "pages": section.pages}
            for name, section in self._plan.sections.items()
        }
        self._assets = assets_of(self._plan, {"nav": self._html.nav, "apis": made})

    def __repr__(self) -> str:
        return f"ScriptedSite(mix={self.mix}, seed={self.seed}, apis={self.apis}, forbidden={self.forbidden})"

    # -- what is served ---------------------------------------------------------------------------------------------

    def fetch(self, path: str) -> Page:
        """Return the answer to a GET without headers."""
        return self.ask("GET", path, {}, b"")

    def ask(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Page:
        """Return the answer to a request; see :class:`~scrapy_focus.lab.sites.server.AskedSite`."""
        path = path.partition("#")[0]
        if path.startswith("/api/"):
            return self._api.answer(method, path)
        if path == "/beacon":
            return _text("", 202) if method == "POST" else _text("use POST\n", 405, Allow="POST")
        if method != "GET":
            return _text("use GET\n", 405)
        if path == "/robots.txt":
            rules = "".join(f"Disallow: {each}\n" for each in self.forbidden) or "Disallow:\n"
            return _text(f"User-agent: *\n{rules}")
        html = self._page(path)
        if html is not None:
            return Page.of(html.encode())
        return self._assets.get(path) or self._file(path) or _text("There is nothing here.\n", 404)

    def _page(self, path: str) -> str | None:
        if path == "/":
            return self._html.home()
        if self._plan.list_at(path) or self._plan.dataset_at(path):
            return self._html.shell
        numbered = self._numbered(path)
        return None if numbered is None else self._html.of(*numbered)

    def _numbered(self, path: str) -> tuple[Kind, int] | None:
        """Return the kind and the number of a page that is not of the app."""
        found = _NUMBERED.match(path)
        if found is None:
            return None
        kind: Kind = next(kind for kind in KINDS if kind == found[1])
        return (kind, int(found[2])) if int(found[2]) <= self._plan.n_of(kind) else None

    def _file(self, path: str) -> Page | None:
        if not self._plan.has_file(path):
            return None
        seed = self._plan.draw("file", path)
        records = 60 + seed % 400
        headers = {"Content-Disposition": 'attachment; filename="export.csv"'} if path.startswith("/export") else {}
        return Page(
            status=200, mime=files.MIME["csv"], size=files.size_of("csv", records), headers=headers,
            make=lambda: files.build("csv", records, seed),
        )  # fmt: skip

    # -- the truth --------------------------------------------------------------------------------------------------

    @property
    def sections(self) -> Mapping[str, plans.Section]:
        """The parts of the app by their names, in the order of `apis`."""
        return self._plan.sections

    @property
    def n_pages(self) -> int:
        """Number of HTML pages, as listed by `html_paths`."""
        return 1 + sum(self._plan.n_of(kind) for kind in KINDS)

    @cached_property
    def n_targets(self) -> int:
        """Number of targets."""
        return sum(1 for _ in self.targets())

    @property
    def n_blobs(self) -> int:
        """Number of files that have no URL, since scripts make them."""
        return self.mix.exports // 2

    @cached_property
    def share(self) -> float:
        """Share of the targets that no page links to before its scripts ran."""
        return len(self.hidden) / self.n_targets if self.n_targets else 0.0

    @cached_property
    def hidden(self) -> frozenset[str]:
        """The targets behind scripts."""
        later = (
            path
            for page in range(1, self.mix.collections + 1)
            for path in self._plan.files_of("collections", page)[SHOWN:]
        )
        return frozenset((*self.targets("app"), *self.targets("exports"), *later))

    def targets(self, kind: Kind | None = None) -> Iterator[str]:
        """Yield the path of each target once, of one kind of pages or of all."""
        for each in KINDS if kind is None else (kind,):
            yield from self._plan.files(each)

    def is_target(self, path: str) -> bool:
        """Return whether `path` is that of a file which the site shows."""
        return self._plan.has_file(path)

    def html_paths(self, kind: Kind | None = None) -> Iterator[str]:
        """Yield the path of each HTML page once, of one kind or of all; the first page is of none."""
        if kind is None:
            yield "/"
        for each in KINDS if kind is None else (kind,):
            if each != "app":
                yield from (f"/{each}/{page}" for page in range(1, self._plan.n_of(each) + 1))
                continue
            for section in self._plan.sections.values():
                yield from (self._plan.list_path(section, page) for page in range(1, section.pages + 1))
                yield from (self._plan.dataset_path(section, number) for number in range(section.datasets))

    def kind_of(self, path: str) -> Kind | None:
        """Return the kind of an HTML page, None for the first page and for anything but a page."""
        if self._plan.list_at(path) or self._plan.dataset_at(path):
            return "app"
        numbered = self._numbered(path)
        return numbered and numbered[0]

    def needs_browser(self, path: str) -> bool:
        """Return whether a page leads to more where its scripts run."""
        return self.kind_of(path) in ("app", "collections", "exports")

    def plain_links(self, path: str) -> list[str]:
        """Return the paths that the HTML of a page links to, each once, in order; none if there is no page."""
        return list(dict.fromkeys(_HREF.findall(self._page(path) or "")))

    def rendered_links(self, path: str, *, acted: bool = True) -> list[str]:
        """Return the paths that a page links to in a browser, each once, in order.

        Parameters
        ----------
        path : str
            That of an HTML page; there are no links without one.
        acted : bool
            Whether the page was scrolled, and its buttons clicked until nothing more came. What a button downloads
            from a URL is last then.
        """
        plan = self._plan
        nav = [href for href, _ in self._html.nav]
        if (at := plan.list_at(path)) is not None:
            section, page = at
            first = (page - 1) * section.size
            shown = [plan.dataset_path(section, number) for number in range(first, first + section.size)]
            after = [plan.list_path(section, page + 1)] if page < section.pages else []
            return list(dict.fromkeys((*nav, *shown, *after)))
        if (of := plan.dataset_at(path)) is not None:
            return [*nav, *plan.files_of_dataset(*of)]
        links = self.plain_links(path)
        numbered = self._numbered(path)
        if acted and numbered is not None and numbered[0] in ("collections", "exports"):
            links = list(dict.fromkeys((*links, *plan.files_of(*numbered))))
        return links

    def blob(self, path: str) -> bytes | None:
        """Return the file that scripts make on a page when its button is clicked, None if they make none."""
        kind, export = self._numbered(path) or ("lists", 0)
        if kind != "exports" or not self._plan.is_blob(export):
            return None
        return "".join(",".join(map(str, row)) + "\n" for row in self._api.rows(export)).encode()


def _text(text: str, status: int = 200, **headers: str) -> Page:
    return Page.of(text.encode(), status=status, mime="text/plain", headers=headers)
