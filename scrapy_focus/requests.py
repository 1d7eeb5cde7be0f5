"""Requests as small records: a request that waits costs a few hundred bytes, not two kilobytes.

Only what is not the default is kept, and only plain values: numbers, text, bytes. A request that carries anything else
(a list shared between callbacks, a lambda) waits as the object that it is, so that a spider sees no difference.
"""

from __future__ import annotations

import logging
import pickle
from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy.utils.request import request_from_dict

from scrapy_focus.core.errors import ResumeError
from scrapy_focus.core.files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from scrapy import Spider

logger = logging.getLogger(__name__)

_PLAIN = (str, bytes, int, float, bool, type(None))


def encode(request: Request, spider: Spider) -> bytes | None:
    """Return the record of a request without its URL, ``None`` if it carries more than plain values."""
    if type(request) is not Request or request.cookies or request.flags:
        return None
    callback, errback = _method(request.callback, spider), _method(request.errback, spider)
    if callback is None or errback is None or not (_is_plain(request.meta) and _is_plain(request.cb_kwargs)):
        return None
    fields = {
        "callback": callback,
        "errback": errback,
        "method": request.method if request.method != "GET" else "",
        "headers": dict(request.headers),
        "body": request.body,
        "meta": {name: str(value) if _is_lxml_text(value) else value for name, value in request.meta.items()},
        "encoding": request.encoding if request.encoding != "utf-8" else "",
        "priority": request.priority,
        "dont_filter": request.dont_filter,
        "cb_kwargs": request.cb_kwargs,
    }
    return pickle.dumps({name: value for name, value in fields.items() if value}, protocol=5)


def decode(url: str, record: bytes, spider: Spider) -> Request:
    """Return the request again that :func:`encode` made the record of."""
    fields: dict[str, Any] = pickle.loads(record)  # noqa: S301 (made by encode, in this process or the user's job)
    for name in ("callback", "errback"):
        if name in fields:
            fields[name] = getattr(spider, fields[name])
    return Request(url, **fields)


def _method(function: Any, spider: Spider) -> str | None:
    """Return the name of a method of the spider, ``""`` for no function, ``None`` for any other."""
    if function is None:
        return ""
    name = getattr(function, "__name__", "")
    return name if getattr(function, "__self__", None) is spider and getattr(spider, name, None) == function else None


def _is_plain(values: Mapping[Any, Any]) -> bool:
    return all(type(value) in _PLAIN or _is_lxml_text(value) for value in values.values())


def _is_lxml_text(value: Any) -> bool:
    """Whether it is the text of a link extractor, which remembers the page that it stood on."""
    return isinstance(value, str) and type(value).__module__ == "lxml.etree"


class Requests:
    """The requests of waiting links: their records, and those that wait as they are."""

    def __init__(self, spider: Spider) -> None:
        self.spider = spider
        self._kept: dict[int, Request] = {}

    def __len__(self) -> int:
        """How many wait as they are."""
        return len(self._kept)

    def pack(self, key: int, request: Request) -> bytes:
        """Return the record of a request; ``b""`` if it is kept as it is, under its key."""
        record = encode(request, self.spider)
        if record is None:
            self._kept[key] = request
            return b""
        return record

    def unpack(self, key: int, url: str, record: bytes) -> Request:
        """Return the request again; once for each time it was packed."""
        kept = self._kept.pop(key, None)
        if kept is not None:
            return kept
        if not record:
            raise KeyError(f"the request for {url} could not be stored when the crawl was stopped")
        return decode(url, record, self.spider)

    def keep(self, key: int, request: Request) -> None:
        """Let a request wait as it is, in place of the one that was packed under this key."""
        self._kept[key] = request

    def forget(self, key: int) -> None:
        """The request under this key was given up."""
        self._kept.pop(key, None)

    def checkpoint(self, folder: Path) -> list[int]:
        """Write those that wait as they are to a folder, and return the keys of those that cannot be stored."""
        stored: dict[int, dict[str, Any]] = {}
        for key, request in self._kept.items():
            try:
                fields = request.to_dict(spider=self.spider)
                pickle.dumps(fields, protocol=5)
                stored[key] = fields
            except (ValueError, TypeError, AttributeError, pickle.PicklingError):
                continue
        write_atomically(folder / "requests.pickle", pickle.dumps(stored, protocol=5))
        return [key for key in self._kept if key not in stored]

    def resume(self, folder: Path) -> None:
        """Go on with what :meth:`checkpoint` wrote.

        A request whose callback is gone since then is logged and left out.

        Raises
        ------
        ResumeError
            If it cannot be read.
        """
        path = folder / "requests.pickle"
        try:
            stored = pickle.loads(path.read_bytes())  # noqa: S301 (the user's own job directory)
        except Exception as error:
            raise ResumeError(f"{path} cannot be read ({error}); remove {folder} to start afresh") from error
        for key, fields in stored.items():
            try:
                self._kept[key] = request_from_dict(fields, spider=self.spider)
            except Exception as error:
                logger.warning("%s cannot be requested again: %s", fields.get("url"), error)
