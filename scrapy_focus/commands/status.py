"""``focus status``: show the JOBDIR of a crawl, running, stopped or killed, or the crawls of a cluster."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, Any

from scrapy.exceptions import UsageError

from scrapy_focus.core.errors import FocusError
from scrapy_focus.core.printable import VALUE, counted, printable, printable_json, reason_of
from scrapy_focus.finders.kit.commands.base import JobCommand, add_cluster, cluster_of, make_console, one_line, say

if TYPE_CHECKING:
    import argparse

_LABEL = 12
_SHARES = ((60, "second"), (60, "minute"), (24, "hour"), (0, "day"))
_STYLES = {"in use": "green", "stopped": "green", "killed": "yellow", "damaged": "red"}


class StatusCommand(JobCommand):
    """Shows the status of a JOBDIR or of a cluster."""

    command = "focus-status"
    arguments = "JOBDIR | FOLDER | --cluster [ADDRESS] [--json]"
    summary = "Show the status of a crawl, or of all crawls of a cluster"
    details = (
        "Show the status of a JOBDIR: whether its crawl is running, stopped or killed, how many links are queued and "
        "fetched, and which kinds of links earned most. The command only reads, so you can use it while the crawl "
        "runs. Nothing in the folder is executed, so its source need not be trusted. FOLDER is the --out folder of "
        "another command. With --cluster, ask the leaders of crawls on several machines instead: "
        "workers, requests in flight, lost and refused work, and the rest of the budget."
    )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--json", action="store_true", help="print JSON")
        add_cluster(parser, "show the crawls of a cluster", nargs="?", const="")

    def check(self, args: list[str], opts: argparse.Namespace) -> None:
        if opts.cluster is None:
            super().check(args, opts)
        elif args:
            raise UsageError(f"--cluster shows all crawls of a cluster, and takes no JOBDIR; got {' '.join(args)}")

    def work(self, args: list[str], opts: argparse.Namespace) -> int:
        if opts.cluster is not None:
            return self._ask(cluster_of(self.settings, opts.cluster), as_json=opts.json)
        from scrapy_focus.jobs.doctor.status import read_status

        found = read_status(self.jobdir(args))
        if opts.json:
            print(printable_json(found, indent=2))
        else:
            show(found)
        return int(found["state"] == "damaged")

    def _ask(self, address: str, *, as_json: bool) -> int:
        """Print the status of the crawls of a cluster; return 1 if one of them does not answer."""
        from scrapy_focus.cluster.messages import LeaderClosed
        from scrapy_focus.cluster.ray import RayEngine, crawls_of

        found: dict[str, dict[str, Any]] = {}
        for name in crawls_of(address):
            try:
                found[name] = RayEngine(address, name).call_now("status")
            except LeaderClosed:  # it has just closed
                continue
            except (ConnectionError, FocusError) as error:
                found[name] = {"error": reason_of(error)}
        if as_json:
            print(printable_json(found, indent=2))
        elif not found:
            say(f"no crawl runs in the cluster ({address})")
        else:
            show_cluster(found)
        return int(any("error" in status for status in found.values()))


def show(found: dict[str, Any]) -> None:
    """Print the status of a JOBDIR, aligned."""
    from rich.text import Text

    console = make_console()
    console.print(Text(one_line(found["jobdir"]), style="bold"), soft_wrap=True)
    console.print(Text(one_line(_state(found)), style=_STYLES[found["state"]]), soft_wrap=True)
    indent = " " * _LABEL
    for label, text in rows_of(found, console.width - _LABEL):
        for line in wrap(one_line(text), console.width, initial_indent=f"{label:<{_LABEL}}", subsequent_indent=indent):
            shown = Text(line)
            shown.stylize("dim", 0, _LABEL)
            console.print(shown, soft_wrap=True)


def show_cluster(found: dict[str, dict[str, Any]]) -> None:
    """Print the status of the crawls of a cluster, by name."""
    from rich.text import Text

    console = make_console()
    for name, status in found.items():
        console.print(Text(one_line(name), style="bold"), soft_wrap=True)
        for label, text in cluster_rows_of(status):
            console.print(Text.assemble((f"{label:<{_LABEL}}", "dim"), one_line(text)), soft_wrap=True)


def cluster_rows_of(status: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the status of a crawl on several machines, as labels and texts."""
    if "error" in status:
        return [("", f"its leader does not answer: {status['error']}")]
    requests, seconds, limit = status["requests"], status["seconds"], status["limit"]
    of = "" if limit is None else f" of {limit:,.0f}, {max(0, limit - requests):,.0f} left"
    speed = f"; {requests / seconds:,.1f} per second" if seconds else ""
    asleep = f", {status['asleep']:,} asleep" if status["asleep"] else ""
    rows = [
        ("state", f"ends: {status['finished']}" if status["finished"] else "runs"),
        ("requests", f"{requests:,} used{of}; in {duration(seconds)}{speed}"),
        ("rate", f"at most {status['rate']}" if status["rate"] else ""),
        ("outcomes", f"{status['outcomes']:,}, rewards {status['rewards']:,.6g}"),
        ("queued", counted(status["waiting"], "link") + asleep),
        ("in flight", f"{status['out']:,} of at most {status['most_out']:,}"),
        ("hosts", f"{status['hosts']:,} active recently"),
        (
            "lost",
            f"{counted(status.get('lost_workers', 0), 'worker')} lost contact, "
            f"{counted(status.get('expired', 0), 'lease')} expired without a report, "
            f"{counted(status.get('undelivered', 0), 'lease')} never arrived",
        ),
        (
            "refused",
            f"{counted(status.get('refused', 0), 'report')} of expired leases, "
            f"{counted(status.get('refused_workers', 0), 'worker')} with other settings",
        ),
    ]
    workers = [
        f"{name}: {counted(each['leases'], 'lease')}, {each['ready']:,} of them not yet collected, "
        f"{counted(each['hosts'], 'host')}, last heard from {each['silent']:,.1f} seconds ago"
        for name, each in status["workers"].items()
    ]
    rows += _under("workers", workers)
    return [(label, text) for label, text in rows if text]


