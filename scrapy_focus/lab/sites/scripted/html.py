"""The pages of the synthetic scripted site before any script runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scrapy_focus.lab.sites.scripted.assets import IMAGES
from scrapy_focus.lab.sites.scripted.plan import SHOWN

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scrapy_focus.lab.sites.scripted.plan import Kind, Plan

_HEAD: Final = (
    '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
    '<link rel="stylesheet" href="/assets/site.css"></head><body>\n'
)
_BUNDLE: Final = '<script src="/assets/bundle.js"></script>\n'
_IMAGES: Final = "".join(f'<img src="/assets/{k}.png" alt="">' for k in range(IMAGES))
_RELATED = 6  # news pages that each links to
_BESIDE = 20  # collections or exports that each links to
_FAR = 10  # lists that a pager skips
_MORE = ("Load more", "Show more", "More results")


class Pages:
    """The HTML of all pages; a function of the plan."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        first: tuple[tuple[Kind, str], ...] = (
            ("lists", "Tables"),
            ("collections", "Collections"),
            ("news", "News"),
            ("exports", "Exports"),
        )
        #: Links to all parts of the site, each a path and a text; scripts show the same ones.
        self.nav = [
            ("/", "Home"),
            *((f"/{kind}/1", text) for kind, text in first if plan.n_of(kind)),
            *((plan.list_path(section), name.capitalize()) for name, section in plan.sections.items()),
        ]
        #: The answer of the app on each of its paths.
        self.shell = (
            _HEAD.format(title="Data") + "<noscript>You need to enable JavaScript to run this app.</noscript>"
            '<div id="root"></div>\n' + _BUNDLE + "</body></html>\n"
        )

    def home(self) -> str:
        """Return the first page."""
        return self._page("Home", "<p>Everything that we know, in tables.</p>", scripts=False)

    def of(self, kind: Kind, page: int) -> str:
        """Return a page of lists, collections, news or exports, by its number from 1."""
        title = self._plan.title(kind, page)
        match kind:
            case "lists":
                return self._page(title, self._list(page), scripts=False)
            case "collections":
                content = self._collection(page)
            case "news":
                content = self._article(page)
            case _:
                content = self._export(page)
        return self._page(title, content, scripts=True)

    def _page(self, title: str, content: str, *, scripts: bool) -> str:
        nav = "".join(_link(path, text) for path, text in self.nav)
        end = _BUNDLE if scripts else ""
        return f"{_HEAD.format(title=title)}<nav>{nav}</nav>\n<h1>{title}</h1>\n{content}\n{end}</body></html>\n"

    def _list(self, page: int) -> str:
        last = self._plan.n_of("lists")
        pager = [(page - 1, "Previous"), (page + 1, "Next"), (page + _FAR, f"{_FAR} on"), (last, "Last")]
        links = "".join(_link(f"/lists/{to}", text) for to, text in pager if 1 <= to <= last and to != page)
        return f'{_files("files", self._plan.files_of("lists", page))}\n<div class="pager">{links}</div>'

    def _collection(self, page: int) -> str:
        files = self._plan.files_of("collections", page)[:SHOWN]
        more = f'<button id="more" type="button">{_MORE[page % len(_MORE)]}</button>'
        end = '<div style="height:1600px"></div><div id="end">The end</div>'
        return (
            f"{self._beside('collections', page)}{_IMAGES}"
            f"{_files('more', files, collection=page)}{end if self._scrolls(page) else more}"
        )

    def _scrolls(self, page: int) -> bool:
        """Whether a collection shows more when its end is scrolled to; others have a button."""
        return (page + self._plan.seed) % 2 == 0

    def _article(self, page: int) -> str:
        plan, n = self._plan, self._plan.n_of("news")
        others = [page % n + 1, *(plan.draw("related", page, k) % n + 1 for k in range(_RELATED - 1))]
        related = "".join(_link(f"/news/{other}", plan.title("news", other), "related") for other in others)
        texts = "".join(
            f"<p>{f'{plan.title(page, k)} were {plan.draw(page, k) % 90} percent above those of last year. ' * 12}</p>"
            for k in range(4)
        )
        figures = "".join(f"<p>{_link(path, 'The figures')}</p>" for path in plan.files_of("news", page))
        return f"<time></time><article>{texts}{figures}</article>{_IMAGES}<aside>{related}</aside>"

    def _export(self, page: int) -> str:
        kind = "blob" if self._plan.is_blob(page) else "url"
        button = f'<button id="export" type="button" data-kind="{kind}" data-export="{page}">Download CSV</button>'
        return f"{self._beside('exports', page)}{_IMAGES}{button}"

    def _beside(self, kind: Kind, page: int) -> str:
        n = self._plan.n_of(kind)
        others = [k % n + 1 for k in range(page, page + min(n - 1, _BESIDE))]
        links = "".join(_link(f"/{kind}/{other}", self._plan.title(kind, other)) for other in others)
        return f"<aside>{links}</aside>"


def _link(path: str, text: str, classes: str = "") -> str:
    named = f' class="{classes}"' if classes else ""
    return f'<a{named} href="{path}">{text}</a>'


def _files(classes: str, paths: Iterable[str], **data: object) -> str:
    more = "".join(f' data-{name}="{value}"' for name, value in data.items())
    items = "".join(f"<li>{_link(path, f'Table {k}')}</li>" for k, path in enumerate(paths))
    return f'<ul class="{classes}"{more}>{items}</ul>'
