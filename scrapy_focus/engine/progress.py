"""How a crawl stands, in words and in a picture: how far it is, how long it takes, what it found, by which links."""

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

_RECENT = 100  # requests over which the rate "now" is taken
_SOON = 100  # requests before a cost limit ends a crawl, from which on that is said
_LONGEST = 120  # characters of the name of an arm
_BEST = 3  # arms that are named
_KINDS = 5  # kinds of finds that are named
_WINDOW = 60.0  # seconds over which the speed is taken
_FEW = 5  # requests in them, with fewer of which the speed is not known
_BETWEEN = 5.0  # seconds between two times that a policy is asked for its tables
_COST = 50.0  # times as long as it took
_TABLE_ROWS = 8  # of a table
_MOST_LINES = 24  # of tables
_KEPT_FREE = 8  # lines of a terminal: the border, the first line, and some of the log
_NARROW = 40  # columns, in less of which there is no bar
_TIMES = ((86_400, "d"), (3600, "h"), (60, "min"))


class Speed:
    """How fast a crawl is, and how long it takes until a budget is used up.

    Parameters
    ----------
    delay
        Seconds between two requests, by which is guessed as long as nothing is known.
    """

    def __init__(self, delay: float) -> None:
        self._delay = delay
        self._seen: deque[tuple[float, float, float]] = deque()  # seconds, requests and bytes, the oldest first

    def note(self, status: Status) -> None:
        """See how a crawl stands; to be called a few times a second at most."""
        used = status.used
        self._seen.append((used["seconds"], used["requests"], used["bytes"]))
        while self._seen[-1][0] - self._seen[0][0] > _WINDOW:
            self._seen.popleft()

    def left(self, status: Status) -> float | None:
        """Return in how many seconds the first budget is used up, ``None`` if there is none, or nobody knows."""
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
        """Return the seconds that so many requests or bytes take, ``None`` if nobody knows."""
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
    """What a policy shows of itself, asked for so rarely that this takes a fiftieth of the time at most."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._due = 0.0  # seconds of time.monotonic
        self._last: list[PolicyTable] = []

    def now(self) -> list[PolicyTable]:
        """Return it as it was some seconds ago at most, or longer where asking takes long."""
        began = monotonic()
        if issubclass(self._host.policy, ShowsTables) and began >= self._due:
            self._last = self._host.tables()
            self._due = (now := monotonic()) + max(_BETWEEN, _COST * (now - began))
        return self._last


class View(NamedTuple):
    """What is seen of a crawl at one instant."""

    host: Host
    finds: Finds
    speed: Speed
    advice: str = ""  # what a Ctrl-C leaves, and how to resume
    tables: Sequence[PolicyTable] = ()  # what the policy shows of itself


def progress(host: Host, finds: Finds | None = None) -> list[str]:
    """Say how a crawl stands: requests and finds, rates, bytes, and the best arms."""
    own = host.status(best=_BEST)
    status = own.whole or own
    used, limit = int(status.used["requests"]), status.limits["requests"]
    so_far = f"{_sent(used, limit)}, {_found(host, status, finds)}"
    lines = [so_far, *_details(host, own)]
    if best := _best(status, finds):
        lines.append(f"best arms: {', '.join(best)}")
    return lines


def draw_panel(view: View, width: int, height: int | None = None) -> Panel:
    """Return a picture of a crawl as it is now; tables of the policy have the lines that are left of ``height``."""
    from rich.console import Group
    from rich.panel import Panel
    from rich.text import Text

    host, finds = view.host, view.finds
    own = host.status(best=_BEST)
    status = own.whole or own
    view.speed.note(status)
    limit, found = status.limits["requests"], _found(host, status, finds)
    if finds.kinds and own.whole is None:  # else they are of this worker
        found += f": {kinds(finds)}"
    lines = [found, *_details(host, own, finds)]
    if best := _best(status, finds):
        lines += ["best arms:", *(f"  {arm}" for arm in best)]
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
    title = Text(f"scrapy_focus: {host.policy.__qualname__}")
    row = _with_bar(head, status.used["requests"], limit, room) if limit and room >= _NARROW else head
    return Panel(Group(row, Text("\n".join(lines))), title=title, title_align="left", width=width)


def kinds(finds: Finds) -> str:
    """Say how many finds there are of each kind: "12 csv, 3 pdf"."""
    named = [f"{n:,} {printable(kind, WORD) or 'others'}" for kind, n in finds.kinds.most_common(_KINDS)]
    rest = len(finds.kinds) - len(named)
    if rest:
        named.append(f"{rest} more {inflected(rest, 'kind', 'kinds')}")
    return ", ".join(named)


def duration(seconds: float) -> str:
    """Return a time in the one or two units that matter.

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
    """Return the first rows of tables, in so many lines that are left; those without a line for a row are left out."""
    lines: list[str] = []
    for table in tables:
        rows = min(_TABLE_ROWS, left - len(lines) - 2)  # below its title and the names of its columns
        if rows > 0 and table.rows:
            title, *rest = in_lines(table, room - 2, rows)
            lines += [title, *(f"  {line}" for line in rest)]
    return lines


