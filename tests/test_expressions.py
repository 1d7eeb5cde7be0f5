"""Every regular expression of the package and the example project, on long texts that are made to keep it busy."""

from __future__ import annotations

import ast
import importlib
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from scrapy_focus.lab.recordings.importers.folder import MirrorSite
from scrapy_focus.web import words

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
OURS = ("scrapy_focus/lab/compare/plots.py",)  # read pictures that were just drawn, and nothing that came from outside
METHODS = ("match", "fullmatch", "search", "sub", "split", "findall", "finditer")
LONG = 1 << 17  # characters: what takes time that grows with the square of them takes minutes
PIECES = [
    "a", "A", "0", " ", "\n", "/", "#", "/#", "#a", "a#", "# ", "/a#b ", ".", "-", "-1", "_", "é", "漢", "\u0301", "\u200c",
    "<", "<!--", "<!---->", "<!-- -->", "<!-- --", "<?xml", "<?xml>", "<?xml ?>", "<!doctype ", "<html", "http://", "//",
    "a/", "a+", "1-01", "a-1.", "%", "\x00", "\ud800", " at 0x1",
]  # fmt: skip
ENDS = ["!", " /é"]


class Use(NamedTuple):
    """One expression, and what is done with it."""

    where: str
    pattern: re.Pattern
    method: str

    def __str__(self) -> str:
        return f"{self.where}-{self.method}"


def uses() -> Iterator[Use]:
    """Find all expressions of all modules: those with a name, by what is done with them, and those within a call."""
    for folder in ("scrapy_focus", "example_project/focused"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            name = file.relative_to(ROOT).as_posix()
            source = file.read_text()
            if name not in OURS and re.search(r"^import re$", source, re.M):
                yield from uses_of(name, ast.parse(source))


def uses_of(name: str, tree: ast.Module) -> Iterator[Use]:
    """Find the expressions of one module."""
    dotted = name.removesuffix(".py").removeprefix("example_project/").replace("/", ".")
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    for call in calls:
        if not isinstance(call.func.value, ast.Name) or call.func.attr not in METHODS:
            continue
        if call.func.value.id == "re":
            assert isinstance(call.args[0], ast.Constant), f"{name}:{call.lineno}: give the expression a name"
            flags = re.ASCII if "re.ASCII" in ast.unparse(call) else 0
            yield Use(name, re.compile(call.args[0].value, flags), call.func.attr)
        else:
            pattern = vars(importlib.import_module(dotted)).get(call.func.value.id)
            if isinstance(pattern, re.Pattern):
                yield Use(f"{name}:{call.func.value.id}", pattern, call.func.attr)


sys.path.append(str(ROOT / "example_project"))
USES = sorted({str(use): use for use in uses()}.items())
PLAIN, JOINED = words._patterns()
USES += [("words", Use("words", PLAIN, "findall")), ("joined", Use("joined", JOINED, "finditer"))]


def test_all_expressions_are_found() -> None:
    """Those that are known by name are among them, so that the tests below say something."""
    found = {name for name, _ in USES}
    assert {
        "scrapy_focus/lab/recordings/importers/folder.py:_BEGINS_PAGE-match",
        "scrapy_focus/policies/branching/layout.py:_ID-sub",
        "scrapy_focus/web/html.py:_PLAIN-match",
        "scrapy_focus/finders/kit/arguments/seeds.py:_COMMENT-sub",
    } <= found
    compiled = {
        f"{file.relative_to(ROOT).as_posix()}:{name}"
        for file in (ROOT / "scrapy_focus").rglob("*.py")
        for name in re.findall(r"^(\w+) = re\.compile\(", file.read_text(), re.M)
    }
    assert compiled == {name.rpartition("-")[0] for name in found if ":" in name}


@pytest.mark.few(25)
@pytest.mark.timeout(60)
@pytest.mark.parametrize("end", [ENDS[0], *(pytest.param(end, marks=pytest.mark.slow) for end in ENDS[1:])])
@pytest.mark.parametrize("use", [use for _, use in USES], ids=[name for name, _ in USES])
def test_time_does_not_grow_with_the_square(use: Use, end: str) -> None:
    """A hundred thousand characters, of any pieces and with any end, are read in no time to speak of."""
    for piece in PIECES:
        text: str | bytes = piece * (LONG // len(piece)) + end
        if isinstance(use.pattern.pattern, bytes):
            text = text.encode("utf-8", "surrogatepass")
        apply(use, text)


def apply(use: Use, text: str | bytes) -> None:
    """Do with an expression what is done with it."""
    method = getattr(use.pattern, use.method)
    if use.method == "sub":
        method(b"_" if isinstance(text, bytes) else "_", text)
    elif use.method == "finditer":
        for _ in method(text):
            pass
    else:
        method(text)


@pytest.mark.parametrize("n", [0, 1, 20, 30, 100])
def test_a_page_is_told_from_other_files_whatever_comments_it_begins_with(n: int, tmp_path: Path) -> None:
    """A file without a suffix is a page if it begins like one, behind any number of comments, and is told at once."""
    (tmp_path / "page").write_bytes(
        b"\xef\xbb\xbf <?xml version='1.0'?>" + b"<!---->" * n + b"\n<!-- - -- > --><HTML><p>"
    )
    (tmp_path / "other").write_bytes(b"<!---->" * n + b"x<html>")
    site = MirrorSite(tmp_path)
    assert site.fetch("/page").mime == "text/html"
    assert site.fetch("/other").mime == "application/octet-stream"
