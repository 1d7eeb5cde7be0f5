"""The page of the documents on crawls that find nothing or cannot continue: each such message links to its section."""

from __future__ import annotations

from typing import Literal

#: Where the documents are published.
DOCUMENTS = "https://scrapy-focus.readthedocs.io/en/latest/"

#: A section of ``docs/problems.rst``, by its anchor.
Section = Literal[
    "nothing-found",
    "unreachable",
    "robots-txt",
    "blocked",
    "login-wall",
    "needs-a-browser",
    "out-of-memory",
    "disk-is-full",
]


def see(section: Section) -> str:
    """Return the end of a message, which is the link to a section.

    Examples
    --------
    >>> see("blocked")
    'See https://scrapy-focus.readthedocs.io/en/latest/problems.html#blocked'
    """
    return f"See {DOCUMENTS}problems.html#{section}"
