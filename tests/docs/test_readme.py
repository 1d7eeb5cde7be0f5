"""README: it fits on few screens, and shows and links the same on a package index as in the repository."""

from __future__ import annotations

import io
import re
from itertools import pairwise
from pathlib import PurePosixPath

import pytest

from scrapy_focus.core.problems import DOCUMENTS
from tests.docs.reference import DOCS, ROOT

README = (ROOT / "README.rst").read_text()
LONGEST = 135  # lines
REPOSITORY = "https://github.com/scrapy-focus/scrapy-focus"
RAW = "https://raw.githubusercontent.com/scrapy-focus/scrapy-focus/main/"
LINKS = sorted(set(re.findall(r"(?m)(?:^\.\. _[^:]+: |^\.\. image:: |^   :target: |<)(\S+?)>?`*_*$", README)))


def test_it_is_short() -> None:
    """Nobody reads on an index what needs more than a few screens."""
    assert len(README.splitlines()) <= LONGEST


def test_all_links_are_absolute() -> None:
    """A package index has no other files of the repository."""
    assert len(LINKS) > 5
    assert all(link.startswith("https://") for link in LINKS)
    assert not re.findall(r":(?:doc|ref|term):`", README)


@pytest.mark.parametrize("link", LINKS)
def test_each_link_leads_somewhere(link: str) -> None:
    """To a page of the documents, with its anchor, or to a file of the repository."""
    address, _, anchor = link.partition("#")
    if address.startswith(DOCUMENTS):
        page = address.removeprefix(DOCUMENTS)
        assert PurePosixPath(page).suffix == ".html"
        text = (DOCS / page).with_suffix(".rst").read_text()
        assert not anchor or anchor in anchors(text)
    elif address.startswith(RAW):
        assert (ROOT / address.removeprefix(RAW)).is_file()
    elif address != REPOSITORY:
        assert address.startswith(f"{REPOSITORY}/blob/main/")
        assert (ROOT / address.removeprefix(f"{REPOSITORY}/blob/main/")).is_file()
        assert not anchor


def anchors(text: str) -> set[str]:
    """Return the anchors of a page: its labels, and its headings as Sphinx spells them."""
    lines = text.splitlines()
    found = set(re.findall(r"(?m)^\.\. _([\w-]+):$", text))
    for heading, line in pairwise(lines):
        if re.fullmatch(r"([=\-~^])\1{2,}", line) and heading.strip():
            found.add(re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-"))
    return found


def test_it_renders_on_an_index() -> None:
    """As PyPI renders it, without a warning."""
    rst = pytest.importorskip("readme_renderer.rst")
    warnings = io.StringIO()
    html = rst.render(README, stream=warnings)
    assert warnings.getvalue() == ""
    assert html is not None
    assert 'src="https://raw.githubusercontent.com/' in html


def test_the_two_commands_of_a_clone_are_in_it() -> None:
    """They exist in the Makefile."""
    makefile = (ROOT / "Makefile").read_text()
    for name in ("demo", "test"):
        assert f"``make {name}``" in README
        assert re.search(rf"(?m)^{name}:", makefile)
