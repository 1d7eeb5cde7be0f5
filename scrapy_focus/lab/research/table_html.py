"""The table of a comparison in HTML, for the output of a notebook cell."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from scrapy_focus.lab.compare.words import warnings_of
from scrapy_focus.lab.research.rows import caption_of, heads_of, metrics_of, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy_focus.lab.compare.comparison import Comparison
    from scrapy_focus.lab.research.rows import Row

_LEFT = ' style="text-align: left"'
_RIGHT = ' style="text-align: right"'


def html_table(comparison: Comparison) -> str:
    """Return a table with a row for each site and policy, and below it how to read it and what to be aware of."""
    metrics = metrics_of(comparison, None)
    heads = "".join(
        f"<th{_RIGHT}>{escape(head.label)}<br><small>{escape(head.unit)}</small></th>"
        for head in heads_of(comparison, metrics)
    )
    body = "".join(_rows(comparison, rows_of(comparison, metrics), len(metrics) + 1))
    notes = [caption_of(comparison, metrics), *warnings_of(comparison)]
    said = "".join(f"<p><small>{escape(note)}</small></p>" for note in notes)
    table = f"<table><thead><tr><th{_LEFT}>Policy</th>{heads}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div style="overflow-x: auto">{table}</div>{said}'


def _rows(comparison: Comparison, rows: list[Row], columns: int) -> Iterator[str]:
    site = None
    for row in rows:
        if row.site != site and len(comparison.sites) > 1:
            yield f'<tr><th colspan="{columns}"{_LEFT}>{escape(row.site)}</th></tr>'
        site = row.site
        values = ((escape(value.text), value.is_best) for value in row.values)
        cells = (f"<td{_RIGHT}>{f'<b>{text}</b>' if is_best else text}</td>" for text, is_best in values)
        yield f"<tr><td{_LEFT}>{escape(row.policy)}</td>{''.join(cells)}</tr>"
