"""``focus report``: write the page and the table of a crawl from the current content of its folder."""

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
    summary = "Write the page with the results of a crawl, or of several"
    details = (
        "Write index.html, and files.csv, pages.csv, importance.csv, hosts.csv or feed.xml, from the current content "
        "of a crawl's --out folder: while the crawl runs, after it has ended, or after a kill. Nothing else in the "
        "folder is changed. For a folder that contains such folders, write an index.html that lists their crawls."
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
        say(f"The results are in {page}")
        return 0
