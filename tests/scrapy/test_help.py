"""The help of all commands reads well in terminals of any width."""

from __future__ import annotations

from importlib.metadata import entry_points
from itertools import pairwise
from pathlib import Path

import pytest
from scrapy.cmdline import ScrapyArgumentParser
from scrapy.commands import ScrapyHelpFormatter
from scrapy.settings import Settings

from scrapy_focus import commands

COMMANDS = {each.name: each for each in entry_points(group="scrapy.commands") if each.name.startswith("focus-")}
HEADINGS = {"Usage", "Options", "Global Options", "Sources Other Than The Site Itself, One Of"}


@pytest.mark.parametrize("name", COMMANDS)
def test_only_headings_are_underlined(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No line of text is taken for a heading, whatever it ends with; no word is lost at any width."""
    command = COMMANDS[name].load()()
    command.settings = Settings()
    parser = ScrapyArgumentParser(  # as Scrapy makes it
        formatter_class=ScrapyHelpFormatter, usage=f"scrapy {name} {command.syntax()}", conflict_handler="resolve",
        description=command.long_desc(),
    )  # fmt: skip
    command.add_options(parser)
    shown = set()
    for width in range(40, 201):
        monkeypatch.setenv("COLUMNS", str(width))
        lines = parser.format_help().splitlines()
        underlined = {above for above, line in pairwise(lines) if line and not line.strip("=-")}
        assert {"Usage", "Global Options"} <= underlined <= HEADINGS, width
        shown.add("".join(line for line in map("".join, map(str.split, lines)) if line.strip("=-")))
    assert len(shown) == 1, "the same, but for blanks"


def test_all_commands_are_there() -> None:
    """Each module of the folder is one, but for what they share."""
    modules = {path.stem for path in Path(commands.__file__).parent.glob("*.py")} - {"__init__", "base", "finding"}
    assert COMMANDS.keys() == {f"focus-{name}" for name in modules}
