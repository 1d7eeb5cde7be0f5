"""Finds the browser to render pages with."""

from __future__ import annotations

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from scrapy.settings import SETTINGS_PRIORITIES

from scrapy_focus.core.extras import install_command, is_installed

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

#: The download handlers that use a browser, scrapy-playwright's and ours; and their URL schemes.
HANDLER = "scrapy_playwright.handler.ScrapyPlaywrightDownloadHandler"
OWN_HANDLER = "scrapy_focus.engine.browser.keeper.BrowserHandler"
SCHEMES = ("http", "https")

REMOTE = ("PLAYWRIGHT_CDP_URL", "PLAYWRIGHT_CONNECT_URL", "PLAYWRIGHT_BROWSER_PROVIDER")  # of a remote browser

_INSTALL = install_command("playwright")
_DIED = "TargetClosedError"  # of Playwright, which may not be installed; other errors concern the page
_REACTOR = "twisted.internet.asyncioreactor.AsyncioSelectorReactor"
_PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_STORES = {"linux": "~/.cache/ms-playwright", "darwin": "~/Library/Caches/ms-playwright"}
_STORE_ELSEWHERE = "~/AppData/Local/ms-playwright"


def has_died(error: BaseException) -> bool:
    """Whether an error of Playwright means that the browser or the page is gone."""
    return type(error).__name__ == _DIED


class Found(NamedTuple):
    """A browser, or the reason why there is none."""

    what: str = ""  # in words; "": there is none
    executable: str = ""  # its program, if Playwright does not find it by itself
    reason: str = ""  # why there is none
    advice: str = ""  # how to fix that: a command, or what to change

    def __bool__(self) -> bool:
        return bool(self.what)


#: For a crawl without the parts that use a browser.
NO_ADDON = Found(
    reason="the add-on is not in ADDONS, and RenderMiddleware is not in DOWNLOADER_MIDDLEWARES",
    advice='set ADDONS = {"scrapy_focus.Addon": 500}',
)


def find_browser(settings: BaseSettings) -> Found:
    """Return the browser that scrapy-playwright would start: of the settings, of Playwright, or of the system.

    No program is started for this.
    """
    name = settings.get("PLAYWRIGHT_BROWSER_TYPE") or "chromium"
    if not is_installed("scrapy_playwright"):
        return Found(
            reason=f"scrapy-playwright is not installed ({_INSTALL})", advice=f"run {install_commands(settings)}"
        )
    if not settings.getbool("TWISTED_REACTOR_ENABLED", True) or settings.get("TWISTED_REACTOR", _REACTOR) != _REACTOR:
        return Found(
            reason="scrapy-playwright needs Twisted's asyncio reactor, which the settings do not select",
            advice="leave TWISTED_REACTOR and TWISTED_REACTOR_ENABLED at their defaults",
        )
    if any(settings.get(each) for each in REMOTE):
        return Found(f"a {name} elsewhere")
    if given := settings.getdict("PLAYWRIGHT_LAUNCH_OPTIONS").get("executable_path"):
        if shutil.which(given) is None:
            return Found(
                reason=f"PLAYWRIGHT_LAUNCH_OPTIONS names {given}, which is not a program on this machine",
                advice="correct executable_path in PLAYWRIGHT_LAUNCH_OPTIONS",
            )
        return Found(str(given))
    return _installed(name)


def _installed(name: str) -> Found:
    """Return the browser of this name that Playwright or the system installed."""
    store = _store()
    if any(_is_complete(folder) for folder in sorted(store.glob(f"{name}*-*"))):
        return Found(f"Playwright's {name}")
    program = _program(name)
    if not program:
        return Found(
            reason=f"no {name} was found in {store} or in PATH (playwright install {name})",
            advice=f"run playwright install {name}",
        )
    return Found(program, program)


def install_commands(settings: BaseSettings) -> str:
    """Return the commands that install a browser, except a Chromium that the machine already has."""
    name = settings.get("PLAYWRIGHT_BROWSER_TYPE") or "chromium"
    has_browser = any(settings.get(each) for each in ("PLAYWRIGHT_LAUNCH_OPTIONS", *REMOTE)) or _program(name)
    return _INSTALL if has_browser else f"{_INSTALL}, then playwright install {name}"


def launch_options(found: Found, given: dict[str, object]) -> dict[str, object]:
    """Return the ``PLAYWRIGHT_LAUNCH_OPTIONS`` that start a browser; given ones take precedence.

    Chromium has no sandbox for root.
    """
    options = dict(given)
    if found.executable:
        options.setdefault("executable_path", found.executable)
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        options.setdefault("chromium_sandbox", False)
    return options


def set_browser(settings: BaseSettings) -> None:
    """Have a browser answer requests that need one, if there is a browser, and no other handler is set."""
    found = find_browser(settings)
    given = settings.getdict("DOWNLOAD_HANDLERS")
    if not found or (any(scheme in given for scheme in SCHEMES) and not _asks_browser(given)):
        return
    if not _asks_browser(given):
        _set(settings, "DOWNLOAD_HANDLERS", {**given, **dict.fromkeys(SCHEMES, OWN_HANDLER)})
    if not any(settings.get(each) for each in REMOTE):
        options = launch_options(found, settings.getdict("PLAYWRIGHT_LAUNCH_OPTIONS"))
        _set(settings, "PLAYWRIGHT_LAUNCH_OPTIONS", options)


def browser_of(settings: BaseSettings) -> Found:
    """Return the browser that answers such requests in a running crawl, or why there is none."""
    found = find_browser(settings)
    if not found or _asks_browser(settings.getdict("DOWNLOAD_HANDLERS")):
        return found
    return Found(
        reason=f"{found.what} exists, but the handlers in DOWNLOAD_HANDLERS do not use it",
        advice="remove http and https from DOWNLOAD_HANDLERS",
    )


def _asks_browser(handlers: dict[str, object]) -> bool:
    """Whether download handlers use a browser for requests that need one."""
    return all(handlers.get(scheme) in (HANDLER, OWN_HANDLER) for scheme in SCHEMES)


def _set(settings: BaseSettings, name: str, value: object) -> None:
    """Set a setting whatever its priority: the value includes the previous one."""
    settings.set(name, value, max(settings.getpriority(name) or 0, SETTINGS_PRIORITIES["addon"]))


def _program(name: str) -> str:
    """Return the program of the system for this browser, ``""`` if there is none."""
    if name == "chromium":
        return next(filter(None, map(shutil.which, _PROGRAMS)), "")
    return ""


def _store() -> Path:
    """Return the folder in which Playwright keeps its browsers."""
    named = os.environ.get("PLAYWRIGHT_BROWSERS_PATH", "")
    if named == "0":  # next to its code
        spec = find_spec("playwright")
        if spec:
            return Path(spec.origin or ".").parent / "driver" / "package" / ".local-browsers"
        return Path()
    return Path(named or _STORES.get(sys.platform, _STORE_ELSEWHERE)).expanduser()


def _is_complete(folder: Path) -> bool:
    """Whether a browser was installed completely into its folder: Playwright leaves a mark then."""
    return (folder / "INSTALLATION_COMPLETE").exists()