def rows_of(found: dict[str, Any], width: int = 100) -> list[tuple[str, str]]:
    """Return the status of a JOBDIR, as labels and texts; tables have lines of `width` columns."""
    rows = [
        *_crawl_rows(found),
        *_link_rows(found),
        *((name, _used(found, name)) for name in ("requests", "bytes", "seconds")),
    ]
    if found["rate"]:
        rows.append(("rate", f"at most {found['rate']}"))
    rows += _best_arms(found)
    rows += _tables(found, width)
    if found["made"]:
        rows.append(("made", _when(found, "made")))
    rows.append(("written", _when(found, "written")))
    rows.append(("journal", _journal(found)))
    rows.append(("versions", _versions(found["versions"])))
    rows.append(("files", ", ".join(f"{name} {_size(size)}" for name, size in found["files"].items())))
    return rows


def _crawl_rows(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what the crawl is, and what it looks for."""
    params, mission = (
        ", ".join(f"{name}={_short(text)}" for name, text in found[kind].items()) for kind in ("parameters", "mission")
    )
    policy = found["policy"].rpartition(".")[2]
    if params:
        policy += f"({params})"
    rows = []
    if found["spider"]:
        rows.append(("spider", found["spider"]))
    rows += [("policy", policy), ("goal", found["goal"])]
    rows += [("", said) for said in found["said"]]
    if found["alarm"]:
        rows.append(("", found["alarm"]))
    rows.append(("mission", mission or "anything"))
    return rows


def _link_rows(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the number of queued links, and the outcomes of the others."""
    links = found["links"]
    waiting = f"{counted(links['waiting'], 'link')} of {counted(links['arms'], 'kind')}"
    if found["events"]:
        waiting += f"; {links['found_since']:,} found and {links['picked_since']:,} picked since the checkpoint"
    known = f"{links['fetched']:,} fetched, {links['given_up']:,} given up, {links['probed']:,} only probed with a HEAD"
    return [
        ("queued", waiting),
        *_asleep(links),
        ("in flight", f"{links['in_flight']:,}"),
        ("known", known),
        *_dropped(found["counts"]),
        ("outcomes", f"{found['outcomes']:,}, rewards {found['rewards']:,.6g}"),
    ]


def _best_arms(found: dict[str, Any]) -> list[tuple[str, str]]:
    from scrapy_focus.web.html import readable

    texts = [
        f"{best['earned']:>8,.6g} from {best['pulls']:>7,}  {_short(readable(best['arm']))}"
        for best in found["best_arms"]
    ]
    rows = _under("best links", texts)
    if found["best_arms_error"]:
        rows.append(("best links", found["best_arms_error"]))
    return rows


def _under(label: str, texts: list[str]) -> list[tuple[str, str]]:
    """Return rows with a label on the first one only."""
    return [("" if i else label, text) for i, text in enumerate(texts)]


def _journal(found: dict[str, Any]) -> str:
    said = f"{counted(found['events_since_checkpoint'], 'event')} since the last checkpoint"
    kinds = ", ".join(f"{n:,} {kind}" for kind, n in found["events"].items())
    return f"{said} ({kinds})" if kinds else said


def _asleep(links: dict[str, Any]) -> list[tuple[str, str]]:
    if not links["asleep"]:
        return []
    if links["next_due"] is None:
        return [("last", f"{counted(links['asleep'], 'link')} to log in, share or print, or of kinds that always fail")]
    due = links["next_due"].removesuffix("+00:00").replace("T", " ")
    return [("asleep", f"{counted(links['asleep'], 'link')} not due yet, the first at {due} UTC")]


def _tables(found: dict[str, Any], width: int) -> list[tuple[str, str]]:
    """Return the tables of the policy, a line for each row."""
    from scrapy_focus.core.abilities import PolicyTable
    from scrapy_focus.core.table_lines import in_lines

    tables = [PolicyTable(**table) for table in found["tables"]]
    lines = [line for table in tables if table.rows for line in in_lines(table, width, len(table.rows))]
    if found["tables_error"]:
        lines.append(found["tables_error"])
    return _under("tables", lines)


def _dropped(counts: dict[str, int]) -> list[tuple[str, str]]:
    dropped = counts.get("link/dropped", 0)
    if not dropped:
        return []
    return [("dropped", f"{counted(dropped, 'link')} given up, as too many were queued")]


def _state(found: dict[str, Any]) -> str:
    again = counted(found["events_since_checkpoint"], "event")
    return {
        "in use": f"in use by process {found['process'] or '(unknown)'}",
        "stopped": f"stopped cleanly; {_what_next(found)}",
        "killed": f"killed or interrupted; the same command replays {again} from the journal, and resumes the crawl",
        "damaged": f"damaged: {found['damage']}; see focus check {found['jobdir']}",
    }[found["state"]]


def _what_next(found: dict[str, Any]) -> str:
    if not found["links"]["waiting"] and not found["links"]["asleep"]:
        return "finished, as no link is queued; use another JOBDIR to crawl again"
    if spent := [name for name, left in found["left"].items() if left == 0]:
        return f"its budget of {' and '.join(spent)} is used up; the same command with a larger one resumes the crawl"
    return "the same command resumes the crawl"


def _used(found: dict[str, Any], name: str) -> str:
    say = {"requests": "{:,}".format, "bytes": _size, "seconds": duration}[name]
    used, limit, left = (found[part][name] for part in ("used", "limits", "left"))
    return f"{say(used)} used" + (f" of {say(limit)}, {say(left)} left" if limit is not None else "")


def _versions(versions: dict[str, dict[str, str]]) -> str:
    then, now = versions["then"], versions["now"]
    return ", ".join(
        f"{name} {then.get(name, 'none')}"
        + (f" (now {now.get(name, 'none')})" if now.get(name) != then.get(name) else "")
        for name in {**then, **now}
    )


def _when(found: dict[str, Any], name: str) -> str:
    return f"{found[name].removesuffix('+00:00').replace('T', ' ')} UTC, {duration(found[f'{name}_seconds_ago'])} ago"


def duration(seconds: float) -> str:
    """Return a duration in its two largest units."""
    said: list[str] = []
    left = int(seconds)
    for size, unit in _SHARES:
        left, part = divmod(left, size) if size else (0, left)
        if part or (not said and not left):
            said.append(counted(part, unit))
        if not left:
            break
    return " ".join(said[:-3:-1])


def _size(size: float) -> str:
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:,.{int(unit != 'B')}f} {unit}"
        size /= 1000
    return f"{size:,.1f} GB"


def _short(text: str) -> str:
    return printable(text, VALUE)
