"""Tables of a policy as lines for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_focus.core.shown_urls import bare

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy_focus.core.abilities import PolicyTable

_LARGE, _HUGE = 100, 1e15  # numbers without decimals, and those for which only the size is shown
_WIDEST, _NARROWEST = 40, 12  # width of a text in a terminal
_GAP = 2  # between two columns of a table


def in_lines(table: PolicyTable, width: int, most: int) -> list[str]:
    """Return a table as lines of a terminal: its title, the names of its columns, and up to so many rows.

    Texts are cut, and columns at the end dropped, so that no line has more than ``width`` columns if one column fits.
    """
    from rich.cells import cell_len

    shown = [[*table.columns], *([text_of(value) for value in row] for row in table.rows[:most])]
    is_text = [any(isinstance(row[i], str) for row in table.rows[:most]) for i in range(len(table.columns))]
    widths = [min(_WIDEST, max(cell_len(row[i]) for row in shown)) for i in range(len(table.columns))]
    widths = _fitting(widths, is_text, width)
    title = f"{table.title}, {most:,} of {len(table.rows):,}:" if len(table.rows) > most else f"{table.title}:"
    lines = [title]
    for row in shown:
        cells = [_cell(*each) for each in zip(row, widths, is_text, strict=False)]
        lines.append((" " * _GAP).join(cells).rstrip())
    return lines


def _cell(text: str, width: int, is_left: bool) -> str:
    """Return a text that fills a cell of so many columns: aligned left or right, or cut."""
    from rich.cells import cell_len, set_cell_size

    if cell_len(text) > width:
        return f"{set_cell_size(text, width - 1)}…" if width > 1 else "…"
    blank = " " * (width - cell_len(text))
    return text + blank if is_left else blank + text


def text_of(value: str | float) -> str:
    """Return a value of a table as text.

    Examples
    --------
    >>> text_of(12345), text_of(12345.6), text_of(0.12345), text_of(1e300), text_of("https://example.org/a")
    ('12,345', '12,346', '0.123', '1e+300', 'example.org/a')
    """
    if isinstance(value, str):
        return bare(value)
    if abs(value) >= _HUGE:
        return f"{float(value):.3g}"
    if isinstance(value, int) or abs(value) >= _LARGE:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _fitting(widths: Sequence[int], is_text: Sequence[bool], room: int) -> list[int]:
    """Make columns of text narrower, and then drop columns at the end, until a line fits."""
    found = [*widths]
    while sum(found) + _GAP * (len(found) - 1) > room:
        wide = [(width, i) for i, width in enumerate(found) if is_text[i] and width > _NARROWEST]
        if wide:
            found[max(wide)[1]] -= 1
        elif len(found) > 1:
            found.pop()
        else:
            return [max(1, room)]
    return found
