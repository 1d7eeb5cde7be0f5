"""The help of all commands reads well in terminals of any width."""

from __future__ import annotations

from importlib.metadata import entry_points
from itertools import pairwise
from pathlib import Path

import pytest
from scrapy.cmdline import ScrapyArgumentParser
from scrapy.commands import ScrapyHelpFormatter
from scrapy.settings import Settings

import scrapy_focus

COMMANDS = {each.name: each for each in entry_points(group="scrapy.commands") if each.name.startswith("focus-")}
HEADINGS = {
    "Usage", "Options", "Global Options", "Sources Other Than The Site Itself, One Of",
    "Limits", "Scope", "Access", "Contents", "Watching",
}  # fmt: skip


@pytest.mark.few(4)
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
    """Each file that has a command is an entry point, and each entry point is such a file."""
    package = Path(scrapy_focus.__file__).parent
    folders = ("commands/*.py", "finders/*/command.py", "lab/commands/*.py")
    files = {path.relative_to(package.parent) for folder in folders for path in package.glob(folder)}
    modules = {".".join(path.with_suffix("").parts) for path in files if path.name != "__init__.py"}
    assert len(modules) > 10
    assert sorted(each.module for each in COMMANDS.values()) == sorted(modules)


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_is_documented(name: str) -> None:
    """The page of commands names it."""
    page = Path(__file__).parents[2] / "docs" / "reference" / "commands.rst"
    assert f"``{name.replace('-', ' ')}``" in page.read_text(encoding="utf-8")
