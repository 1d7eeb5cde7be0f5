"""``focus files URL``: the standalone commands of this package. ``scrapy focus-files URL`` is the same command."""

from __future__ import annotations

import sys
from difflib import get_close_matches
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, NoReturn

from scrapy.cmdline import execute

import scrapy_focus

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_GROUP = "scrapy.commands"  # where Scrapy looks for commands of other packages
_PREFIX = "focus-"


def main(words: list[str] | None = None) -> None:
    """Run a command, or list all commands; ``words`` is the command line, by default that of the process.

    Examples
    --------
    >>> main(["--version"])  # doctest: +ELLIPSIS
    focus ...
    """
    name, *arguments = (sys.argv[1:] if words is None else words) or ["--help"]
    if name in ("-h", "--help", "help"):
        print(_overview())
        return
    if name in ("-V", "--version", "version"):
        print(f"focus {scrapy_focus.__version__}")
        return
    commands = _commands()
    name = name.removeprefix(_PREFIX)
    if name not in commands:
        _refuse(name, commands)
    execute(["focus", f"{_PREFIX}{name}", *arguments])


def _commands() -> dict[str, EntryPoint]:
    """Return the commands of this package, without the prefix that distinguishes them from Scrapy's."""
    found = entry_points(group=_GROUP)
    return {each.name.removeprefix(_PREFIX): each for each in found if each.name.startswith(_PREFIX)}


def _overview() -> str:
    lines = [f"  {name:<12}{each.load().summary}" for name, each in sorted(_commands().items())]
    return "\n".join(
        [
            "Usage: focus COMMAND [arguments]",
            "",
            *lines,
            "",
            "focus COMMAND -h shows the options of a command. Each command is also a command of Scrapy: focus files",
            "is the same as scrapy focus-files.",
        ]
    )


def _refuse(name: str, commands: dict[str, EntryPoint]) -> NoReturn:
    near = get_close_matches(name, commands, 1)
    hint = f"did you mean focus {near[0]}?" if near else "focus -h lists the commands"
    print(f"Error: unknown command focus {name:.100}; {hint}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main()
