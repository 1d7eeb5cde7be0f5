"""A comparison that a notebook shows as a table, and that gives its numbers to pandas, LaTeX and Matplotlib."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Literal

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.lab.compare import comparison as runs
from scrapy_focus.lab.compare.folder import write
from scrapy_focus.lab.compare.plots import draw_overview, draw_site
from scrapy_focus.lab.compare.words import count_text
from scrapy_focus.lab.research.frames import curves_frame, runs_frame
from scrapy_focus.lab.research.latex import latex_table
from scrapy_focus.lab.research.rows import metrics_of
from scrapy_focus.lab.research.table_html import html_table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import Self

    import pandas as pd
    from matplotlib.figure import Figure


class Comparison(runs.Comparison):
    """What :func:`~scrapy_focus.compare` found. A notebook shows it as a table.

    Examples
    --------
    The table has a row for each policy, with its mean over the seeds. ``table``, ``cell``, ``best`` and ``paired`` give
    single numbers::

        comparison = compare("site.sqlite", {"mine": Mine, "breadth-first": "BFS"})
        comparison                           # in a notebook: the table
        comparison.plot()                    # in a notebook: the picture
        comparison.to_frame().groupby("policy")["requests_90"].describe()
        print(comparison.to_latex())
    """

    @classmethod
    def from_runs(cls, comparison: runs.Comparison) -> Self:
        """Return the same comparison with what a notebook needs."""
        return cls(**{field.name: getattr(comparison, field.name) for field in fields(comparison)})

    def __repr__(self) -> str:
        sizes = [("site", self.sites), ("policy", self.policies), ("seed", self.seeds)]
        failed = f", {len(self.failures)} failed" if self.failures else ""
        return (
            f"<Comparison of {' x '.join(count_text(len(each), what) for what, each in sizes)}: "
            f"{count_text(len(self.runs), 'run')}{failed}>"
        )

    def _repr_html_(self) -> str:
        return html_table(self)

    def to_frame(self, what: Literal["runs", "curves"] = "runs") -> pd.DataFrame:
        """Return a tidy pandas table.

        Parameters
        ----------
        what
            ``"runs"``: a row for each run, with ``site``, ``policy``, ``seed`` and a column for each metric. A metric
            that the run never reached is ``inf``, and a run that failed has ``NaN``. ``site_requests`` and
            ``site_targets`` say what a crawl of the whole site requests and finds.

            ``"curves"``: a row for each point of each run's curve, up to 400 for a run, with ``requests`` and
            ``found``. Both are also in percent of a crawl of the whole site.

        Raises
        ------
        ConfigError
            If pandas is not installed, or there is no such table.
        """
        if what == "runs":
            return runs_frame(self)
        if what == "curves":
            return curves_frame(self)
        raise ConfigError(f"to_frame({what!r}): there are 'runs' and 'curves'")

    def to_latex(self, metrics: Sequence[str] | None = None, *, caption: str = "", label: str = "") -> str:
        """Return a LaTeX table of means and standard deviations, for the package ``booktabs``.

        Parameters
        ----------
        metrics
            Columns; by default requests until 50 % and 90 % of the targets, and the area under the curve.
        caption, label
            With one of them, the table floats.
        """
        return latex_table(self, metrics_of(self, metrics), caption=caption, label=label)

    def plot(self, site: str | None = None) -> Figure:
        """Return a Matplotlib figure of what was found after how many requests, which a notebook shows.

        Parameters
        ----------
        site
            The site to draw in detail; by default the only one, or all of them side by side.

        Raises
        ------
        ConfigError
            If Matplotlib is not installed, or there is no such site.
        """
        if site is None and len(self.sites) > 1:
            return draw_overview(self)
        name = next(iter(self.sites)) if site is None else site
        if name not in self.sites:
            raise ConfigError(f"plot({name!r}): there is no such site; there are {', '.join(self.sites)}")
        return draw_site(self, name)

    def save(self, folder: str | Path, *, metric: str = "requests_90", plots: bool = True) -> Path:
        """Write the page, the numbers and the pictures that ``focus compare`` writes, and return the page.

        Parameters
        ----------
        folder
            A new or empty one, or one with an earlier comparison, which is replaced.
        metric
            What matters most, for the page.
        plots
            Draw the curves, which needs Matplotlib.
        """
        return write(self, folder, metric=metric, plots=plots)
