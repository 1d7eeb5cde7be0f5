"""Data catalogues as CKAN and its like show them: lists with facets, datasets, resources, and downloads.

Two steps lie between a list and its files, and most links of a list only sort or filter it. What pays waits unseen,
as a dataset is in many lists and names its files on pages of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qs, urlencode, urlsplit

from scrapy_focus.lab.sites.portal.portal import Page

if TYPE_CHECKING:
    from collections.abc import Sequence

TYPES = {"csv": "text/csv", "pdf": "application/pdf", "zip": "application/zip"}


class Shape(NamedTuple):
    """What a catalogue is like."""

    datasets: int = 180
    resources: int = 3  # at most, of a dataset
    page: int = 20  # datasets on one
    tags: int = 9
    publishers: int = 5
    sorts: int = 3
    has_resource_pages: bool = True  # else a dataset links to its files
    has_facets: bool = True  # else a list has pages only


SHAPES = {
    "catalogue": Shape(),
    "catalogue_large": Shape(datasets=500, resources=4, page=50, tags=12, publishers=9),
    "catalogue_one_step": Shape(datasets=300, has_resource_pages=False),
    "catalogue_plain": Shape(datasets=240, resources=2, page=10, has_facets=False),
    "catalogue_sparse": Shape(datasets=350, resources=1, page=25, tags=20, publishers=14, sorts=2),
}


class Catalogue:
    """Answers as a catalogue of some shape."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape

    def fetch(self, path: str) -> Page:
        """Return the answer to a request for a path, with or without a query."""
        parts = urlsplit(path)
        names = [name for name in parts.path.split("/") if name]
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        match names:
            case []:
                return _html(
                    "".join(f"<li class=org><a href=/publisher/{k}>{k}</a>" for k in range(self.shape.publishers))
                )
            case ["dataset"]:
                return self._list(query, range(self.shape.datasets))
            case ["publisher", number]:
                return self._list(query, range(int(number), self.shape.datasets, self.shape.publishers))
            case ["dataset", number]:
                return self._dataset(int(number))
            case ["dataset", number, "resource", resource]:
                url = self._download(int(number), int(resource))
                return _html(f"<p class=url><a href={url}>Download</a></p><p><a href=/dataset/{number}>back</a></p>")
            case ["dataset", number, "resource", _, "download", name]:
                return Page.of(f"{number},{name}\n".encode() * 20, mime=TYPES[name.rpartition(".")[2]])
            case ["about" | "contact"] | ["dataset", _, "activity" | "groups"]:
                return _html("<p>Words.</p>")
        return Page.of(b"Not found", status=404)

    @property
    def n_targets(self) -> int:
        """Files of the catalogue."""
        return sum(1 + number % self.shape.resources for number in range(self.shape.datasets))

    def _list(self, query: dict[str, str], numbers: Sequence[int]) -> Page:
        shape = self.shape
        if "tag" in query:
            numbers = [number for number in numbers if number % shape.tags == int(query["tag"])]
        first = (int(query.get("page", 1)) - 1) * shape.page
        items = "".join(
            f"<li class=item><h2><a href=/dataset/{k}>Dataset {k}</a></h2>" for k in numbers[first:][: shape.page]
        )
        pages = "".join(
            f"<li><a href='?{urlencode({**query, 'page': page + 1})}'>{page + 1}</a>"
            for page in range(-(-len(numbers) // shape.page))
        )
        facets = ""
        if shape.has_facets:
            tags = [({"tag": tag, "page": 1}, f"tag {tag}") for tag in range(shape.tags)]
            sorts = [({"sort": sort}, f"sort {sort}") for sort in range(shape.sorts)]
            facets = "".join(
                f"<li class=facet><a href='?{urlencode({**query, **more})}'>{text}</a>" for more, text in tags + sorts
            )
        return _html(
            f"<section class=facets><ul>{facets}</ul></section><ul class=list>{items}</ul><ul class=pages>{pages}</ul>"
        )

    def _dataset(self, number: int) -> Page:
        links = []
        for resource in range(1 + number % self.shape.resources):
            url = f"/dataset/{number}/resource/{resource}"
            links.append(url if self.shape.has_resource_pages else self._download(number, resource))
        items = "".join(f"<li class=resource><a href={url}>Table {k}</a>" for k, url in enumerate(links))
        others = f"<a href=/dataset/{number}/activity>Activity</a> <a href=/dataset/{number}/groups>Groups</a>"
        publisher = number % self.shape.publishers
        return _html(f"{others} <a href=/publisher/{publisher}>{publisher}</a><ul class=resources>{items}</ul>")

    @staticmethod
    def _download(number: int, resource: int) -> str:
        kind = list(TYPES)[(number + resource) % len(TYPES)]
        return f"/dataset/{number}/resource/{resource}/download/{number}-{resource}.{kind}"


def _html(body: str) -> Page:
    nav = "<nav><a href=/dataset>Datasets</a> <a href=/about>About</a></nav>"
    footer = "<footer><a href=/contact>Contact</a></footer>"
    return Page.of(f"<!doctype html><html><body>{nav}<main>{body}</main>{footer}</body></html>".encode())
