"""Extracts the main text of a page with trafilatura, as plain text and as Markdown, and what the page says of itself.

Trafilatura finds the main text, and returns a tree of a few kinds of elements. Text and Markdown are written from that
tree here, as a page must not decide what its Markdown does: characters with a meaning are escaped, there is no raw
HTML, and links lead to web and mail addresses only. (Trafilatura's own Markdown can contain raw HTML of a page, in
formulas and where a text looks like an entity.)
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NamedTuple

from scrapy_focus.core.extras import require_extra
from scrapy_focus.core.printable import printable
from scrapy_focus.web.html import parsed

if TYPE_CHECKING:
    from lxml.etree import _Element

_LONGEST = 1_000_000  # characters of a page that are read
_TAGS = 50_000  # and tags
_SHORT = 500  # characters of titles and names
_DEEPEST = 100  # elements in each other that are written
_EMPHASIS = {"#b": "**", "#i": "*"}  # other kinds are written as plain text
_BLOCKS = frozenset("body code div head item list p quote table".split())
_BREAK = "\0"  # stands for a line break until a block is written; no text of a page contains it

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
# What Markdown acts on within a line, or formulas do; an underscore between letters does nothing.
_SPECIAL = re.compile(r"[\\`*\[\]<|$]|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w{1,40};)|!\Z|~(?=~)|(?<=~)~")
_STARTS = re.compile(r"[#>+=-]|\d{1,9}(?=[.)])", re.ASCII)  # at the start of a line
_TARGET = re.compile(r"(?:https?://|mailto:)[^\s<>\\\"`|\x00-\x1f]+\Z", re.IGNORECASE)
_TICKS = re.compile(r"`+")


class PageTexts(NamedTuple):
    """The contents of a page."""

    text: str = ""
    markdown: str = ""
    title: str = ""
    author: str = ""
    published: str = ""  # YYYY-MM-DD, as the page states it


def require_text(what: str) -> None:
    """Raise :class:`~scrapy_focus.MissingPackageError` if what extracts texts is not installed."""
    require_extra(what, "text", "trafilatura", "lxml_html_clean")


def read_page(html: str, url: str) -> PageTexts:
    """Return the contents of a page, from its HTML; texts are empty if none is found.

    The time is not bounded: some pages take minutes. Use :class:`~scrapy_focus.web.text_process.TextProcess` for pages
    of unknown sites.
    """
    from trafilatura import bare_extraction

    root = parsed(beginning_of(html))
    if root is None:
        return PageTexts()
    found = bare_extraction(
        root, url=url, include_comments=False, include_links=True, include_formatting=True, with_metadata=True,
        date_extraction_params={"original_date": True, "extensive_search": False},
    )  # fmt: skip
    if found is None or isinstance(found, dict):
        return PageTexts()
    return PageTexts(
        text=text_of(found.body), markdown=markdown_of(found.body), title=_in_line(found.title),
        author=_in_line(found.author), published=_in_line(found.date)[:10],
    )  # fmt: skip


def beginning_of(html: str) -> str:
    """Return the part of a page that is read: a million characters, and 50,000 tags."""
    html, at = html[:_LONGEST], -1
    if html.count("<") <= _TAGS:
        return html
    for _ in range(_TAGS + 1):
        at = html.index("<", at + 1)
    return html[:at]


def text_of(body: _Element | None) -> str:
    """Return the plain text of a tree: blocks separated by an empty line, items of lists and rows by a line break."""
    return "" if body is None else _PlainWriter().written(body)


def markdown_of(body: _Element | None) -> str:
    """Return the Markdown of a tree (CommonMark, and tables as GitHub has them)."""
    return "" if body is None else _MarkdownWriter().written(body)


def with_front_matter(markdown: str, **facts: str) -> str:
    """Return Markdown with facts in front of it, as YAML; facts that are empty are left out.

    Examples
    --------
    >>> print(with_front_matter("Text.", title='A "b": c', author=""))
    ---
    title: "A \\"b\\": c"
    ---
    <BLANKLINE>
    Text.
    """
    lines = [f"{name}: {json.dumps(fact, ensure_ascii=False)}" for name, fact in facts.items() if fact]
    return "\n".join(["---", *lines, "---", "", markdown])


class _PlainWriter:
    """Writes a tree as plain text."""

    between = "\n"  # the blocks of an item of a list
    line_break = "\n"

    def written(self, body: _Element) -> str:
        """Return the text of a whole tree."""
        return "\n\n".join(self.blocks(body, 0))

    def blocks(self, element: _Element, depth: int) -> list[str]:
        """Return the blocks within an element; text between them is a block, too."""
        if depth > _DEEPEST:
            return [*filter(None, [self.paragraph(self.text(_all_text(element)))])]
        found, loose = [], [self.text(element.text)]
        for child in element:
            if child.tag in _BLOCKS and not _is_in_line(child):
                found += [self.paragraph("".join(loose)), *self.block(child, depth + 1)]
                loose.clear()
            else:
                loose.append(self.inline(child, depth + 1))
            loose.append(self.text(child.tail))
        return [*filter(None, [*found, self.paragraph("".join(loose))])]

    def block(self, element: _Element, depth: int) -> list[str]:
        """Return the blocks that an element stands for."""
        match element.tag:
            case "list":
                items = (self.item(item, self.bullet(element, n), depth) for n, item in enumerate(element, 1))
                return ["\n".join(filter(None, items))]
            case "table":
                return [self.table([self.cells(row, depth) for row in element.iterchildren("row")])]
            case "code":
                text = _CONTROLS.sub("", _all_text(element)).strip("\n")
                return [self.code(text)] if text.strip() else []
            case "head":
                return [self.heading(element, _one_line(self.inside(element, depth)))]
            case "quote":
                return [self.quote("\n\n".join(self.blocks(element, depth)))]
            case _:
                return self.blocks(element, depth)

    def item(self, element: _Element, bullet: str, depth: int) -> str:
        """Return an item of a list, with its lines indented behind the bullet; ``""`` for an empty one."""
        text = self.between.join(self.blocks(element, depth + 1))
        lines = (f"{' ' * len(bullet)}{line}" if line else "" for line in text.split("\n"))
        return bullet + "\n".join(lines)[len(bullet) :] if text else ""

    def cells(self, row: _Element, depth: int) -> list[str]:
        """Return the cells of a row, each in one line."""
        return [_one_line(self.inside(cell, depth + 2)) for cell in row.iterchildren("cell")]

    def inside(self, element: _Element, depth: int) -> str:
        """Return what is in an element, as a part of a line."""
        if depth > _DEEPEST:
            return self.text(_all_text(element))
        parts = [self.text(element.text)]
        for child in element:
            separator = " " if child.tag in _BLOCKS and child.tag != "code" else ""
            parts += [separator, self.inline(child, depth + 1), separator, self.text(child.tail)]
        return "".join(parts)

    def inline(self, element: _Element, depth: int) -> str:
        """Return an element as a part of a line."""
        return _BREAK if element.tag == "lb" else self.inside(element, depth)

    def paragraph(self, text: str) -> str:
        """Return a paragraph with single blanks; ``""`` without a word."""
        lines = (" ".join(line.split()) for line in text.split(_BREAK))
        return self.line_break.join(self.line(line) for line in lines if line)

    def text(self, text: str | None) -> str:
        """Return a text of the page."""
        return _CONTROLS.sub("", text or "")

    def line(self, line: str) -> str:
        """Return a line of a paragraph."""
        return line

    def bullet(self, element: _Element, number: int) -> str:
        """Return what precedes an item of a list."""
        return "- "

    def table(self, rows: list[list[str]]) -> str:
        """Return a table."""
        return "\n".join("\t".join(row) for row in rows if any(row))

    def code(self, text: str) -> str:
        """Return lines of code."""
        return text

    def heading(self, element: _Element, text: str) -> str:
        """Return a heading."""
        return text

    def quote(self, text: str) -> str:
        """Return a quotation."""
        return text


class _MarkdownWriter(_PlainWriter):
    """Writes a tree as Markdown, in which no text of the page has a meaning."""

    between = "\n\n"
    line_break = "\\\n"

    def inline(self, element: _Element, depth: int) -> str:
        if element.tag == "code" and next(element.iterancestors("cell"), None) is None:  # a | in it would end the cell
            return _code_span(_one_line(_CONTROLS.sub("", _all_text(element))))
        text = super().inline(element, depth)
        if element.tag == "hi":
            return _emphasised(text, _EMPHASIS.get(element.get("rend") or "", ""), element)
        if element.tag == "ref":
            return _link(text, element.get("target") or "")
        return text

    def text(self, text: str | None) -> str:
        return _SPECIAL.sub(r"\\\g<0>", super().text(text))

    def line(self, line: str) -> str:
        found = _STARTS.match(line)
        if found is None:
            return line
        at = found.end() if found[0].isdigit() else 0
        return f"{line[:at]}\\{line[at:]}"

    def bullet(self, element: _Element, number: int) -> str:
        return f"{number}. " if element.get("rend") == "ol" else "- "

    def table(self, rows: list[list[str]]) -> str:
        rows = [row for row in rows if any(row)]
        if not rows:
            return ""
        n = max(map(len, rows))
        lines = [f"| {' | '.join(row + [''] * (n - len(row)))} |" for row in rows]
        return "\n".join([lines[0], "|" + "---|" * n, *lines[1:]])

    def code(self, text: str) -> str:
        fence = "`" * max(3, 1 + _longest_run(text))
        return f"{fence}\n{text}\n{fence}"

    def heading(self, element: _Element, text: str) -> str:
        level = (element.get("rend") or "")[1:]
        text = f"{text[:-1]}\\#" if text.endswith("#") else text  # which would be a part of the mark
        return f"{'#' * (int(level) if level in tuple('123456') else 2)} {text}" if text else ""

    def quote(self, text: str) -> str:
        return "\n".join(f"> {line}".rstrip() for line in text.split("\n")) if text else ""


def _is_in_line(element: _Element) -> bool:
    """Whether an element is code within a line of text."""
    if element.tag != "code" or "\n" in _all_text(element).strip():
        return False
    before = element.getprevious()
    beside = (element.tail, element.getparent().text if before is None else before.tail)
    return any(text and text.strip() for text in beside)


def _all_text(element: _Element) -> str:
    """Return all text of an element; a line break is a new line."""
    parts = []
    for each in element.iter():
        parts.append("\n" if each.tag == "lb" else each.text or "")
        if each is not element:
            parts.append(each.tail or "")
    return "".join(parts)


def _one_line(text: str) -> str:
    return " ".join(text.replace(_BREAK, " ").split())


def _in_line(text: str | None) -> str:
    return printable(" ".join((text or "").split()), _SHORT)


def _longest_run(text: str) -> int:
    """Return the length of the longest run of backticks."""
    return max(map(len, _TICKS.findall(text)), default=0)


def _code_span(text: str) -> str:
    if not text:
        return ""
    fence = "`" * (1 + _longest_run(text))
    padding = " " if "`" in (text[0], text[-1]) else ""
    return f"{fence}{padding}{text}{padding}{fence}"


def _emphasised(text: str, mark: str, element: _Element) -> str:
    """Put marks around the text of an element, within the blanks at its ends, if Markdown will read them as such."""
    inner = text.strip()
    if not inner or _BREAK in inner:
        return text
    before, after = _beside(element)
    opens = inner[0].isalnum() or text[0].isspace() or not before.isalnum()
    closes = inner[-1].isalnum() or text[-1].isspace() or not after.isalnum()
    return text.replace(inner, f"{mark}{inner}{mark}", 1) if opens and closes else text


def _beside(element: _Element) -> tuple[str, str]:
    """Return the characters before and after an element; a letter next to another element, where it is not known."""
    previous, parent = element.getprevious(), element.getparent()
    before = (previous.tail or "x") if previous is not None else (parent.text or ("x" if parent.tag == "hi" else " "))
    after = element.tail or ("x" if element.getnext() is not None or parent.tag == "hi" else " ")
    return before[-1], after[0]


def _link(text: str, target: str) -> str:
    """Return a link with a text; only the text, if it would not lead to a web or mail address."""
    if not text.strip() or not _TARGET.match(target):
        return text
    shown = f"<{target}>" if "(" in target or ")" in target else target
    return f"[{_one_line(text)}]({shown})"
