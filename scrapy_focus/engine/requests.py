"""Stores requests as small records: a queued request takes a few hundred bytes, not two kilobytes.

A record keeps only what differs from the defaults, and only plain values: numbers, text, bytes. A request that carries
anything else (a list shared between callbacks, a lambda) stays in memory as the same object, so a spider sees no
difference. In a job that has to survive its process, values are pickled as in Scrapy's own disk queues. That holds for
classes of the standard library, of Scrapy, of the project, and those in ``FOCUS_STORED_CLASSES``; other requests stay
in memory.
"""

from __future__ import annotations

import pickle
import sys
from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy.utils.misc import load_object
from scrapy.utils.request import request_from_dict

from scrapy_focus.core.errors import FocusError, StorageError
from scrapy_focus.core.printable import printable_logger
from scrapy_focus.jobs.pickles import Classes, RefusedName
from scrapy_focus.jobs.snapshots import home_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from scrapy import Spider

logger = printable_logger(__name__)


class Unsendable(FocusError):
    """Raised for a request that carries a value that cannot be sent to another process."""


class MissingCallback(StorageError):
    """Raised when this spider cannot rebuild a stored request. The request stays queued for a spider that can."""


_OF_SCRAPY = ("itemadapter", "scrapy.http", "scrapy.item", "scrapy.link", "scrapy.utils.datatypes")
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


def classes_for(spider: Spider, stores: Collection[str] = ()) -> Classes:
    """Return the classes that records may name: of Scrapy, and of the packages of the spider and its bases."""
    return Classes({*_OF_SCRAPY, *project_of(spider)}, stores)


def project_of(spider: Spider) -> set[str]:
    """Return the packages of a spider and its bases, except installed third-party ones."""
    return {home_of(cls) for cls in type(spider).__mro__} - {"builtins", "scrapy", "scrapy_focus"}


def encode_deeply(request: Request, spider: Spider, classes: Classes | None = None) -> bytes:
    """Return the record of a request that carries more than plain values, like Scrapy's disk queues.

    Raises
    ------
    ValueError
        If that cannot be stored: the callback is not a method of the spider, or a value cannot be pickled or is of a
        class that is not in ``classes``.
    """
    fields = request.to_dict(spider=spider)
    try:
        return (classes or classes_for(spider)).dumps(fields)
    except Exception as error:  # whatever a user's value raises
        raise ValueError(str(error) or type(error).__name__) from error


def decode(url: str, record: bytes, spider: Spider, classes: Classes | None = None) -> Request:
    """Rebuild the request of a record made by :func:`encode` or :func:`encode_deeply`.

    Raises
    ------
    MissingCallback
        If the spider lacks a method that the request names, or the record names a class that is not in
        ``classes``.
    """
    classes = classes or classes_for(spider)
    try:
        fields: dict[str, Any] = classes.loads(record)
        if path := fields.get("_class"):
            _check_class(path, classes)
    except RefusedName as error:
        raise MissingCallback(f"a stored request for {url!r:.200} cannot be read: {error}") from error
    for name in ("callback", "errback"):
        method = fields.get(name)
        if method and not hasattr(spider, method):
            raise MissingCallback(
                f"a stored request for {url} needs {type(spider).__qualname__}.{method}(), which does not exist: start "
                "the crawl with its original spider, or add that method"
            )
        if method and "url" not in fields:
            fields[name] = getattr(spider, method)
    if "url" in fields:
        return request_from_dict(fields, spider=spider)
    return Request(url, **fields)


def _check_class(path: str, classes: Classes) -> None:
    """Raise an error unless this is a subclass of Request, since Scrapy will import and instantiate it."""
    module, _, name = path.rpartition(".")
    cls = load_object(path) if module in sys.modules else classes.find(module, name)
    if not (isinstance(cls, type) and issubclass(cls, Request)):
        raise RefusedName(module, name)


