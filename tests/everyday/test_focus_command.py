"""The program ``focus``: what it lists and refuses, and the names by which it calls itself."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import TYPE_CHECKING

import pytest
from everydaycrawls import run

import scrapy_focus
from scrapy_focus.__main__ import main

if TYPE_CHECKING:
    from pathlib import Path

COMMANDS = {
    "check", "compare", "demo", "files", "important", "keywords", "record", "report", "status", "stop", "structured",
    "topic", "train", "watch",
}  # fmt: skip


def said(capsys: pytest.CaptureFixture[str], *words: str, expect: int = 0) -> str:
    """Run ``focus`` in this process, and return what it printed."""
    status = 0
    try:
        main([*words])
    except SystemExit as ended:
        status = int(ended.code or 0)
    assert status == expect
    return "".join(capsys.readouterr())


def test_the_program_is_installed_with_the_package() -> None:
    """As ``focus``."""
    (entry,) = entry_points(group="console_scripts", name="focus")
    assert entry.load() is main


def test_without_a_command_it_lists_all_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    """Each with a sentence, as ``-h`` and ``help`` do."""
    listed = said(capsys, *[])
    lines = [line.split(maxsplit=1) for line in listed.splitlines() if line.startswith("  ")]
    assert {name for name, _ in lines} == COMMANDS
    assert all(len(summary.split()) > 2 for _, summary in lines)
    assert said(capsys, "-h") == said(capsys, "help") == listed


def test_it_says_its_version(capsys: pytest.CaptureFixture[str]) -> None:
    """The package's own, not Scrapy's."""
    assert said(capsys, "--version") == f"focus {scrapy_focus.__version__}\n"


@pytest.mark.parametrize(
    ("word", "hint"),
    [("flies", "did you mean focus files?"), ("focus-fles", "did you mean focus files?"), ("x", "focus -h lists the")],
)
def test_an_unknown_command_is_refused_with_the_nearest(
    word: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one line, with status 2."""
    line = said(capsys, word, expect=2)
    assert line.startswith("Error: unknown command focus ")
    assert hint in line
    assert line.count("\n") == 1


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_help_names_the_command_as_it_is_typed(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """``focus files``, not ``scrapy focus-files``."""
    text = said(capsys, command, "-h")
    assert f"focus {command}" in text
    assert "scrapy focus-" not in text


def test_demo_leaves_a_page_to_read(tmp_path: Path) -> None:
    """It crawls a small portal twice, on a free port, and says which page to open."""
    done = run(tmp_path, "demo", "--pages", "200", "--budget", "60", fast=False)
    assert done.status == 0, done.logged
    assert "focus files http://127.0.0.1:" in done.said
    assert (tmp_path / "focus-demo" / "found" / "index.html").is_file()
    assert "index.html" in done.last


@pytest.mark.parametrize("pages", ["60", "2000000"])
def test_demo_refuses_a_portal_that_cannot_be_made(pages: str, capsys: pytest.CaptureFixture[str]) -> None:
    """In one line, with the smallest number that it takes."""
    line = said(capsys, "demo", "--pages", pages, expect=2)
    assert "it takes a number from 200" in line
    assert line.count("\n") == 1


def test_python_m_scrapy_focus_is_the_same_program(tmp_path: Path) -> None:
    """For those who do not have it in the path."""
    done = run(tmp_path, "--version", fast=False)
    assert done.said == f"focus {scrapy_focus.__version__}\n"
    assert done.status == 0
