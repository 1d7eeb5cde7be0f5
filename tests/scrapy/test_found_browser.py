"""Which browser pages would be rendered with, and why there is none."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from scrapy.settings import Settings

from scrapy_focus.engine.browser.found import find_browser, launch_options

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("scrapy_playwright", reason="needs scrapy-playwright (pip install scrapy-focus[playwright])")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without any browser: a folder of Playwright, and one of programs."""
    for name in ("browsers", "bin"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path / "browsers"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path


def program(path: Path) -> str:
    """Make a program."""
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def test_none_is_found_on_a_machine_without(machine: Path) -> None:
    """It says which places were searched, and what to do."""
    found = find_browser(Settings())
    assert not found
    assert str(machine / "browsers") in found.reason
    assert "playwright install chromium" in found.reason


def test_one_of_playwright_needs_no_path(machine: Path) -> None:
    """If it was installed completely."""
    folder = machine / "browsers" / "chromium-1200"
    folder.mkdir()
    assert not find_browser(Settings())
    (folder / "INSTALLATION_COMPLETE").touch()
    found = find_browser(Settings())
    assert (found.what, found.executable) == ("Playwright's chromium", "")


def test_one_of_the_system_is_taken_where_playwright_has_none(machine: Path) -> None:
    """By its path; but only a Chromium, and only if no other browser is set."""
    path = program(machine / "bin" / "chromium")
    found = find_browser(Settings())
    assert (found.what, found.executable) == (path, path)
    assert launch_options(found, {"args": ["--mute-audio"]})["executable_path"] == path
    assert launch_options(found, {"executable_path": "/other"})["executable_path"] == "/other"
    assert not find_browser(Settings({"PLAYWRIGHT_BROWSER_TYPE": "firefox"}))


@pytest.mark.parametrize(
    "settings",
    [
        {"PLAYWRIGHT_CDP_URL": "http://127.0.0.1:9222"},
        {"PLAYWRIGHT_BROWSER_TYPE": "firefox", "PLAYWRIGHT_CONNECT_URL": "ws://127.0.0.1:1/"},
    ],
)
def test_one_elsewhere_is_believed(machine: Path, settings: dict[str, Any]) -> None:
    """It is not asked before the crawl."""
    found = find_browser(Settings(settings))
    assert found
    assert not found.executable
    assert found.what.endswith("elsewhere")


def test_a_program_that_is_named_has_to_be_there(machine: Path) -> None:
    """Otherwise the settings are wrong, whatever other browsers exist."""
    program(machine / "bin" / "chromium")
    path = machine / "bin" / "mine"
    settings = Settings({"PLAYWRIGHT_LAUNCH_OPTIONS": {"executable_path": str(path)}})
    assert f"names {path}, which is not a program on this machine" in find_browser(settings).reason
    assert find_browser(settings.copy()).what == ""
    program(path)
    assert find_browser(settings).what == str(path)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="there is no root")
def test_chromium_has_no_sandbox_for_root(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless it is set; other users have one."""
    program(machine / "bin" / "chromium")
    found = find_browser(Settings())
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert launch_options(found, {})["chromium_sandbox"] is False
    assert launch_options(found, {"chromium_sandbox": True})["chromium_sandbox"] is True
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "chromium_sandbox" not in launch_options(found, {})