def _method(function: Any, spider: Spider) -> str | None:
    """Return the name of a method of the spider, ``""`` for no function, ``None`` for any other."""
    if function is None:
        return ""
    name = getattr(function, "__name__", "")
    return name if getattr(function, "__self__", None) is spider and getattr(spider, name, None) == function else None


def _is_plain(values: Mapping[Any, Any]) -> bool:
    return all(type(value) in _PLAIN or _is_lxml_text(value) for value in values.values())


def _is_lxml_text(value: Any) -> bool:
    """Whether this is a string of lxml's link extractor, which keeps its whole page in memory."""
    return isinstance(value, str) and type(value).__module__ == "lxml.etree"


class Requests:
    """The requests of queued links: stored as records, or kept in memory as objects.

    Parameters
    ----------
    spider
        The spider, whose methods are the callbacks.
    durable
        Whether only records survive, so that everything that can be stored is.
    stores
        Import paths of classes of other libraries that requests may carry.
    travels
        Whether another process may send the request, so that one that cannot be stored is refused.
    """

    def __init__(
        self, spider: Spider, *, durable: bool = False, stores: Collection[str] = (), travels: bool = False
    ) -> None:
        self.spider = spider
        self.classes = classes_for(spider, stores)
        self.durable = durable
        self.travels = travels
        self._kept: dict[int, Request] = {}
        self._warned = False
        self._told_of_loss = False
        self._lost: set[int] = set()  # keys whose requests were looked up in vain

    def __len__(self) -> int:
        """How many requests are kept in memory."""
        return len(self._kept)

    def kept(self) -> list[int]:
        """Return the keys of the requests that are kept in memory."""
        return [*self._kept]

    def pack(self, key: int, request: Request, *, again: bool = False) -> bytes:
        """Return the record of a request; ``b""`` if it is kept in memory under its key.

        With ``again``, a request that is already kept under this key stays.

        Raises
        ------
        Unsendable
            If it cannot be stored, and has to be.
        """
        record = encode(request, self.spider)
        if record is None and self.durable:
            try:
                record = encode_deeply(request, self.spider, self.classes)
            except ValueError as error:
                if self.travels:
                    raise Unsendable(
                        f"{request!r} cannot be fetched by another process of this crawl, and is skipped: {error}; "
                        "use plain values, and a method of the spider as its callback"
                    ) from error
                self._warn(request, error)
        if record is None:
            if not (again and key in self._kept):
                self._kept[key] = request
            return b""
        return record

    def unpack(self, key: int, url: str, record: bytes) -> Request | None:
        """Rebuild the request, once for each time it was packed; ``None`` if it was lost with another process."""
        kept = self._kept.pop(key, None)
        if kept is not None:
            return kept
        if not record:
            if not self._told_of_loss:
                self._told_of_loss = True
                logger.warning(
                    "the request for %s could not be stored, and was lost with its process, like all counted in "
                    "focus/outcome/lost in the stats", url,
                )  # fmt: skip
            self._lost.add(key)
            return None
        return decode(url, record, self.spider, self.classes)

    def adopt(self, key: int, request: Request) -> None:
        """Note that a queued request was made again: if it cannot be stored, an earlier process may have lost it."""
        if encode(request, self.spider) is None:
            try:
                encode_deeply(request, self.spider, self.classes)
            except ValueError:
                self._kept.setdefault(key, request)

    def was_lost(self, key: int) -> bool:
        """Whether a request was lost with another process. Returns ``True`` once."""
        lost = key in self._lost
        self._lost.discard(key)
        return lost

    def forget(self, key: int) -> None:
        """Forget the request under this key: it was given up."""
        self._kept.pop(key, None)

    def _warn(self, request: Request, error: ValueError) -> None:
        if not self._warned:
            self._warned = True
            logger.warning(
                "%r cannot be stored, and is lost if this process ends before it is sent: %s. It is kept in memory, "
                "like all others of this kind (focus/link/kept in the stats)", request, error,
            )  # fmt: skip
