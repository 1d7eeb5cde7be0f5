"""Whether there is a browser to render pages with, and where."""

from __future__ import annotations

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

HANDLER = "scrapy_playwright.handler.ScrapyPlaywrightDownloadHandler"
REMOTE = ("PLAYWRIGHT_CDP_URL", "PLAYWRIGHT_CONNECT_URL", "PLAYWRIGHT_BROWSER_PROVIDER")  # of a browser elsewhere

_PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_STORES = {"linux": "~/.cache/ms-playwright", "darwin": "~/Library/Caches/ms-playwright"}
_STORE_ELSEWHERE = "~/AppData/Local/ms-playwright"


class Found(NamedTuple):
    """A browser, or why there is none."""

    what: str = ""  # in words; "": there is none
    executable: str = ""  # its program, where Playwright does not know it by itself
    reason: str = ""  # why there is none, and what to do

    def __bool__(self) -> bool:
        return bool(self.what)


def find_browser(settings: BaseSettings) -> Found:
    """Return the browser that scrapy-playwright would start: that of the settings, of Playwright, or of the system.

    No program is run for this.
    """
    if find_spec("scrapy_playwright") is None:
        return Found(reason="scrapy-playwright is not installed (pip install scrapy-focus[playwright])")
    name = settings.get("PLAYWRIGHT_BROWSER_TYPE") or "chromium"
    if any(settings.get(each) for each in REMOTE):
        return Found(f"a {name} elsewhere")
    if given := settings.getdict("PLAYWRIGHT_LAUNCH_OPTIONS").get("executable_path"):
        if shutil.which(given) is None:
            return Found(reason=f"PLAYWRIGHT_LAUNCH_OPTIONS names {given}, which is no program here")
        return Found(str(given))
    store = _store()
    if any(_is_complete(folder) for folder in sorted(store.glob(f"{name}*-*"))):
        return Found(f"Playwright's {name}")
    program = next(filter(None, map(shutil.which, _PROGRAMS)), None) if name == "chromium" else None
    if program is None:
        return Found(reason=f"no {name} was found in {store} or among the programs (playwright install {name})")
    return Found(program, program)


def launch_options(found: Found, given: dict[str, object]) -> dict[str, object]:
    """Return the ``PLAYWRIGHT_LAUNCH_OPTIONS`` with which a browser starts, those that are given first.

    Chromium has no sandbox for root.
    """
    options = dict(given)
    if found.executable:
        options.setdefault("executable_path", found.executable)
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        options.setdefault("chromium_sandbox", False)
    return options


def _store() -> Path:
    """Return where Playwright keeps its browsers."""
    named = os.environ.get("PLAYWRIGHT_BROWSERS_PATH", "")
    if named == "0":  # beside its code
        spec = find_spec("playwright")
        return Path(spec.origin or ".").parent / "driver" / "package" / ".local-browsers" if spec else Path()
    return Path(named or _STORES.get(sys.platform, _STORE_ELSEWHERE)).expanduser()


def _is_complete(folder: Path) -> bool:
    """Whether a browser came whole into its folder: Playwright leaves a mark then."""
    return (folder / "INSTALLATION_COMPLETE").exists()
