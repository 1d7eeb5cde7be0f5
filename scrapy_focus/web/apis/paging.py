"""Which answer comes behind an answer, where it says that there is one.

An API that answers any number would be asked for ever by whoever counts on. So a next page is what the answer names
(a URL, a cursor), or a number that is within a total that the answer states. A mere *there is more* counts only where
the caller has seen it end.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import quote, unquote, urljoin

from scrapy_focus.web.apis.templates import origin_of, spelled

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from scrapy_focus.web.apis.answers import Call

How = Literal["url", "cursor", "number", "flag", "end", ""]

_PLAIN = re.compile(r"[^a-z0-9]")
_ENVELOPES = frozenset(
    "data hits info links list meta metadata page pageinfo pager pages paging pagination payload response result "
    "resultinfo results resultset".split()
)
_NEXT = ("next", "nexturl", "nextlink", "nexthref", "nextpageurl", "nextpagelink", "odatanextlink", "nextrecordsurl")
_MORE = ("hasmore", "hasnext", "hasnextpage", "more", "moreavailable", "ismore", "moreresults", "moreresultsavailable")
_DONE = ("done", "islast", "last", "end", "islastpage", "finished", "isfinished")
_PAGES = ("totalpages", "pages", "pagecount", "numpages", "lastpage", "pagestotal", "maxpage", "totalpage", "npages")
_TOTAL = (
    "total", "totalcount", "totalresults", "totalitems", "numfound", "recordstotal", "totalrecords", "totalelements",
    "totalhits", "nhits", "counttotal", "nummatched", "numbermatched", "count",
)  # fmt: skip
_PAGE = frozenset("page p pg pageno pagenumber pagenum pageindex currentpage pageid seite".split())
_PAGE_IN_PATH = _PAGE | {"pages"}
_OFFSET = frozenset("offset start skip from startindex begin first startrecord startat".split())
_SIZE = frozenset(
    "size limit perpage pagesize rows count n take top max maxresults itemsperpage pagelimit pagelength length".split()
)
_CURSOR = (
    "nextcursor", "nextpagetoken", "nexttoken", "endcursor", "continuationtoken", "continuation", "cursor",
    "pagetoken", "scrollid", "nextpage", "nextkey", "after", "resumptiontoken",
)  # fmt: skip
_CURSORS = frozenset((
    "cursor", "pagetoken", "token", "after", "continuation", "continuationtoken", "nextcursor", "nexttoken",
    "scrollid", "startafter", "nextpagetoken", "resumptiontoken",
))  # fmt: skip
_FIELDS = 500  # of an answer that are looked at
_DIGITS = re.compile(r"[0-9]{1,15}\Z")


class Next(NamedTuple):
    """What an answer says of the one behind it.

    ``how`` is ``"url"``, ``"cursor"`` or ``"number"`` if it is known, ``"flag"`` if the answer says no more than that
    there is one, ``"end"`` if it says that there is none, and ``""`` if it says nothing.
    """

    url: str = ""
    how: How = ""
    total: int = -1  # pages or items that are stated, -1 for none
    items: int = 0  # elements of the longest list
    flagged: bool = False  # a flag says yes or no


_END = Next("", "end")
_SILENT = Next()


class _Stated(NamedTuple):
    """What an answer states of its list: elements that it has, pages and elements in all (-1 for none), and whether
    there is more.
    """

    items: int
    pages: int
    total: int
    flag: bool | None


class Fields(NamedTuple):
    """What an answer says of itself: values by their names in small letters, and the longest of its lists."""

    values: dict[str, Any]
    items: int


def fields_of(data: Any) -> Fields:
    """Return what an answer says of itself, at its top and in what is called ``meta``, ``pagination`` and the like."""
    values: dict[str, Any] = {}
    items = len(data) if isinstance(data, list) else 0
    level = [data] if isinstance(data, dict) else []
    for _ in range(3):
        below: list[dict[Any, Any]] = []
        for each in level:
            items = max(items, _add_fields(each, values, below))
        level = below[:10]
    return Fields(values, items)


def _add_fields(data: dict[Any, Any], values: dict[str, Any], below: list[dict[Any, Any]]) -> int:
    """Add the fields of one object to values, its envelopes to those below; return the length of its longest list."""
    items = 0
    for name, value in islice(data.items(), _FIELDS):
        key = _PLAIN.sub("", str(name)[:64].lower())
        if isinstance(value, list):
            items = max(items, len(value))
            if key == "links" and (url := _linked(value)):
                values.setdefault("next", url)
        elif isinstance(value, dict):
            inner = _value_in(value)
            if isinstance(inner, (str, int)):
                values.setdefault(key, inner)
            if key in _ENVELOPES:
                below.append(value)
        elif len(values) < _FIELDS:
            values.setdefault(key, value)
    return items


def _value_in(data: dict[Any, Any]) -> Any:
    """Return the value of a field that is an object, such as ``{"href": ...}``."""
    return data.get("href") or data.get("url") or data.get("value")


def next_of(call: Call, *, cursors: Collection[str] = (), by_flag: bool = False, zero: bool = False) -> Next:
    """Return what is behind an answer.

    Parameters
    ----------
    call
        The answer.
    cursors
        Names of parameters that a page's scripts were seen to give cursors in.
    by_flag
        Whether a mere *there is more* (``has_more``) is enough to count on.
    zero
        Whether pages are counted from zero.

    Examples
    --------
    >>> from scrapy_focus.web.apis.answers import Call
    >>> next_of(Call("http://a.test/api?page=3&size=10", {"pages": 9, "results": [1, 2]})).url
    'http://a.test/api?page=4&size=10'
    >>> next_of(Call("http://a.test/api?page=3&size=10", {"results": [1, 2]}))
    Next(url='', how='', total=-1, items=2, flagged=False)
    """
    values, items = fields_of(call.data)
    flag = _flag(values)
    stated = _Stated(items, pages=_number(values, _PAGES), total=_number(values, _TOTAL), flag=flag)
    following = _following(call.url, values, stated, cursors, by_flag=by_flag and flag is True, zero=zero)
    return following._replace(total=max(stated.pages, stated.total), items=items, flagged=flag is not None)


def _following(
    url: str, values: dict[str, Any], stated: _Stated, cursors: Collection[str], *, by_flag: bool, zero: bool
) -> Next:
    """Return what is behind an answer, by the first of its words that says so: a flag, a URL, a cursor, a number."""
    if stated.flag is False:
        return _END
    named = _by_name(url, values)
    if named is not None:
        return named
    if not stated.items:
        if stated.pages >= 0 or stated.total >= 0:
            return _END
        return _SILENT
    if by_cursor := _by_cursor(url, values, cursors):
        return Next(by_cursor, "cursor")
    return _by_number(url, values, stated, by_flag=by_flag, zero=zero)


def _by_name(url: str, values: dict[str, Any]) -> Next | None:
    """Return the next answer by the URL that an answer calls the next; ``None`` if it says nothing of that."""
    for name in _NEXT:
        if name not in values:
            continue
        value = values[name]
        if value is None or value in ("", False):
            return _END
        if isinstance(value, str) and ("/" in value or "?" in value):
            named = _joined(url, value)
            if named and named != url:
                return Next(named, "url")
            return _END
    return None


def _by_number(url: str, values: dict[str, Any], stated: _Stated, *, by_flag: bool, zero: bool) -> Next:
    """Return the URL with the next number in its query or path."""
    # Without a total, only a flag that was seen to end says how far to count.
    is_open = by_flag and stated.pages < 0 and stated.total < 0
    echo = _number(values, tuple(_PAGE))
    for name, value in _query(url):
        if not _DIGITS.match(value):
            continue
        key = _PLAIN.sub("", name.lower())
        number = int(value)
        if key in _OFFSET:
            if number + stated.items < stated.total or is_open:
                return Next(_with(url, name, str(number + stated.items)), "number")
            return _last(stated, is_counted=stated.total >= 0)
        # A parameter of any name numbers pages if the answer repeats its value beside a number of pages.
        is_echoed = echo == number and key not in _SIZE and stated.pages >= 0
        if key in _PAGE or is_echoed:
            last = _last_page(url, stated) - zero
            if number < last or is_open:
                return Next(_with(url, name, str(number + 1)), "number")
            return _last(stated, is_counted=last >= 0)
    return _by_path(url, stated, zero=zero)


def _by_path(url: str, stated: _Stated, *, zero: bool) -> Next:
    """Return the URL with the next number in its path, as in ``/page/2``."""
    head, mark, query = url.partition("?")
    parts = head.split("/")
    for at in range(len(parts) - 1, 3, -1):
        if not _DIGITS.match(parts[at]) or _PLAIN.sub("", parts[at - 1].lower()) not in _PAGE_IN_PATH:
            continue
        if int(parts[at]) < stated.pages - zero:
            parts[at] = str(int(parts[at]) + 1)
            return Next("/".join(parts) + mark + query, "number")
        if stated.pages >= 0:
            return _END
        return _SILENT
    return _last(stated, is_counted=False)


def _last(stated: _Stated, *, is_counted: bool) -> Next:
    """Return what is behind an answer whose number leads to no next one."""
    if is_counted:
        return _END
    if stated.flag:
        return Next("", "flag")
    return _SILENT


def _last_page(url: str, stated: _Stated) -> int:
    """Return the number of pages that an answer states, or that follows from its total; -1 for none."""
    if stated.pages >= 0:
        return stated.pages
    if stated.total < 0:
        return -1
    size = stated.items
    for name, value in _query(url):
        # The last one counts, as servers read it.
        if _PLAIN.sub("", name.lower()) in _SIZE and _DIGITS.match(value) and int(value):
            size = max(stated.items, int(value))
    return -(-stated.total // max(1, size))


def rest_of_lists(calls: Sequence[Call]) -> list[str]:
    """Return what comes next in each list of which a page's scripts fetched a part, where its answers state a total.

    Examples
    --------
    >>> from scrapy_focus.web.apis.answers import Call
    >>> answers = [Call(f"http://a.test/api?page={n}", {"total": 25, "items": [*range(10)]}) for n in (1, 2)]
    >>> rest_of_lists(answers[:1]), rest_of_lists(answers), rest_of_lists([Call("http://a.test/api", {"total": 3})])
    (['http://a.test/api?page=2'], ['http://a.test/api?page=3'], [])
    """
    asked = {spelled(call.url) for call in calls}
    from_zero = {without_page(call.url) for call in calls if page_number(call) == 0}
    found: dict[str, None] = {}
    for call in calls:
        said = next_of(call, zero=without_page(call.url) in from_zero)
        if said.url and said.total >= 0 and spelled(said.url) not in asked:
            found[said.url] = None
    return list(found)


def cursor_name(url: str, call: Call) -> str:
    """Return which parameter of a URL has a cursor that an answer names, where it differs from the answer's own URL in
    that one only; ``""`` if none has.
    """
    before, after = dict(_query(call.url)), dict(_query(url))
    if url.partition("?")[0] != call.url.partition("?")[0]:
        return ""
    changed = [name for name in before.keys() | after.keys() if before.get(name) != after.get(name)]
    if len(changed) != 1 or changed[0] not in after:
        return ""
    values = fields_of(call.data).values
    given = [str(values[name]) for name in (*_CURSOR, *_NEXT) if isinstance(values.get(name), (str, int))]
    value = unquote(after[changed[0]].replace("+", " "))
    return changed[0] if value in given and not isinstance(values.get(_PLAIN.sub("", changed[0])), bool) else ""


def page_number(call: Call) -> int:
    """Return the number of the page that an answer was asked for, by its URL; -1 for none."""
    for name, value in _query(call.url):
        if _PLAIN.sub("", name.lower()) in _PAGE and _DIGITS.match(value):
            return int(value)
    return -1


def is_page(name: str) -> bool:
    """Whether a parameter has the number of a page, by its name."""
    return _PLAIN.sub("", name.lower()) in _PAGE


def without_page(url: str) -> str:
    """Return a URL without the numbers of pages in its query."""
    query = "&".join(f"{name}={value}" for name, value in _query(url) if _PLAIN.sub("", name.lower()) not in _PAGE)
    return f"{url.partition('#')[0].partition('?')[0]}?{query}"


def last_number(call: Call) -> int:
    """Return the number of pages that an answer states, or that follows from its total; -1 for none."""
    values, items = fields_of(call.data)
    pages = _number(values, _PAGES)
    if pages >= 0:
        return pages
    total = _number(values, _TOTAL)
    size = items
    for name, value in _query(call.url):
        if _PLAIN.sub("", name.lower()) in _SIZE and _DIGITS.match(value):
            size = max(size, int(value))
    return -(-total // size) if total >= 0 and size else -1


def _by_cursor(url: str, values: dict[str, Any], cursors: Collection[str]) -> str:
    """Return the URL with the cursor that an answer names; ``""`` if it names none, or its parameter is not known."""
    parameter = _cursor_parameter(url, cursors)
    if not parameter:
        return ""
    for field in _CURSOR:
        value = values.get(field)
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            continue
        text = str(value)
        if not text or len(text) > 1000:
            continue
        made = _with(url, parameter, quote(text, "!'()*", errors="replace"))
        if made != url:
            return made
    return ""


def _cursor_parameter(url: str, cursors: Collection[str]) -> str:
    """Return the parameter that takes cursors: the first that was seen to, or one that is called so in the URL."""
    if cursors:
        return next(iter(cursors))
    for name, _ in _query(url):
        if _PLAIN.sub("", name.lower()) in _CURSORS:
            return name
    return ""


def _flag(values: dict[str, Any]) -> bool | None:
    """Return whether an answer says that there is more, ``None`` if no flag does."""
    for names, means in ((_MORE, True), (_DONE, False)):
        for name in names:
            if isinstance(values.get(name), bool):
                return bool(values[name]) == means
    return None


def _number(values: dict[str, Any], names: tuple[str, ...]) -> int:
    for name in names:
        value = values.get(name)
        if isinstance(value, str) and _DIGITS.match(value):
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53:
            return value
    return -1


def _linked(links: list[Any]) -> str:
    """Return the URL of the link to the next page in a list of links."""
    for each in links[:20]:
        if isinstance(each, dict) and each.get("rel") == "next" and isinstance(each.get("href"), str):
            return str(each["href"])
    return ""


def _joined(base: str, value: str) -> str:
    try:
        url = urljoin(base, value.strip()).partition("#")[0]
    except ValueError:
        return ""
    return url if origin_of(url).partition("://")[2] == origin_of(base).partition("://")[2] else ""


def _query(url: str) -> list[tuple[str, str]]:
    pieces = url.partition("#")[0].partition("?")[2].split("&", 64)
    return [(piece.partition("=")[0], piece.partition("=")[2]) for piece in pieces if "=" in piece]


def _with(url: str, name: str, value: str) -> str:
    """Return a URL with another value of a parameter, which is added where it is missing."""
    head, _, query = url.partition("#")[0].partition("?")
    pieces = query.split("&") if query else []
    for at, piece in enumerate(pieces):
        if piece.partition("=")[0] == name:
            pieces[at] = f"{name}={value}"
            break
    else:
        pieces.append(f"{name}={value}")
    return f"{head}?{'&'.join(pieces)}"
