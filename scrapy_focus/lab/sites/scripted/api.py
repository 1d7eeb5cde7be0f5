"""The JSON behind the synthetic scripted site: each section of the app has its own kind of API.

Invalid requests are answered as by real APIs, with 400, 404 or 405 and a reason. A list beyond the last is empty or
missing.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from scrapy_focus.lab.sites.portal.portal import Page
from scrapy_focus.lab.sites.scripted.plan import PER_COLLECTION, PER_MORE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy_focus.lab.sites.scripted.plan import Plan, Section

_ROWS, _LARGEST = 50, 100  # rows behind an export, items that may be asked for at once


class Api:
    """Answers for all paths below ``/api/``; a function of the plan."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def answer(self, method: str, path: str) -> Page:
        """Return the answer to a request."""
        bare, _, query = path.partition("?")
        asked: dict[str, object] = {name: _number(value) for name, value in parse_qsl(query, max_num_fields=20)}
        parts = bare.split("/")[2:]
        section = self._plan.sections.get(parts[0])
        if method != "GET":
            return _no(405, "use GET", Allow="GET, HEAD")
        if section is None:
            return self._beside(parts, asked)
        match parts[1:]:
            case ["datasets"]:
                return self._list(section, asked)
            case ["datasets", dataset]:
                return self._dataset(section, dataset)
        return _no(404, "no such resource")

    def rows(self, export: int) -> list[list[object]]:
        """Return the rows that the browser turns into the file of an export."""
        return [[f"export{export}", k, self._plan.draw("row", export, k) % 1000] for k in range(_ROWS)]

    def _beside(self, parts: list[str], asked: Mapping[str, object]) -> Page:
        """Return what collections and exports get."""
        plan = self._plan
        match parts:
            case ["more"]:
                number, offset = asked.get("collection"), asked.get("offset")
                if not isinstance(number, int) or not isinstance(offset, int):
                    return _no(400, "collection and offset are numbers")
                if not 1 <= number <= plan.mix.collections:
                    return _no(404, "no such collection")
                files = plan.files_of("collections", number)[offset : offset + PER_MORE]
                items = [{"href": path, "label": f"Table {offset + k}"} for k, path in enumerate(files)]
                return _json({"items": items, "done": offset + PER_MORE >= PER_COLLECTION})
            case ["rows"]:
                number = asked.get("id")
                if isinstance(number, int) and 1 <= number <= plan.mix.exports and plan.is_blob(number):
                    return _json(self.rows(number))
        return _no(404, "no such resource")

    def _list(self, section: Section, asked: Mapping[str, object]) -> Page:
        size, page = asked.get("size", section.size), asked.get("page", 1)
        if not isinstance(size, int) or not 1 <= size <= _LARGEST or not isinstance(page, int) or page < 1:
            return _no(400, f"page and size (1 to {_LARGEST}) have to be right")
        first = (page - 1) * size
        if section.make == "next" and first >= section.datasets:
            return _no(404, "no such page")
        items = [self._item(section, number) for number in range(first, min(first + size, section.datasets))]
        return _json({**self._said(section, page, size), "results": items})

    def _said(self, section: Section, page: int, size: int) -> dict[str, object]:
        """Return the fields of an answer besides its items, by the kind of API."""
        pages = -(-section.datasets // size)
        if section.make == "pages":
            return {"page": page, "pages": pages, "total": section.datasets}
        after = f"/api/{section.name}/datasets?page={page + 1}" if page < pages else None
        return {"count": section.datasets, "next": after}

    def _item(self, section: Section, number: int) -> dict[str, object]:
        title = self._plan.title(section.name, number)
        if section.shape == "urls":
            return {"title": title, "url": self._plan.dataset_path(section, number)}
        return {"id": self._plan.dataset(section, number), "title": title, "org": section.name}

    def _dataset(self, section: Section, dataset: str) -> Page:
        number = self._plan.number(section, dataset)
        if number is None:
            return _no(404, "no such dataset")
        title, files = self._plan.title(section.name, number), self._plan.files_of_dataset(section, number)
        return _json({"id": dataset, "title": title, "resources": [{"format": "CSV", "url": path} for path in files]})


def _number(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else text


def _json(value: object, status: int = 200) -> Page:
    return Page.of(json.dumps(value).encode(), status=status, mime="application/json")


def _no(status: int, why: str, **headers: str) -> Page:
    return Page.of(json.dumps({"error": why}).encode(), status=status, mime="application/json", headers=headers)