def _height(lines: Sequence[str], room: int) -> int:
    """Return how many lines of a terminal some lines take."""
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
    """Say how a crawl stands; what failed and was left out is what this process saw of it."""
    status = own.whole or own
    waits = "waits" if status.waiting == 1 else "wait"
    lines = [
        _rates(own, status),
        f"{status.used['bytes'] / 1e6:,.1f} MB, {counted(status.waiting, 'link')} {waits} in "
        f"{counted(status.awake, 'arm')}, {status.in_flight} in flight",
    ]
    lines += _later(status)
    if own.whole is not None:
        lines.append(_share(host, own, own.whole, finds))
    lines += _counts(host, own)
    hosts, seconds = host.pace.put_off_hosts
    if hosts:
        lines.append(f"{counted(hosts, 'host')} put off, the next is asked again in {seconds:,.0f} s")
    lines += status.said
    if status.alarm:
        lines.append(status.alarm)
    return [*lines, *_outlook(host, own), *_price(status), *_errors(own)]


def _rates(own: Status, status: Status) -> str:
    """Say how much was found for a hundred requests, by the last ones and by all."""
    used, found = int(status.used["requests"]), status.rewards
    since = max(0, used - _RECENT)
    at, before = next((entry for entry in reversed(status.found_at) if entry[0] <= since), (0, 0.0))
    begin = since if own.whole is None else at  # a worker hears of all now and then
    now = 100 * (found - before) / max(1, used - begin)
    return f"per 100 requests: {now:.1f} now, {100 * found / max(1, used):.1f} overall"


def _later(status: Status) -> Iterator[str]:
    """Say what keeps requests back: a rate, or links that sleep."""
    if status.rate:
        turn = "" if status.next_turn is None else f", the next one in {duration(status.next_turn - status.at)}"
        yield f"at most {status.rate}{turn}"
    if not status.asleep:
        return
    links = counted(status.asleep, "link")
    if status.next_due is not None:
        due = max(0.0, status.next_due - status.at)
        wait = "waits" if status.asleep == 1 else "wait"
        yield f"{links} {wait} until a time, the next is due in {duration(due)}"
    else:
        come = "comes" if status.asleep == 1 else "come"
        yield f"{links} to log in, share or print, or of kinds that only fail, {come} last"


def _counts(host: Host, own: Status) -> Iterator[str]:
    """Say what was rendered, and what was left out."""
    if rendered := own.counts.get("browser/read", 0):
        asked = own.counts.get("browser/requests", 0)
        elsewhere = own.counts.get("browser/elsewhere", 0)
        apart = f", {elsewhere:,} of them to other hosts" if elsewhere else ""
        yield f"{counted(rendered, 'page')} rendered, for {counted(asked, 'further request')}{apart}"
    if cut := own.counts.get("browser/list_cut", 0):
        yield f"{counted(cut, 'list')} read only in part, as clicking had to stop"
    if shells := own.counts.get("page/shell", 0):
        yield f"{counted(shells, 'page')} may show more in a browser, and there is none"
    if large := own.counts.get("outcome/too_large", 0):
        yield f"{counted(large, 'answer')} skipped as too large"
    yield from (line for shown in host.shown() for line in shown.lines)
    if dropped := own.counts.get("link/dropped", 0):
        yield f"{counted(dropped, 'link')} given up, as too many waited"


