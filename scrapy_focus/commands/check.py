"""``scrapy focus-check``: whether the files of a crawl are well, and making them well."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.commands import ScrapyCommand

from scrapy_focus.commands.status import check_arguments
from scrapy_focus.core.errors import FocusError

if TYPE_CHECKING:
    import argparse

    from scrapy_focus.jobs.doctor.check import Checkup

_STYLES = {"wrong": "red", "note": "yellow", "repaired": "green"}
_WIDTH = 120


class CheckCommand(ScrapyCommand):
    """Verifies the files of a crawl, and repairs them."""

    requires_crawler_process = False
    default_settings = {"LOG_ENABLED": False}

    def syntax(self) -> str:
        return "JOBDIR [--fix]"

    def short_desc(self) -> str:
        return "Verify the JOBDIR of a crawl, and repair it"

    def long_desc(self) -> str:
        return (
            "Verify all that a crawl has stored in a JOBDIR, and say what is wrong. With --fix, repair it: what is about to be "
            "changed is copied first, and each repair says what is lost. Ends with status 0 if all is well, or was "
            "repaired, and with 1 otherwise. The crawl must not run."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--fix", action="store_true", help="repair what can be repaired, after copying it")

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        super().process_options(args, opts)
        check_arguments("focus-check", args)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        from scrapy_focus.jobs.doctor.check import check_job
        from scrapy_focus.jobs.doctor.cures import repair_job

        jobdir = Path(args[0])
        try:
            checkup = repair_job(jobdir, say=_say) if opts.fix else check_job(jobdir, say=_say)
        except FocusError as error:
            print(f"Error: {error}", file=sys.stderr)
            self.exitcode = 1
            return
        for line in _conclusion(jobdir, checkup, fixed=opts.fix):
            _say(line)
        self.exitcode = int(not checkup.is_well)


def _conclusion(jobdir: Path, checkup: Checkup, *, fixed: bool) -> list[str]:
    lines = [f"copies of what was changed are in {checkup.copies}"] if checkup.copies else []
    if checkup.is_well:
        events = f"{checkup.events:,} events since the last checkpoint"
        first = f"; the next run goes through {events} first" if checkup.events else ""
        return [*lines, f"{jobdir} is well{' now' if checkup.done else ''}{first}"]
    if not fixed:
        return [f"{jobdir} is not well; scrapy focus-check --fix {jobdir} repairs what can be repaired"]
    still = [f"wrong still: {what}" for what in checkup.found]
    return [*lines, *still, f"{jobdir} is not well, and this cannot be repaired"]


def _say(line: str) -> None:
    """Print a line, the word before its colon in colour on a terminal."""
    from rich.console import Console
    from rich.text import Text

    text = Text(line)
    word = line.partition(":")[0]
    if word in _STYLES:
        text.stylize(_STYLES[word], 0, len(word) + 1)
    Console(width=None if sys.stdout.isatty() else _WIDTH, highlight=False).print(text, soft_wrap=True)
