"""``focus demo``: the learning crawl next to breadth-first, on a portal that this machine serves to itself."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy.exceptions import UsageError

from scrapy_focus.finders.kit.commands.base import FocusCommand, make_console, read_numbers, refuse_arguments
from scrapy_focus.finders.kit.records.folder_names import MANIFEST

if TYPE_CHECKING:
    import argparse

    from rich.console import Console

    from scrapy_focus.lab.sites.server import SiteServer

_FOLDER = "focus-demo"
_MARK = ".focus-demo"  # is in a folder that an earlier demo made, and this one may empty
_FEWEST, _MOST = 200, 1_000_000  # pages that a portal may have
_BETWEEN = 3.0  # seconds between two lines that say how far a crawl is, where there is no terminal
_SECONDS_PER_REQUEST = 0.015  # on two cores of 2023
_BREADTH = 2.75  # requests of breadth-first order for each of the learning crawl
_BREADTH_FIRST = "scrapy_focus.policies.orderings.BreadthFirst"
_SETTINGS = {
    "DOWNLOAD_DELAY": "0",
    "CONCURRENT_REQUESTS_PER_DOMAIN": "8",
    "FOCUS_SEED": "0",
    "LOG_LEVEL": "WARNING",
    "LOG_FORMAT": "%(message)s",
}


class DemoCommand(FocusCommand):
    """Crawls a synthetic portal twice: in the order that the frontier learns, and breadth-first."""

    command = "focus-demo"
    arguments = "[--pages N] [--budget N] [--out FOLDER]"
    summary = "Watch a crawl learn, next to breadth-first, on a site that this machine serves"
    details = (
        "Serve a synthetic statistics portal on 127.0.0.1, and find its data files twice: in the order that the "
        "frontier learns, and breadth-first until as many files are found. Nothing leaves this machine. It takes about "
        "a minute, and leaves a folder with the files and a page to read."
    )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--pages", metavar="N", default="2000", help="size of the portal (default 2000)")
        parser.add_argument("--budget", metavar="N", default="1000", help="requests of the first crawl (default 1000)")
        parser.add_argument(
            "--out", metavar="FOLDER", default=_FOLDER, help=f"folder for the files (default {_FOLDER})"
        )

    def check(self, args: list[str], opts: argparse.Namespace) -> None:
        refuse_arguments(self.command, args)
        read_numbers(opts, "pages", least=_FEWEST)
        read_numbers(opts, "budget", least=10)
        if opts.pages > _MOST:
            raise UsageError(f"--pages is {opts.pages}; it takes a number from {_FEWEST} to {_MOST:,}")
        out = Path(opts.out)
        if out.is_dir() and any(out.iterdir()) and not (out / _MARK).exists():
            raise UsageError(f"--out is {opts.out}, a folder with files that no demo wrote; name another folder")

    def work(self, args: list[str], opts: argparse.Namespace) -> int:
        from scrapy_focus.lab.sites.portal.portal import StatisticsPortal
        from scrapy_focus.lab.sites.server import SiteServer

        console, portal = make_console(), StatisticsPortal(pages=opts.pages, seed=0)
        out = _emptied(Path(opts.out))
        self._introduce(console, portal, opts.budget)
        console.rule("1 of 2: in the order that the frontier learns")
        with SiteServer(portal) as server:
            console.print(f"[bold]focus files {server.url} --budget {opts.budget}", soft_wrap=True)
            status, used = crawl(console, server, out / "found", ["--budget", str(opts.budget)], {})
        files = listed(out / "found")
        if status or not files:
            return status or 1
        console.rule(f"2 of 2: breadth-first, until {len(files):,} files are found")
        with SiteServer(portal) as server:
            order = {"CLOSESPIDER_ITEMCOUNT": str(len(files)), "FOCUS_POLICY": _BREADTH_FIRST}
            status, breadth = crawl(console, server, out / "breadth-first", [], order)
        if not status:
            found = listed(out / "breadth-first")
            if len(found) >= len(files):  # requests in flight still bring files after it was enough
                breadth = found[len(files) - 1]["requests"]
            _conclude(console, out / "found", files, portal.n_targets, used, breadth)
        return status

    def _introduce(self, console: Console, portal: Any, budget: int) -> None:
        from scrapy_focus.engine.progress import duration

        console.rule(f"a statistics portal: {portal.n_pages:,} pages, {portal.n_targets:,} data files")
        seconds = _SECONDS_PER_REQUEST * (budget + _BREADTH * budget)
        console.print(
            f"This machine serves the portal to itself; nothing leaves it. It is crawled twice: with {budget:,} "
            f"requests in the order that the frontier learns, then breadth-first until as many files are found. Both "
            f"take about {duration(seconds)} together. Ctrl-C stops."
        )


def _emptied(out: Path) -> Path:
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    (out / _MARK).touch()
    return out


def crawl(
    console: Console, server: SiteServer, out: Path, arguments: list[str], settings: dict[str, str]
) -> tuple[int, int]:
    """Run ``focus files`` as a user would, and return its exit status and how many requests it sent.

    On a terminal the crawl shows its panel; elsewhere a line reports its progress every few seconds. The status is 0
    if the crawl ended by a limit, as it should.
    """
    from scrapy_focus.engine.ending import STATUS

    options = [word for name, value in (_SETTINGS | settings).items() for word in ("-s", f"{name}={value}")]
    command = [sys.executable, "-m", "scrapy_focus", "files", server.url, "--out", str(out), *arguments, *options]
    with subprocess.Popen(command, env=os.environ | {"PYTHONWARNINGS": "ignore"}) as process:  # noqa: S603
        while True:
            try:
                status = process.wait(None if sys.stderr.isatty() else _BETWEEN)
                break
            except subprocess.TimeoutExpired:
                console.print(f"  {server.requests:,} requests, {len(listed(out)):,} files")
    return 0 if status == STATUS["budget"] else status, server.requests


def listed(out: Path) -> list[dict[str, Any]]:
    """Return the current contents of the manifest of a folder."""
    manifest = out / MANIFEST
    lines = manifest.read_text(encoding="utf-8").splitlines(keepends=True) if manifest.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def _conclude(
    console: Console, out: Path, files: list[dict[str, Any]], n_targets: int, used: int, breadth: int
) -> None:
    console.print(
        f"[bold]{len(files):,} files[/] of {n_targets:,} with [bold]{used:,} requests[/]; breadth-first needed "
        f"[bold]{breadth:,}[/], {breadth / used:.1f} times as many."
    )
    console.print(f"Open this page in a browser: [bold]{os.path.relpath(out / 'index.html')}", soft_wrap=True)
