"""What all pages of a folder share: templates, style, script, and a content security policy."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import lru_cache
from typing import TYPE_CHECKING

from markupsafe import Markup

from scrapy_focus.core.printable import counted, plural, printable
from scrapy_focus.core.problems import DOCUMENTS
from scrapy_focus.finders.kit.sheets.environment import environment

if TYPE_CHECKING:
    from jinja2 import Environment

_PACKAGE = "scrapy_focus.finders.kit.page"
_DOCUMENT = re.compile(rf"({re.escape(DOCUMENTS)}[\w./#-]*)")


@lru_cache(maxsize=8)
def made_environment(package: str = _PACKAGE) -> Environment:
    """Return the template environment of a package, with our filters."""
    made = environment(package)
    made.filters |= {"counted": counted, "plural": plural, "printable": printable, "with_links": with_links}
    return made


def with_links(text: str) -> Markup:
    """Return a text in which addresses of the documents are links.

    Examples
    --------
    >>> with_links("<b> See https://scrapy-focus.readthedocs.io/en/latest/problems.html#blocked")
    Markup('&lt;b&gt; See <a href="https://scrapy-focus.readthedocs.io/en/latest/problems.html#blocked" \
rel="noreferrer">https://scrapy-focus.readthedocs.io/en/latest/problems.html#blocked</a>')
    """
    link = Markup('<a href="{0}" rel="noreferrer">{0}</a>')
    parts = _DOCUMENT.split(text)  # each second one is an address
    return Markup("").join(link.format(part) if n % 2 else part for n, part in enumerate(parts))


def rendered(package: str, name: str, **values: object) -> Markup:
    """Render a template of another package for inclusion in a page."""
    return Markup(made_environment(package).get_template(name).render(**values))  # noqa: S704 (it escapes its values)


def source(*names: str) -> Markup:
    """Return files of this package for inclusion in a page."""
    made = made_environment()
    return Markup("\n".join(made.get_template(name).render() for name in names))  # noqa: S704 (ours)


def policy_of(style: str, script: str = "") -> str:
    """Return a content security policy that allows this style and this script, and nothing else."""
    scripts = f"script-src {_hash(script)}; " if script else ""
    return f"default-src 'none'; style-src {_hash(style)}; {scripts}base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
