r"""The table of a comparison in LaTeX, for ``\usepackage{booktabs}``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_focus.lab.research.rows import heads_of, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from scrapy_focus.lab.compare.comparison import Comparison

_SPECIAL = str.maketrans({
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": "$<$", ">": "$>$", "|": "$|$", "±": r"$\pm$", "\n": " ",
})  # fmt: skip


def escaped(text: str) -> str:
    r"""Return a text as LaTeX prints it.

    Examples
    --------
    >>> print(escaped("50 % of A_1 & B#2 ± 3"))
    50 \% of A\_1 \& B\#2 $\pm$ 3
    """
    return text.translate(_SPECIAL)


def latex_table(comparison: Comparison, metrics: Sequence[str], *, caption: str, label: str) -> str:
    """Return a table with a row for each site and policy; with a caption or a label, it floats."""
    lines = _tabular(comparison, metrics)
    if not caption and not label:
        return "\n".join(lines) + "\n"
    captions = [f"\\caption{{{escaped(caption)}}}"] if caption else []
    labels = [f"\\label{{{label}}}"] if label else []
    return "\n".join(["\\begin{table}", "\\centering", *captions, *labels, *lines, "\\end{table}"]) + "\n"


def _tabular(comparison: Comparison, metrics: Sequence[str]) -> Iterator[str]:
    heads = heads_of(comparison, metrics)
    yield f"\\begin{{tabular}}{{l{'r' * len(heads)}}}"
    yield "\\toprule"
    yield _line(["Policy", *(head.label for head in heads)])
    yield _line(["", *(head.unit for head in heads)])
    site = None
    for row in rows_of(comparison, metrics):
        if row.site != site:
            yield "\\midrule"
            if len(comparison.sites) > 1:
                yield f"\\multicolumn{{{len(heads) + 1}}}{{l}}{{\\textit{{{escaped(row.site)}}}}} \\\\"
        site = row.site
        cells = [f"\\textbf{{{escaped(value.text)}}}" if value.is_best else escaped(value.text) for value in row.values]
        yield f"{' & '.join([escaped(row.policy), *cells])} \\\\"
    yield "\\bottomrule"
    yield "\\end{tabular}"


def _line(texts: Sequence[str]) -> str:
    return f"{' & '.join(map(escaped, texts))} \\\\"
