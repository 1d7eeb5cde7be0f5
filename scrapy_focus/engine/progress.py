"""The progress of a crawl, as text and as a panel: requests, time, finds, and the kinds of links that led to them."""

from __future__ import annotations

from collections import deque
from time import monotonic
from typing import TYPE_CHECKING, Literal, NamedTuple

from scrapy_focus.core.abilities import ExpectsLeft, ShowsTables
from scrapy_focus.core.printable import WORD, counted, inflected, printable
from scrapy_focus.core.table_lines import in_lines
from scrapy_focus.engine.finds import Finds, unlike
from scrapy_focus.web.html import readable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    from scrapy_focus.core.abilities import PolicyTable
    from scrapy_focus.core.status import Status
    from scrapy_focus.engine.host import Host

_RECENT = 100  # requests for the rate "now"
_SOON = 100  # requests before a cost limit ends a crawl, when that is announced
_LONGEST = 120  # characters of the name of a kind of link
_BEST = 3  # kinds of links that are named
_KINDS = 5  # kinds of finds that are named
_WINDOW = 60.0  # seconds for the speed
_FEW = 5  # requests in this window that are needed to know the speed
_BETWEEN = 5.0  # seconds between two updates of the policy's tables
_COST = 50.0  # or this many times the duration of an update
_TABLE_ROWS = 8  # rows of a table
_MOST_LINES = 24  # lines of all tables
_KEPT_FREE = 8  # lines of a terminal: the border, the first line, and some of the log
_NARROW = 40  # columns below which the bar is not shown
_TIMES = ((86_400, "d"), (3600, "h"), (60, "min"))


class Speed:
    """The speed of a crawl, and the time until a budget is used up.

    Parameters
    ----------
    delay
        Seconds between two requests, for an estimate before any are measured.
    """

    def __init__(self, delay: float) -> None:
        self._delay = delay
        self._seen: deque[tuple[float, float, float]] = deque()  # seconds, requests and bytes, the oldest first

    def note(self, status: Status) -> None:
        """Record the status of a crawl; call it at most a few times per second."""
        used = status.used
        self._seen.append((used["seconds"], used["requests"], used["bytes"]))
        while self._seen[-1][0] - self._seen[0][0] > _WINDOW:
            self._seen.popleft()

    def left(self, status: Status) -> float | None:
        """Return the seconds until the first budget is used up, ``None`` if there is none, or if unknown."""
        used, limits = status.used, status.limits
        ends: list[float | None] = []
        for unit in ("requests", "bytes"):
            limit = limits[unit]
            if limit is not None:
                ends.append(self._time_of(max(0.0, limit - used[unit]), unit, status))
        if limits["seconds"] is not None:
            ends.append(max(0.0, limits["seconds"] - used["seconds"]))
        return min((end for end in ends if end is not None), default=None)

    def _time_of(self, n: float, unit: Literal["requests", "bytes"], status: Status) -> float | None:
        """Return the seconds that `n` requests or bytes take, ``None`` if unknown."""
        if unit == "requests" and status.rate is not None:
            return n * max(status.rate.interval, self._delay)
        if self._seen:
            first, last = self._seen[0], self._seen[-1]
            seconds, requests, n_bytes = (now - began for began, now in zip(first, last, strict=True))
            done = requests if unit == "requests" else n_bytes
            if seconds > 0 and requests >= _FEW and done:
                return n * seconds / done
        if unit == "requests" and self._delay:
            return n * self._delay
        return None


