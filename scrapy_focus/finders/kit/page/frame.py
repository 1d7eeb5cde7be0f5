"""What the pages of a folder have in common: templates, style, script, and a policy that lets nothing else in."""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING

from markupsafe import Markup

from scrapy_focus.core.printable import counted, plural, printable
from scrapy_focus.finders.kit.sheets.environment import environment

if TYPE_CHECKING:
    from jinja2 import Environment

_PACKAGE = "scrapy_focus.finders.kit.page"


@lru_cache(maxsize=8)
def made_environment(package: str = _PACKAGE) -> Environment:
    """Return where the templates of a package are, with the filters that they use."""
    made = environment(package)
    made.filters |= {"counted": counted, "plural": plural, "printable": printable}
    return made


def rendered(package: str, name: str, **values: object) -> Markup:
    """Return a template of another package as it stands in a page."""
    return Markup(made_environment(package).get_template(name).render(**values))  # noqa: S704 (it escapes its values)


def source(*names: str) -> Markup:
    """Return files of this package as they stand in a page."""
    made = made_environment()
    return Markup("\n".join(made.get_template(name).render() for name in names))  # noqa: S704 (ours)


def policy_of(style: str, script: str = "") -> str:
    """Return the policy of a page with which this style and this script count, and nothing else is run or loaded."""
    scripts = f"script-src {_hash(script)}; " if script else ""
    return f"default-src 'none'; style-src {_hash(style)}; {scripts}base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
