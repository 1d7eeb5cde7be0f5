"""``scrapy focus-check``: whether the files of a crawl are well, and making them well."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.exceptions import UsageError

from scrapy_focus.finders.kit.commands.base import JobCommand, make_console, one_line

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from scrapy_focus.jobs.doctor.check import Checkup

_STYLES = {"wrong": "red", "note": "yellow", "repaired": "green"}


class CheckCommand(JobCommand):
    """Verifies the files of a crawl, and repairs them."""

    command = "focus-check"
    arguments = "JOBDIR | FOLDER [--fix [--anew]]"
    summary = "Verify the JOBDIR of a crawl, and repair it"
    details = (
        "Verify all that a crawl has stored in a JOBDIR, and say what is wrong. With --fix, repair it: what is about "
        "to be changed is copied first, and each repair says what is lost. Ends with status 0 if all is well, or was "
        "repaired, and with 1 otherwise. The crawl must not run. Nothing of the folder is executed. FOLDER is the one "
        "given to another command with --out."
    )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--fix", action="store_true", help="repair what can be repaired, after copying it")
        parser.add_argument(
            "--anew", action="store_true",
            help="with --fix: drop what the policy learned, and let the next run place all links anew",
        )  # fmt: skip

    def check(self, args: list[str], opts: argparse.Namespace) -> None:
        super().check(args, opts)
        if opts.anew and not opts.fix:
            raise UsageError("--anew goes with --fix: it changes what is stored")

    def work(self, args: list[str], opts: argparse.Namespace) -> int:
        from scrapy_focus.jobs.doctor.check import check_job
        from scrapy_focus.jobs.doctor.cures import repair_job

        jobdir = self.jobdir(args)
        checkup = repair_job(jobdir, anew=opts.anew, say=_say) if opts.fix else check_job(jobdir, say=_say)
        for line in _conclusion(jobdir, checkup, fixed=opts.fix):
            _say(line)
        return int(not checkup.is_well)


def _conclusion(jobdir: Path, checkup: Checkup, *, fixed: bool) -> list[str]:
    lines = [f"copies of what was changed are in {checkup.copies}"] if checkup.copies else []
    if checkup.is_well:
        events = f"{checkup.events:,} events since the last checkpoint"
        first = f"; the next run goes through {events} first" if checkup.events else ""
        return [*lines, f"{jobdir} is well{' now' if checkup.done else ''}{first}"]
    if not fixed:
        return [f"{jobdir} is not well; focus check --fix {jobdir} repairs what can be repaired"]
    still = [f"wrong still: {what}" for what in checkup.found]
    return [*lines, *still, f"{jobdir} is not well, and this cannot be repaired"]


def _say(line: str) -> None:
    """Print a line, the word before its colon in colour on a terminal."""
    from rich.text import Text

    text = Text(one_line(line))
    word = line.partition(":")[0]
    if word in _STYLES:
        text.stylize(_STYLES[word], 0, len(word) + 1)
    make_console().print(text, soft_wrap=True)
