"""The optional packages: what needs one says so before it starts, with the command that installs it."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from scrapy_focus.core.errors import MissingPackageError

#: What a package is called by those who install it, where that is not the name of its module.
_NAMES = {
    "ray": "Ray",
    "scrapy_playwright": "scrapy-playwright",
    "sklearn": "scikit-learn",
    "torch": "PyTorch",
}


def require_extra(what: str, extra: str, *modules: str, otherwise: str = "") -> None:
    """Do nothing if some modules can be imported. They are looked for and not imported, so that this takes no time.

    Parameters
    ----------
    what
        What needs them, the subject of a sentence: ``"--neural"``, ``"reading web archives"``.
    extra
        The extra of this package that installs them.
    modules
        Their names, without dots.
    otherwise
        What to do without them.

    Raises
    ------
    MissingPackageError
        If one is not installed.

    Examples
    --------
    >>> require_extra("the example", "topic", "json", "no_such_package")
    Traceback (most recent call last):
    ...
    scrapy_focus.core.errors.MissingPackageError: the example needs no_such_package: pip install "scrapy-focus[topic]"
    """
    missing = [_NAMES.get(module, module) for module in modules if not is_installed(module)]
    if missing:
        advice = f", or {otherwise}" if otherwise else ""
        raise MissingPackageError(f"{what} needs {' and '.join(missing)}: {install_command(extra)}{advice}")


def is_installed(module: str) -> bool:
    """Whether a module can be found; it is not imported."""
    if module in sys.modules:
        return sys.modules[module] is not None
    try:
        return find_spec(module) is not None
    except ImportError:
        return False


def install_command(extra: str) -> str:
    """Return the command that installs an extra of this package."""
    return f'pip install "scrapy-focus[{extra}]"'
