"""A shop whose pages have many URLs: sessions, sort orders and tracking in its links, as set by a test."""

from __future__ import annotations

import itertools
import random
import threading
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

from mocksite import MockSite

if TYPE_CHECKING:
    from collections.abc import Callable

_WORDS = "amber basin cedar delta ember fjord grove heath islet jetty knoll ledge marsh notch oasis ridge".split()
_SORTS = ("name", "price", "date")


class CopySite(MockSite):
    """A home page, shelves with items, and a page for each item; ``/shelf/K``, ``/item/N``, a file each.

    Parameters
    ----------
    shelves, items
        How many shelves there are, and items on each.
    session
        Name of a parameter with a new value in each link (``;name`` puts it into the path), ``""`` for none.
    sorts
        Whether shelves have links to themselves in other orders.
    tracking
        Name of a parameter that names the linking page.
    filters
        Whether shelves have links to themselves that show one item in three (``show=0`` to ``show=2``).
    """

    def __init__(
        self, *, shelves: int = 12, items: int = 6, session: str = "", sorts: bool = False, tracking: str = "",
        filters: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.shelves, self.items = shelves, items
        self.session, self.sorts, self.tracking, self.filters = session, sorts, tracking, filters
        self.own: Callable[[str, dict[str, str]], str | None] = lambda path, query: None  # pages of a test
        self.broken: set[str] = set()  # paths that are answered with an error
        self._fresh = itertools.count(1000)
        self._where = ""  # the page that is written
        self._writes = threading.Lock()

    def answer(self, path: str) -> tuple[int, dict[str, str], bytes]:
        parts = urlsplit(path)
        query = dict(parse_qsl(parts.query))
        bare = parts.path.partition(";")[0]
        with self._writes:
            page = self.own(bare, query)
            if page is None:
                page = self.page(bare, query)
        if page is None:
            return super().answer(path)
        if path in self.broken:
            return 500, {"Content-Type": "text/html"}, b"broken"
        if bare.endswith(".csv"):
            return 200, {"Content-Type": "text/csv"}, page.encode()
        return 200, {"Content-Type": "text/html"}, page.encode()

    def distinct(self) -> set[str]:
        """Return the URLs to fetch: one without parameters for each page, without filters."""
        n = self.shelves * self.items
        kinds = ["/", *(f"/shelf/{k}" for k in range(self.shelves))]
        shown = [f"/shelf/{k}?show={i}" for k in range(self.shelves) for i in range(3) if self.filters]
        return {*kinds, *shown, *(f"/item/{i}" for i in range(n)), *(f"/file/{i}.csv" for i in range(n))}

    def fetched(self) -> set[str]:
        """Return what was fetched, in the same way."""
        found = set()
        for path in self.paths:
            parts = urlsplit(path)
            show = dict(parse_qsl(parts.query)).get("show")
            found.add(parts.path.partition(";")[0] + (f"?show={show}" if show else ""))
        return found

    def page(self, path: str, query: dict[str, str]) -> str | None:
        """Return a page; ``None`` if it does not exist."""
        kind, _, number = path[1:].partition("/")
        self._where = f"{kind}{number}"
        menu = "".join(self.link(f"/shelf/{k}", f"Shelf {_WORDS[k % 16]} {k}") for k in range(self.shelves))
        head = f"<nav>{self.link('/', 'Home')} {menu}</nav>"
        if not kind:
            return f"<html><body>{head}<h1>The shop</h1>{prose(-1)}</body></html>"
        if kind == "shelf" and int(number) < self.shelves:
            return f"<html><body>{head}{self.shelf(int(number), query)}</body></html>"
        if kind == "item" and int(number) < self.shelves * self.items:
            file = self.link(f"/file/{number}.csv", "Figures (CSV)")
            return f"<html><body>{head}<h1>Item {number}</h1>{prose(int(number))}{file}</body></html>"
        if kind == "file":
            return "".join(f"{number},{i},{random.Random(f'{number}{i}').random()}\n" for i in range(40))
        return None

    def shelf(self, number: int, query: dict[str, str]) -> str:
        """Return the list of a shelf, in the order and with the items that are asked for."""
        items = list(range(number * self.items, (number + 1) * self.items))
        random.Random(query.get("sort", "")).shuffle(items)
        if query.get("show", "") in ("0", "1", "2") and self.filters:
            items = [item for item in items if item % 3 == int(query["show"])]
        rows = "".join(f"<li>{self.link(f'/item/{i}', f'Item {i}')} costs {i * 7}</li>" for i in items)
        more = [self.link(f"/shelf/{number}?sort={sort}", f"by {sort}") for sort in _SORTS if self.sorts]
        more += [self.link(f"/shelf/{number}?show={show}", f"part {show}") for show in range(3) if self.filters]
        return f"<h1>Shelf {number}</h1><p>{prose(number + 5000)}</p>{' '.join(more)}<ul>{rows}</ul>"

    def link(self, path: str, text: str) -> str:
        """Return a link with all parameters of the site."""
        added = [f"{self.tracking}={self._where}"] if self.tracking else []
        if self.session.startswith(";"):
            head, _, query = path.partition("?")
            path = f"{head}{self.session}={next(self._fresh):x}f{'?' if query else ''}{query}"
        elif self.session:
            added.append(f"{self.session}={next(self._fresh):x}f")
        return f'<a href="{path}{"&" if "?" in path else "?"}{"&".join(added)}">{text}</a>' if added else (
            f'<a href="{path}">{text}</a>'
        )  # fmt: skip


def prose(seed: int) -> str:
    """Return text that is different for each number."""
    rng = random.Random(seed)
    return " ".join(f"{rng.choice(_WORDS)}{rng.randrange(1000)}" for _ in range(40))
