"""Draws harvest curves: how much of a site's worth was found after how many requests, and after how much waste.

They must be readable on paper and for colour-blind people, so each policy has a distinct colour (Okabe and Ito) and a
distinct line style. Matplotlib is an extra, imported when something is drawn, without a window and without its global
state.
"""

from __future__ import annotations

import html
import io
import math
import re
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from scrapy_focus.core.extras import require_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from numpy.typing import NDArray

    from scrapy_focus.lab.compare.comparison import Comparison
    from scrapy_focus.lab.compare.runs import Run

PanelName = Literal["requests", "volume", "pst", "pcs"]
PANELS: tuple[PanelName, ...] = ("requests", "volume")
IMPORTANCE_PANELS: tuple[PanelName, ...] = ("pst", "pcs")

INK = "#1f2328"  # text and axes; currentColor within a page
GRID = "#d8dce1"  # var(--grid) within a page

IDEAL, AT_RANDOM = "ideal order", "by chance"  # lines without a crawl

_POINTS = 201  # of a mean
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_DASHES: tuple[Any, ...] = ("-", (0, (6, 1.6)), (0, (1, 1.1)), (0, (6, 1.4, 1, 1.4)), (0, (3, 1, 1, 1, 1, 1)))
_REFERENCE = (0, (4, 4))
_RANDOM = (0, (1, 2.6))
_COLUMNS = 4  # of an overview
_AXES: dict[PanelName, tuple[str, str]] = {
    "requests": ("requests, % of an exhaustive crawl", "found, % of all there is"),
    "volume": ("volume received in vain, % of all such", "wanted volume received, %"),
    "pst": ("pages visited, % of all", "hot pages visited, %"),
    "pcs": ("pages visited, % of all", "of these, among as many best, %"),
}
_SHORT: dict[PanelName, str] = {"requests": "found, %", "pst": "hot, %"}  # labels of an overview

_RC: dict[str, Any] = {
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.labelsize": 9,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 10,
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "legend.fontsize": 9,
    "path.simplify_threshold": 0.2,
    "svg.hashsalt": "scrapy_focus",
    "text.color": INK,
    "text.parse_math": False,
    "xtick.color": INK,
    "xtick.labelsize": 8,
    "ytick.color": INK,
    "ytick.labelsize": 8,
}


class Mean(NamedTuple):
    """The mean of several curves, with their spread. Arrays have shape (n_points,)."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    sd: NDArray[np.float64]  # with n - 1; 0 for one curve


class Style(NamedTuple):
    """How the line of a policy is drawn."""

    colour: str
    dashes: Any
    width: float


def require_matplotlib() -> None:
    """Do nothing if plots can be drawn.

    Raises
    ------
    ConfigError
        If they cannot.
    """
    require_extra("drawing plots", "lab", "matplotlib", otherwise="do without them (--no-plots)")


def panels_of(comparison: Comparison) -> tuple[PanelName, ...]:
    """Return what to draw of each site: how early important pages were visited comes first, if known."""
    if comparison.conditions.importance is None:
        return PANELS
    return IMPORTANCE_PANELS + PANELS


def mean_curve(comparison: Comparison, site: str, policy: str, panel: PanelName) -> Mean | None:
    """Return the mean over the seeds, ``None`` without a run. A crawl that is over keeps its last value."""
    curves = [curve for run in comparison.of(site, policy) if (curve := _curve(run, panel)) is not None]
    if not curves:
        return None
    grid = np.linspace(0, max(float(x[-1]) for x, _ in curves), _POINTS)
    rows = np.array(
        [
            y[np.searchsorted(x, grid, side="right") - 1] if panel == "volume" else np.interp(grid, x, y)
            for x, y in curves
        ]
    )
    sd = rows.std(axis=0, ddof=1) if len(rows) > 1 else np.zeros(_POINTS)
    if panel in IMPORTANCE_PANELS:
        return Mean(grid, rows.mean(axis=0), sd)
    start = np.zeros(1)  # what is found before anything is wasted is a jump at 0
    return Mean(np.append(start, grid), np.append(start, rows.mean(axis=0)), np.append(start, sd))


def _curve(run: Run, panel: PanelName) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Return the course of a run, ``None`` if it has none."""
    if panel in IMPORTANCE_PANELS:
        visits = run.visits
        if visits is None or not len(visits.pages):
            return None
        first = 0.0 if panel == "pst" else visits.pcs[0]  # of no page at all
        return np.append(0.0, visits.pages), np.append(first, getattr(visits, panel))
    if run.curve is None:
        return None
    if panel == "requests":
        return run.curve.requests, run.curve.found
    return run.curve.waste, run.curve.volume