class Tables:
    """The tables of a policy, updated so rarely that this takes at most a fiftieth of the time."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._due = 0.0  # seconds of time.monotonic
        self._last: list[PolicyTable] = []

    def now(self) -> list[PolicyTable]:
        """Return the tables, a few seconds old, or older if an update is slow."""
        began = monotonic()
        if issubclass(self._host.policy, ShowsTables) and began >= self._due:
            self._last = self._host.tables()
            self._due = (now := monotonic()) + max(_BETWEEN, _COST * (now - began))
        return self._last


class View(NamedTuple):
    """The state of a crawl that the panel shows."""

    host: Host
    finds: Finds
    speed: Speed
    advice: str = ""  # what Ctrl-C does, and how to resume
    tables: Sequence[PolicyTable] = ()  # tables of the policy


def progress(host: Host, finds: Finds | None = None) -> list[str]:
    """Describe the progress of a crawl: requests and finds, rates, bytes, and the best kinds of links."""
    own = host.status(best=_BEST)
    status = own.whole or own
    used, limit = int(status.used["requests"]), status.limits["requests"]
    so_far = f"{_sent(used, limit)}, {_found(host, status, finds)}"
    lines = [so_far, *_details(host, own)]
    if best := _best(status, finds):
        lines.append(f"best kinds of links: {', '.join(best)}")
    return lines


def draw_panel(view: View, width: int, height: int | None = None) -> Panel:
    """Return the panel of a crawl; tables of the policy fill the lines that are left of ``height``."""
    from rich.console import Group
    from rich.panel import Panel
    from rich.text import Text

    host, finds = view.host, view.finds
    own = host.status(best=_BEST)
    status = own.whole or own
    view.speed.note(status)
    limit, found = status.limits["requests"], _found(host, status, finds)
    if finds.kinds and own.whole is None:  # otherwise they are those of this worker
        found += f": {kinds(finds)}"
    lines = [found, *_details(host, own, finds)]
    if best := _best(status, finds):
        lines += ["best kinds of links:", *(f"  {kind}" for kind in best)]
    if finds.last:
        lines.append(f"last: {', '.join(reversed(finds.last))}")
    room = width - 4  # within the border
    end = [view.advice] if view.advice else []
    if height is None:
        lines += _tables(view.tables, room, _MOST_LINES)
    else:
        lines += _tables(view.tables, room, height - _KEPT_FREE - _height([*lines, *end], room))
    lines += end
    head = Text(_head(status, view.speed))
    title = Text(f"scrapy_focus: {host.policy.__qualname__}" if host.config.own_policy else "scrapy_focus")
    row = _with_bar(head, status.used["requests"], limit, room) if limit and room >= _NARROW else head
    return Panel(Group(row, Text("\n".join(lines))), title=title, title_align="left", width=width)


def kinds(finds: Finds) -> str:
    """Return the number of finds of each kind: "12 csv, 3 pdf"."""
    named = [f"{n:,} {printable(kind, WORD) or 'others'}" for kind, n in finds.kinds.most_common(_KINDS)]
    rest = len(finds.kinds) - len(named)
    if rest:
        named.append(f"{rest} more {inflected(rest, 'kind', 'kinds')}")
    return ", ".join(named)


def duration(seconds: float) -> str:
    """Return a duration in its one or two largest units.

    Examples
    --------
    >>> duration(7), duration(125), duration(7300), duration(200_000)
    ('7 s', '2 min 5 s', '2 h 1 min', '2 d 7 h')
    """
    rest = round(seconds)
    for i, (size, unit) in enumerate(_TIMES):
        if rest >= size:
            below, name = _TIMES[i + 1] if i + 1 < len(_TIMES) else (1, "s")
            more = rest % size // below
            if more:
                return f"{rest // size} {unit} {more} {name}"
            return f"{rest // size} {unit}"
    return f"{rest} s"


def _tables(tables: Sequence[PolicyTable], room: int, left: int) -> list[str]:
    """Return the first rows of tables, in at most `left` lines; tables without room for a row are omitted."""
    lines: list[str] = []
    for table in tables:
        rows = min(_TABLE_ROWS, left - len(lines) - 2)  # below its title and the names of its columns
        if rows > 0 and table.rows:
            title, *rest = in_lines(table, room - 2, rows)
            lines += [title, *(f"  {line}" for line in rest)]
    return lines


def _height(lines: Sequence[str], room: int) -> int:
    """Return the number of terminal lines that some lines take."""
    from rich.cells import cell_len

    return sum(max(1, -(-cell_len(line) // max(1, room))) for line in lines)


def _with_bar(head: Text, used: float, limit: float, room: int) -> Table:
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    width = min(30, room // 3)
    row = Table.grid(padding=(0, 1, 0, 0))
    row.add_row(ProgressBar(total=limit, completed=min(used, limit), width=width), head)
    return row


def _head(status: Status, speed: Speed) -> str:
    used, limit = int(status.used["requests"]), status.limits["requests"]
    left = speed.left(status)
    parts = [f"{_sent(used, limit)} in {duration(status.used['seconds'])}"]
    if left is not None:
        parts.append(f"about {duration(left)} left")
    return ", ".join(parts)


def _sent(used: int, limit: float | None) -> str:
    if limit:
        return f"{used:,} of {counted(limit, 'request')}"
    return counted(used, "request")


def _details(host: Host, own: Status, finds: Finds | None = None) -> list[str]:
    """Describe the progress of a crawl; failures and skips are those of this process."""
    status = own.whole or own
    lines = [
        _rates(own, status),
        f"{status.used['bytes'] / 1e6:,.1f} MB, {counted(status.waiting, 'link')} of "
        f"{counted(status.awake, 'kind')} queued, {status.in_flight} in flight",
    ]
    lines += _later(status)
    if own.whole is not None:
        lines.append(_share(host, own, own.whole, finds))
    lines += _counts(host, own)
    hosts, seconds = host.pace.put_off_hosts
    if hosts:
        lines.append(f"{counted(hosts, 'host')} paused, the next is retried in {seconds:,.0f} s")
    lines += status.said
    if status.alarm:
        lines.append(status.alarm)
    return [*lines, *_outlook(host, own), *_price(status), *_errors(own)]


def _rates(own: Status, status: Status) -> str:
    """Return the finds per hundred requests, for the last ones and for all."""
    used, found = int(status.used["requests"]), status.rewards
    since = max(0, used - _RECENT)
    at, before = next((entry for entry in reversed(status.found_at) if entry[0] <= since), (0, 0.0))
    begin = since if own.whole is None else at  # a worker receives the totals now and then
    now = 100 * (found - before) / max(1, used - begin)
    return f"per 100 requests: {now:.1f} now, {100 * found / max(1, used):.1f} overall"


def _later(status: Status) -> Iterator[str]:
    """Say what holds requests back: a rate, or links that are not due."""
    if status.rate:
        turn = "" if status.next_turn is None else f", the next one in {duration(status.next_turn - status.at)}"
        yield f"at most {status.rate}{turn}"
    if not status.asleep:
        return
    links = counted(status.asleep, "link")
    if status.next_due is not None:
        due = max(0.0, status.next_due - status.at)
        are = "is" if status.asleep == 1 else "are"
        yield f"{links} {are} not due yet, the next is due in {duration(due)}"
    else:
        come = "comes" if status.asleep == 1 else "come"
        yield f"{links} to log in, share or print, or of kinds that always fail, {come} last"


def _counts(host: Host, own: Status) -> Iterator[str]:
    """Say what was rendered, and what was skipped."""
    if rendered := own.counts.get("browser/read", 0):
        asked = own.counts.get("browser/requests", 0)
        elsewhere = own.counts.get("browser/elsewhere", 0)
        apart = f", {elsewhere:,} of them to other hosts" if elsewhere else ""
        yield f"{counted(rendered, 'page')} rendered, for {counted(asked, 'further request')}{apart}"
    if cut := own.counts.get("browser/list_cut", 0):
        yield f"{counted(cut, 'list')} read only in part, as clicking was stopped"
    if shells := own.counts.get("page/shell", 0):
        yield f"{counted(shells, 'page')} may show more in a browser, but none is available"
    if large := own.counts.get("outcome/too_large", 0):
        yield f"{counted(large, 'answer')} skipped as too large"
    yield from (line for shown in host.shown() for line in shown.lines)
    if dropped := own.counts.get("link/dropped", 0):
        yield f"{counted(dropped, 'link')} given up, as too many were queued"


def _share(host: Host, own: Status, whole: Status, finds: Finds | None) -> str:
    """Say how many machines share a crawl, and the part of this one."""
    workers = int(whole.counts.get("workers", 1))
    found = f"{_found(host, own)} ({kinds(finds)})" if finds is not None and finds.kinds else _found(host, own)
    done = f"this one sent {counted(int(own.used['requests']), 'request')} and found {found}"
    return f"{workers:,} worker{'s' * (workers != 1)}; {done}"


def _outlook(host: Host, own: Status) -> list[str]:
    """Estimate how many finds are left; nothing before any page was read."""
    status = own.whole or own
    read = any(own.counts.get(f"outcome/{label}") for label in ("ok", "mime_stop", "spider_error"))
    if not read and not (own.whole is not None and own.whole.counts.get("outcomes")):
        return []
    if status.left is not None:
        left = status.left
        return [f"about {left.middle:,.0f} {host.noun} left to find ({left.low:,.0f} to {left.high:,.0f})"]
    return [f"{host.noun} left to find: unknown"] if issubclass(host.policy, ExpectsLeft) else []


def _price(status: Status) -> list[str]:
    """With a cost limit, say what the next find is expected to cost, and when the crawl will end because of it."""
    if status.ends_in is None or status.cost is None:
        return []
    is_soon = 0 < status.ends_in <= _SOON
    requests = f"{status.ends_in:,} request{'s' * (status.ends_in != 1)}"
    soon = f"; the crawl ends in {requests} unless one is found or expected for less" if is_soon else ""
    price = f"{max(1.0, status.cost):,.0f}"  # a policy may expect no further find
    return [f"the next one is expected to cost {price} request{'s' * (price != '1')}{soon}"]


def _errors(status: Status) -> list[str]:
    counts, lines = status.counts, []
    failed = {name.removeprefix("failure/"): n for name, n in counts.items() if name.startswith("failure/")}
    if failed:
        named = ", ".join(f"{n:,} {name.replace('_', ' ')}" for name, n in sorted(failed.items()))
        lines.append(f"{counted(sum(failed.values()), 'failed connection')}: {named}")
    if wrong := counts.get("outcome/http_error", 0):
        lines.append(counted(wrong, "error response"))
    errors = sum(value for name, value in counts.items() if name.startswith("error/"))
    if errors:
        lines.append(f"{counted(errors, 'error')}, see the log and focus/error/ in the stats")
    return lines


def _best(status: Status, finds: Finds | None) -> list[str]:
    """Describe the kinds of links that led to finds; before the first find of this run, by the policy's names."""
    paid: Sequence[tuple[str, float, int]] = [] if finds is None else finds.paid(_BEST)
    if not paid:
        names = unlike([printable(readable(name), _LONGEST) for name, _, _ in status.best_arms])
        paid = [(name, earned, pulls) for name, (_, earned, pulls) in zip(names, status.best_arms, strict=True)]
    return [f"{name} ({_amount(earned)} from {pulls:,})" for name, earned, pulls in paid]


def _found(host: Host, status: Status, finds: Finds | None = None) -> str:
    """Return the number of finds with their noun: "1 page with structured data", "1 relevant file"."""
    first, blank, rest = host.noun.partition(" ")
    noun = host.noun
    if status.rewards == 1:
        noun = noun.removesuffix("s") if noun.endswith("s") else f"{first.removesuffix('s')}{blank}{rest}"
    known = f", {finds.known:,} of them known" if finds is not None and finds.known else ""
    return f"{_amount(status.rewards)} {noun}{known}"


def _amount(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"
