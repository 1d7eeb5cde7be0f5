"""``focus check``: verify and repair the files of a crawl."""

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
        "Verify all files that a crawl has stored in a JOBDIR, and report what is wrong. With --fix, repair them: "
        "files are copied before they are changed, and each repair reports what is lost. Exits with 0 if all files "
        "are good or were repaired, and with 1 otherwise. The crawl must not be running. Nothing in the folder is "
        "executed. FOLDER is the --out folder of another command."
    )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--fix", action="store_true", help="repair what can be repaired, and keep copies")
        parser.add_argument(
            "--anew", action="store_true",
            help="with --fix: discard what the policy learned; the next run sorts all links anew",
        )  # fmt: skip

    def check(self, args: list[str], opts: argparse.Namespace) -> None:
        super().check(args, opts)
        if opts.anew and not opts.fix:
            raise UsageError("--anew needs --fix, as it changes what is stored")

    def work(self, args: list[str], opts: argparse.Namespace) -> int:
        from scrapy_focus.jobs.doctor.check import check_job
        from scrapy_focus.jobs.doctor.cures import repair_job

        jobdir = self.jobdir(args)
        checkup = repair_job(jobdir, anew=opts.anew, say=_say) if opts.fix else check_job(jobdir, say=_say)
        for line in _conclusion(jobdir, checkup, fixed=opts.fix):
            _say(line)
        return int(not checkup.is_well)


def _conclusion(jobdir: Path, checkup: Checkup, *, fixed: bool) -> list[str]:
    lines = [f"copies of changed files are in {checkup.copies}"] if checkup.copies else []
    if checkup.is_well:
        events = f"{checkup.events:,} events since the last checkpoint"
        first = f"; the next run replays {events} first" if checkup.events else ""
        return [*lines, f"{jobdir} is {'now ' if checkup.done else ''}good{first}"]
    if not fixed:
        return [f"{jobdir} is damaged; focus check --fix {jobdir} repairs what can be repaired"]
    still = [f"still wrong: {what}" for what in checkup.found]
    return [*lines, *still, f"{jobdir} is damaged, and cannot be repaired"]


def _say(line: str) -> None:
    """Print a line, with the word before the colon in colour on a terminal."""
    from rich.text import Text

    text = Text(one_line(line))
    word = line.partition(":")[0]
    if word in _STYLES:
        text.stylize(_STYLES[word], 0, len(word) + 1)
    make_console().print(text, soft_wrap=True)
