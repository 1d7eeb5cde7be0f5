"""``scrapy focus-report``: the page and the table of what a crawl found, from what is in its folder now."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.exceptions import UsageError

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.finders.kit.commands.base import FocusCommand, one_line, say

if TYPE_CHECKING:
    import argparse


class ReportCommand(FocusCommand):
    """Writes the page of a folder."""

    command = "focus-report"
    arguments = "FOLDER"
    summary = "Write the page of what a crawl found"
    details = (
        "Write index.html, and files.csv, pages.csv, importance.csv, hosts.csv or feed.xml, in the folder of what a "
        "crawl found, from what is there: while it runs, after it ended, or after a kill. Nothing else in the folder "
        "is changed."
    )

    def check(self, args: list[str], opts: argparse.Namespace) -> None:
        if len(args) != 1:
            raise UsageError(f"name one folder: focus report FOLDER; got {' '.join(args) or 'none'}")

    def work(self, args: list[str], opts: argparse.Namespace) -> int:
        from scrapy_focus.finders.outputs import write_report

        try:
            page = write_report(Path(args[0]))
        except ConfigError as error:
            print(one_line(f"Error: {error}"), file=sys.stderr)
            return 2
        say(f"What was found is in {page}")
        return 0