def style_of(comparison: Comparison, policy: str) -> Style:
    """Return the style of a policy's line, the same on every site. A bound, such as OMNISCIENT, is thin and dashed."""
    others = [spec.label for spec in comparison.policies if not spec.is_bound()]
    if policy not in others:
        return Style(INK, _REFERENCE, 1.1)
    number = others.index(policy)
    return Style(_COLOURS[number % len(_COLOURS)], _DASHES[number % len(_DASHES)], 1.9)


def draw_site(comparison: Comparison, site: str) -> Figure:
    """Draw the panels of a site, two side by side."""
    panels = panels_of(comparison)
    with _settings():
        figure, axes = _figure(len(panels), 2, width=9.2, height=0.5 + 3.5 * len(panels) / 2)
        lines: dict[str, Line2D] = {}
        for axis, panel in zip(axes, panels, strict=True):
            lines |= _draw(axis, comparison, site, panel)
        figure.suptitle(site, fontsize=11)
        _legend(figure, lines, columns=4)
    return figure


def draw_panel(comparison: Comparison, site: str, panel: PanelName) -> Figure:
    """Draw one panel of a site, for a narrow column."""
    with _settings():
        figure, axes = _figure(1, 1, width=4.3, height=3.7)
        _legend(figure, _draw(axes[0], comparison, site, panel), columns=2)
    return figure


def draw_overview(comparison: Comparison, panel: PanelName = "requests") -> Figure:
    """Draw one panel of all sites, as small multiples with the same axes."""
    names = list(comparison.sites)
    columns = min(_COLUMNS, math.ceil(math.sqrt(len(names))))
    rows = math.ceil(len(names) / columns)
    with _settings():
        figure, axes = _figure(len(names), columns, width=0.4 + 2.6 * columns, height=0.7 + 2.3 * rows)
        lines: dict[str, Line2D] = {}
        for number, (axis, site) in enumerate(zip(axes, names, strict=True)):
            lines |= _draw(axis, comparison, site, panel)
            axis.set_title(site)
            axis.set_xlabel(axis.get_xlabel() if number >= len(names) - columns else "")
            axis.set_ylabel(_SHORT.get(panel, axis.get_ylabel()) if number % columns == 0 else "")
        _legend(figure, lines, columns=max(2, columns))
    return figure


def png(figure: Figure) -> bytes:
    """Return a figure as an image."""
    return _saved(figure, format="png", dpi=160, facecolor="white", metadata={"Software": None})


def svg(figure: Figure) -> bytes:
    """Return a figure as a file of vectors that looks the same everywhere."""
    with _settings(fonttype="path"):
        return _saved(figure, format="svg", facecolor="white", metadata=_nothing())


def inline_svg(figure: Figure, name: str, title: str) -> str:
    """Return a figure as an element of a page: it takes its text colour from the page, and scales with its column.

    Parameters
    ----------
    figure
        The figure.
    name
        In front of its ids, so that no two figures of a page share one; letters, digits and hyphens.
    title
        What it shows, for those who cannot see it.
    """
    with _settings(fonttype="none"):
        text = _saved(figure, format="svg", transparent=True, metadata=_nothing()).decode()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'(href="#|url\(#)', rf"\g<1>{name}-", text)
    for size in ("width", "height"):
        text = re.sub(rf'(<svg[^>]*?) {size}="[^"]*"', r"\1", text, count=1)
    text = text.replace(INK, "currentColor").replace(GRID, "var(--grid)")
    head, _, rest = text.partition(">")
    return (
        f'{head} role="img" aria-labelledby="{name}-title"><title id="{name}-title">{html.escape(title)}</title>{rest}'
    )