def _share(host: Host, own: Status, whole: Status, finds: Finds | None) -> str:
    """Say how many machines share a crawl, and what this one did of it."""
    workers = int(whole.counts.get("workers", 1))
    found = f"{_found(host, own)} ({kinds(finds)})" if finds is not None and finds.kinds else _found(host, own)
    done = f"{counted(int(own.used['requests']), 'request')} and {found} are of this one"
    return f"{workers:,} worker{'s' * (workers != 1)}; {done}"


def _outlook(host: Host, own: Status) -> list[str]:
    """Say how many finds are left, but for a crawl that could look at nothing so far."""
    status = own.whole or own
    read = any(own.counts.get(f"outcome/{label}") for label in ("ok", "mime_stop", "spider_error"))
    if not read and not (own.whole is not None and own.whole.counts.get("outcomes")):
        return []
    if status.left is not None:
        left = status.left
        return [f"about {left.middle:,.0f} {host.noun} left to find ({left.low:,.0f} to {left.high:,.0f})"]
    return [f"{host.noun} left to find: not known"] if issubclass(host.policy, ExpectsLeft) else []


def _price(status: Status) -> list[str]:
    """Say what the next find is expected to cost, and when the crawl ends for that, where there is a limit to it."""
    if status.ends_in is None or status.cost is None:
        return []
    is_soon = 0 < status.ends_in <= _SOON
    soon = f"; the crawl ends in {status.ends_in:,}, if none comes or is expected for less" if is_soon else ""
    price = f"{max(1.0, status.cost):,.0f}"  # a policy may say that nothing is to be expected any more
    return [f"the next one is expected to cost {price} request{'s' * (price != '1')}{soon}"]


def _errors(status: Status) -> list[str]:
    counts, lines = status.counts, []
    failed = {name.removeprefix("failure/"): n for name, n in counts.items() if name.startswith("failure/")}
    if failed:
        named = ", ".join(f"{n:,} {name.replace('_', ' ')}" for name, n in sorted(failed.items()))
        lines.append(f"{counted(sum(failed.values()), 'failed connection')}: {named}")
    if wrong := counts.get("outcome/http_error", 0):
        lines.append(f"{counted(wrong, 'answer')} that {inflected(wrong, 'is an error', 'are errors')}")
    errors = sum(value for name, value in counts.items() if name.startswith("error/"))
    if errors:
        lines.append(f"{counted(errors, 'error')}, see the log and focus/error/ in the stats")
    return lines


def _best(status: Status, finds: Finds | None) -> list[str]:
    """Say which links paid, in words; or by the names that the policy has, as long as nothing was found in this run."""
    paid: Sequence[tuple[str, float, int]] = [] if finds is None else finds.paid(_BEST)
    if not paid:
        names = unlike([printable(readable(name), _LONGEST) for name, _, _ in status.best_arms])
        paid = [(name, earned, pulls) for name, (_, earned, pulls) in zip(names, status.best_arms, strict=True)]
    return [f"{name} ({_amount(earned)} from {pulls:,})" for name, earned, pulls in paid]


def _found(host: Host, status: Status, finds: Finds | None = None) -> str:
    """Say how much was found: "1 page with structured data"."""
    first, blank, rest = host.noun.partition(" ")
    noun = f"{first.removesuffix('s')}{blank}{rest}" if status.rewards == 1 else host.noun
    known = f", {finds.known:,} of them known" if finds is not None and finds.known else ""
    return f"{_amount(status.rewards)} {noun}{known}"


def _amount(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"
