"""Base classes of the commands: checks of arguments, error messages, and exit statuses.

Scrapy imports every command whenever it starts, so a command imports its dependencies where it uses them.
"""

from __future__ import annotations

import os
import sys
from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from scrapy.commands import ScrapyCommand, ScrapyHelpFormatter
from scrapy.exceptions import UsageError
from scrapy.utils.misc import load_object

from scrapy_focus.core.errors import ConfigError, FocusError, MissingPackageError
from scrapy_focus.core.files import try_to_write
from scrapy_focus.core.printable import LINE, printable, reason_of

if TYPE_CHECKING:
    import argparse
    from typing import NoReturn

    from rich.console import Console
    from scrapy.settings import BaseSettings

_WIDTH = 120  # of a line, where there is no terminal
_WRONG = 2  # exit status for a wrong argument


class FocusCommand(ScrapyCommand):
    """A command that exits with status 0, or with another status and a sentence that says what to do.

    A ``UsageError`` of :meth:`check` or :meth:`work` ends it with status 2, and so does a package that is not
    installed. Another :class:`~scrapy_focus.core.errors.FocusError` of :meth:`work` ends it with status 1. A subclass
    says in class attributes what it is for.
    """

    requires_crawler_process = False
    default_settings: ClassVar[dict[str, Any]] = {"LOG_ENABLED": False}

    #: Its name after ``scrapy``.
    command: ClassVar[str]
    #: Its arguments in the usage line.
    arguments: ClassVar[str]
    #: Its line in the list of commands.
    summary: ClassVar[str]
    #: Its description in the help.
    details: ClassVar[str]

    def syntax(self) -> str:
        return self.arguments

    def short_desc(self) -> str:
        return self.summary

    def long_desc(self) -> str:
        return self.details

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.usage = f"{called(self.command)} {self.syntax()}"
        parser.formatter_class = _HelpFormatter
        parser.error = self._end  # type: ignore[method-assign]  # Scrapy calls it for a UsageError, too

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        super().process_options(args, opts)
        if unknown := [word for word in args if word.startswith("-") and word != "-"]:
            raise UsageError(f"unknown option {unknown[0]}; {called(self.command)} -h lists the options")
        self.check(args, opts)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        try:
            self.exitcode = self.work(args, opts)
            sys.stdout.flush()
        except BrokenPipeError:  # the reader of a pipe needs no more, such as head
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            self.exitcode = 0
        except FocusError as error:
            self.exitcode = 2 if isinstance(error, MissingPackageError) else 1
            self.say_error(str(error), self.exitcode)

    def say_error(self, message: str, status: int) -> None:
        """Print an error that ends the command with this status."""
        print(one_line(f"Error: {message}"), file=sys.stderr)

    def _end(self, message: str) -> NoReturn:
        self.say_error(message, _WRONG)
        sys.exit(_WRONG)

    @abstractmethod
    def check(self, args: list[str], opts: argparse.Namespace) -> None:
        """Raise ``UsageError`` if the arguments are invalid; options may be replaced by their parsed values."""

    @abstractmethod
    def work(self, args: list[str], opts: argparse.Namespace) -> int:
        """Run the command, and return the exit status."""


class _HelpFormatter(ScrapyHelpFormatter):
    """Prints a help line that ends in a colon unchanged, where Scrapy's formatter turns it into a heading."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        return [f"{line} " if line.endswith(":") else line for line in super()._split_lines(text, width)]


class JobCommand(FocusCommand):
    """A command about one JOBDIR; the ``--out`` folder of another command stands for the job in it."""

    def check(self, args: list[str], opts: argparse.Namespace) -> None:
        if len(args) != 1:
            raise UsageError(f"name one JOBDIR: {called(self.command)} JOBDIR; got {' '.join(args) or 'none'}")

    def jobdir(self, args: list[str]) -> Path:
        """Return the JOBDIR that the argument names or contains."""
        from scrapy_focus.finders.kit.records.crawls import JOB

        folder = Path(args[0])
        return job if (job := folder / JOB).is_dir() else folder


def add_cluster(parser: argparse.ArgumentParser, what: str, **options: Any) -> None:
    """Add the option ``--cluster``."""
    parser.add_argument(
        "--cluster", metavar="ADDRESS", **options,
        help=f"{what}: host:port of its head, or auto for the one on this machine (default: FOCUS_CLUSTER, or auto)",
    )  # fmt: skip


def cluster_of(settings: BaseSettings | None, given: str | None) -> str:
    """Return the address of the cluster: as given, else that of the project."""
    return given or (settings and settings.get("FOCUS_CLUSTER")) or "auto"


def called(command: str) -> str:
    """Return the standalone name of a command: ``focus files`` for ``focus-files``."""
    return command.replace("-", " ", 1)


def refuse_arguments(command: str, args: list[str]) -> None:
    """Raise ``UsageError`` if a command that takes only options receives positional arguments."""
    if args:
        raise UsageError(f"unexpected argument {args[0]}; {called(command)} -h lists the options")


def read_numbers(opts: argparse.Namespace, *names: str, least: int = 1) -> None:
    """Turn the texts of some options into numbers; ``None`` stays.

    Raises
    ------
    UsageError
        If one is not a whole number of at least `least`.
    """
    for name in names:
        value = getattr(opts, name)
        if value is not None and not (value.isdecimal() and int(value) >= least):
            raise UsageError(f"--{name.replace('_', '-')} is {value!r}; it takes a number from {least}")
        setattr(opts, name, None if value is None else int(value))


def make(option: str, path: str, *sources: str) -> Any:
    """Return the object at an import path; a class is called, as is anything else if there are sources.

    Parameters
    ----------
    option
        The option and its value, as the user wrote them.
    path
        As in ``package.module.Name``.
    sources
        Arguments of the call.

    Raises
    ------
    ConfigError
        If that fails, for any error in the user's module. A ``FocusError`` raised there is passed through.
    """
    try:
        found = load_object(path)
        if sources or isinstance(found, type):
            return found(*sources)
        return found
    except FocusError:
        raise
    except Exception as error:
        advice = "; outside of a project, its folder must be in PYTHONPATH" if isinstance(error, ImportError) else ""
        raise ConfigError(f"{option} cannot be loaded: {type(error).__name__}: {reason_of(error)}{advice}") from error


def one_line(text: str) -> str:
    """Return a text as one line without control characters, whatever a site put into it."""
    return printable(text, LINE)


def say(*lines: str) -> None:
    """Print lines without control characters, whatever a site put into them."""
    print("\n".join(map(one_line, lines)), flush=True)


def try_out(path: Path) -> None:
    """Make the folder of a file that is written at the end, and check that the file can be written.

    Raises
    ------
    ConfigError
        If it cannot.
    """
    try:
        try_to_write(path)
    except (OSError, ValueError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or reason_of(error)
        raise ConfigError(f"--out is {path}, which cannot be written: {reason}; name another file") from error


def make_console() -> Console:
    """Return the console of a command: as wide as the terminal, or 120 columns without one."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else _WIDTH, highlight=False)