def _draw(axis: Axes, comparison: Comparison, site: str, panel: PanelName) -> dict[str, Line2D]:
    """Draw one panel, and return the line of each policy."""
    furthest = 0.0 if comparison.conditions.budget else 100.0
    lines: dict[str, Line2D] = {}
    for spec in comparison.policies:
        mean = mean_curve(comparison, site, spec.label, panel)
        if mean is None:
            continue
        style = style_of(comparison, spec.label)
        furthest = max(furthest, float(mean.x[-1]))
        (lines[spec.label],) = axis.plot(
            mean.x, mean.y, color=style.colour, linestyle=style.dashes, linewidth=style.width
        )  # fmt: skip
        if mean.sd.any():
            low, high = (mean.y - mean.sd).clip(0), (mean.y + mean.sd).clip(max=100)
            axis.fill_between(mean.x, low, high, color=style.colour, alpha=0.16, linewidth=0)
    lines |= _draw_references(axis, comparison, site, panel)
    axis.set_axisbelow(True)
    axis.grid(visible=True)
    axis.set(xlim=(-furthest / 80, furthest * 1.01 or 1), ylim=(0, 101.5))
    xlabel, ylabel = _AXES[panel]
    axis.set(xlabel=xlabel, ylabel=ylabel)
    return lines


def _draw_references(axis: Axes, comparison: Comparison, site: str, panel: PanelName) -> dict[str, Line2D]:
    """Draw the best order and a random one, if crawls are judged by important pages."""
    facts = comparison.sites[site]
    if panel not in IMPORTANCE_PANELS or facts is None or facts.importance is None or not facts.importance.n_hot:
        return {}
    all_hot = 100 * facts.importance.n_hot / facts.importance.n_pages if panel == "pst" else 0.0
    start = 0.0 if panel == "pst" else 100.0
    (ideal,) = axis.plot([0, all_hot, 100], [start, 100, 100], color=INK, linestyle=_REFERENCE, linewidth=1.1)
    (random,) = axis.plot([0, 100], [0, 100], color=INK, linestyle=_RANDOM, linewidth=1.1)
    return {IDEAL: ideal, AT_RANDOM: random}


def _figure(panels: int, columns: int, *, width: float, height: float) -> tuple[Figure, list[Axes]]:
    from scrapy_focus.lab.compare.figures import ShownFigure

    figure = ShownFigure(figsize=(width, height), layout="constrained")
    rows = math.ceil(panels / columns)
    return figure, [figure.add_subplot(rows, columns, number + 1) for number in range(panels)]


def _legend(figure: Figure, lines: dict[str, Line2D], *, columns: int) -> None:
    """Put one legend for all panels below them, so that it hides no curve."""
    if lines:
        figure.legend(
            list(lines.values()),
            list(lines),
            loc="outside lower center",
            ncols=min(columns, len(lines)),
            frameon=False,
            handlelength=3.6,
        )


def _saved(figure: Figure, **options: Any) -> bytes:
    file = io.BytesIO()
    with _settings(fonttype=None):
        figure.savefig(file, **options)
    return file.getvalue()


def _settings(fonttype: str | None = None) -> Any:
    require_matplotlib()
    import matplotlib as mpl

    settings: Any = _RC | ({"svg.fonttype": fonttype} if fonttype else {})
    return mpl.rc_context(settings)


def _nothing() -> dict[str, None]:
    """Return metadata that is not written, so that equal figures are equal files."""
    return dict.fromkeys(("Creator", "Date", "Format", "Type"))
