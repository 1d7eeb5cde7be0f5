"""The JSON behind the synthetic scripted site: each section of the app is asked in the manner of its make.

What is not understood is answered as real APIs do, with 400, 403, 404 or 405 and a word why. A list beyond the last is
empty or missing, but for the endless make, which has datasets for every number.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl

from scrapy_focus.lab.sites.portal.portal import Page
from scrapy_focus.lab.sites.scripted.plan import PER_COLLECTION, PER_MORE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy_focus.lab.sites.scripted.plan import Plan, Section

_ROWS, _LARGEST = 50, 100  # rows behind an export, items that may be asked for at once
_NAMES: Final = {"offset": "items", "cursor": "data", "post": "hits"}  # of the items in a list; else "results"


class Api:
    """Answers for all paths below ``/api/``; a function of the plan."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        #: What scripts put before a path to make a key of it.
        self.salt = f"{plan.draw('salt'):016x}"

    def key(self, path: str) -> str:
        """Return what the header ``X-Key`` has to be, for the make of that name."""
        value = 0x811C9DC5
        for letter in self.salt + path:
            value = (value ^ ord(letter)) * 0x01000193 & 0xFFFFFFFF
        return f"{value:08x}"

    def answer(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Page:
        """Return the answer to a request."""
        bare, _, query = path.partition("?")
        asked: dict[str, object] = {name: _number(value) for name, value in parse_qsl(query, max_num_fields=20)}
        parts = bare.split("/")[2:]
        section = self._plan.sections.get(parts[0])
        if section is not None and section.make == "post":
            return self._posted(section, method, parts[1:], body)
        if method != "GET":
            return _no(405, "use GET", Allow="GET, HEAD")
        if section is None:
            return self._beside(parts, asked)
        if section.make == "key" and headers.get("x-key") != self.key(path):
            return _no(403, "a key is missing")
        match parts[1:]:
            case ["datasets"]:
                return self._list(section, asked)
            case ["datasets", dataset]:
                return self._dataset(section, dataset)
        return _no(404, "no such resource")

    def rows(self, export: int) -> list[list[object]]:
        """Return the rows of which the browser makes the file of an export."""
        return [[f"export{export}", k, self._plan.draw("row", export, k) % 1000] for k in range(_ROWS)]

    def _posted(self, section: Section, method: str, parts: list[str], body: bytes) -> Page:
        if parts not in (["search"], ["dataset"]):
            return _no(404, "no such resource")
        if method != "POST":
            return _no(405, "use POST", Allow="POST")
        try:
            asked = json.loads(body)
        except (ValueError, RecursionError):
            asked = None
        if not isinstance(asked, dict):
            return _no(400, "this is no JSON object")
        return self._list(section, asked) if parts == ["search"] else self._dataset(section, str(asked.get("id")))

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
        size, page = asked.get("size", asked.get("limit", section.size)), asked.get("page", 1)
        if section.make == "cursor":
            page = self._plan.cursors[section.name].get(str(asked["cursor"])) if "cursor" in asked else 1
        if not isinstance(size, int) or not 1 <= size <= _LARGEST or not isinstance(page, int) or page < 1:
            return _no(400, f"page, cursor and size (1 to {_LARGEST}) have to be right")
        first: object = (page - 1) * size
        if section.make == "offset":
            first = asked.get("offset", 0)
        if not isinstance(first, int) or first < 0:
            return _no(400, "offset is a number")
        if section.make == "next" and first >= section.datasets:
            return _no(404, "no such page")
        last = first + size if section.make == "endless" else min(first + size, section.datasets)
        items = [self._item(section, number) for number in range(first, last)]
        said = self._said(section, page, first, size)
        return _json({**said, _NAMES.get(section.make, "results"): items})

    def _said(self, section: Section, page: int, first: int, size: int) -> dict[str, object]:
        """Return what an answer says besides its items, by the kind of API."""
        pages = -(-section.datasets // size)
        match section.make:
            case "next":
                after = f"/api/{section.name}/datasets?page={page + 1}" if page < pages else None
                return {"count": section.datasets, "next": after}
            case "pages" | "post" | "key":
                return {"page": page, "pages": pages, "total": section.datasets}
            case "offset":
                return {"offset": first, "limit": size, "total": section.datasets}
            case "cursor":
                return {"cursor": self._plan.cursor(section, page + 1) if page < pages else None}
            case "endless":
                return {"page": page}
        return {}

    def _item(self, section: Section, number: int) -> dict[str, object]:
        title, dataset = self._plan.title(section.name, number), self._plan.dataset(section, number)
        match section.shape:
            case "urls":
                return {"title": title, "url": self._plan.dataset_path(section, number)}
            case "values":
                return {"slug": dataset, "label": title}
        return {"id": dataset, "title": title, "org": section.name}

    def _dataset(self, section: Section, dataset: str) -> Page:
        number = self._plan.number(section, dataset)
        if number is None:
            return _no(404, "no such dataset")
        title, files = self._plan.title(section.name, number), self._plan.files_of_dataset(section, number)
        if section.shape == "values":
            return _json({"slug": dataset, "label": title, "parts": list(range(len(files)))})
        return _json({"id": dataset, "title": title, "resources": [{"format": "CSV", "url": path} for path in files]})


def _number(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else text


def _json(value: object, status: int = 200) -> Page:
    return Page.of(json.dumps(value).encode(), status=status, mime="application/json")


def _no(status: int, why: str, **headers: str) -> Page:
    return Page.of(json.dumps({"error": why}).encode(), status=status, mime="application/json", headers=headers)
