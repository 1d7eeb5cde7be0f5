"""Judges simulated crawls by how early they visit the important pages of a recorded site.

What a goal finds and which pages are important are different things: a crawl can be good at the one and bad at the
other. So both are reported for the same crawl, side by side. A crawl is followed page by page here, not request by
request: a page is a successful answer, and only pages that an exhaustive crawl requests count.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.printable import brief
from scrapy_focus.lab.recordings.format import has_bodies, numbers_of
from scrapy_focus.lab.replay.importance_metrics import (
    at_random,
    backlinks,
    crawl_and_stop,
    crawl_and_stop_with_threshold,
    ends_of,
    ideal_with_threshold,
    page_order,
    pagerank,
    pages_of,
    similarity,
)
from scrapy_focus.lab.replay.metrics import METRICS, Metric
from scrapy_focus.learn.similarity import Query

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Self

    from numpy.typing import NDArray

    from scrapy_focus.lab.recordings.format import RecordedSite
    from scrapy_focus.lab.replay.harvest import Harvest
    from scrapy_focus.lab.replay.truth import SiteTruth

#: Names of measures that a recording itself provides; with the third, a query is given.
MEASURES = ("pagerank", "backlinks", "similarity:QUERY")
#: Share of the pages that are hot in the paper.
HOT = 0.008
_MARKS = (5, 10, 20)  # % of the pages, after which is counted
_SHOWN = 3  # URLs in an error


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """How importance is measured, and how many pages are hot."""

    by: str  # as in MEASURES, or the path of a file
    hot: float = HOT  # share of the pages, or a whole number of them
    values: Mapping[str, float] | None = None  # by URL, of the file

    @classmethod
    def of(cls, by: str | Path, hot: float = HOT) -> Self:
        """Return the measure.

        Parameters
        ----------
        by
            ``"pagerank"``, ``"backlinks"``, ``"similarity:red wine"`` with any query, or the path of a CSV file with a
            URL and a number in each line.
        hot
            A share of the pages below 1, or a whole number of pages. Pages as important as the last of them are also
            hot; pages without importance never are.

        Raises
        ------
        ConfigError
            If there is no such measure, the query has no word, the file cannot be read, or the share is invalid.
        """
        if isinstance(hot, bool) or not (0 < hot < 1 or (isinstance(hot, Integral) and hot >= 1)):
            raise ConfigError(
                f"{brief(hot)} is not a number of hot pages; give a share below 1, as {HOT} for {100 * HOT:g} %, or a "
                "whole number of pages"
            )
        name = str(by)
        kind, _, query = name.partition(":")
        if kind != "similarity":
            return cls(by=name, hot=hot, values=None if name in MEASURES else read_importance(Path(by)))
        if not Query(query):
            raise ConfigError(f"{brief(name)} has no query; give words of two letters or more: similarity:red wine")
        return cls(by=name, hot=hot)

    @property
    def query(self) -> str:
        """The query of a similarity, ``""`` for another measure."""
        kind, _, query = self.by.partition(":")
        return query if kind == "similarity" else ""

    @property
    def said(self) -> str:
        """Its name in a sentence."""
        if self.query:
            return f"similarity to {brief(self.query)}"
        known = {"pagerank": "PageRank", "backlinks": "number of pages that link to it"}
        return known.get(self.by, f"number in {Path(self.by).name}")

    def check(self, paths: Collection[Path]) -> None:
        """Check that each URL of the file is in one of these recordings, or that all have the texts to compare.

        Raises
        ------
        ConfigError
            If one is not, or has none.
        """
        for path in paths if self.query else ():
            if not has_bodies(path):
                raise ConfigError(
                    f"{brief(self.by)} compares the text of pages, and {path.name} has none; record the site again "
                    "with --bodies"
                )
        missing = list(self.values or ())
        for path in paths:
            known = numbers_of(path, missing)
            missing = [url for url in missing if url not in known]
        if missing:
            shown = ", ".join(brief(url) for url in missing[:_SHOWN])
            more = f" and {len(missing) - _SHOWN:,} more" if len(missing) > _SHOWN else ""
            raise ConfigError(
                f"{self.by} has the importance of URLs that no recording has: {shown}{more}; leave them out, or record "
                f"them ({', '.join(path.name for path in paths)})"
            )


class Visits(NamedTuple):
    """The pages of a crawl in the order of their first visit, with the share of important ones."""

    pst: NDArray[np.float64]  # % of the hot pages that are visited after 1, 2, ... pages, shape (n_visited,)
    pcs: NDArray[np.float64]  # % of the visited pages that are among as many most important ones, shape (n_visited,)
    n_pages: int  # of the whole site

    def pst_after(self, percent: float) -> float:
        """Return P_ST when so many % of all pages are visited; inf if the crawl never got so far."""
        return self._after(self.pst, percent)

    def pcs_after(self, percent: float) -> float:
        """Return P_CS when so many % of all pages are visited; inf if the crawl never got so far."""
        return self._after(self.pcs, percent)

    def _after(self, curve: NDArray[np.float64], percent: float) -> float:
        visited = _visited(percent, self.n_pages)
        return float(curve[visited - 1]) if visited <= len(curve) else math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportanceFacts:
    """The properties of a site's pages for those who look for important ones."""

    n_pages: int
    n_hot: int
    threshold: float  # least importance of a hot page; inf if there is none

    def ideal(self, metric: str) -> float:
        """Return the value of a metric for the best order."""
        family, _, percent = metric.partition("_")
        visited = _visited(float(percent), self.n_pages)
        return 100.0 if family == "pcs" else float(ideal_with_threshold(visited, self.n_hot))

    def at_random(self, metric: str) -> float:
        """Return the expected value of a metric for a random order."""
        visited = _visited(float(metric.partition("_")[2]), self.n_pages)
        return float(at_random(visited, max(1, self.n_pages)))


class SiteImportance:
    """How important each page of a recorded site is.

    Parameters
    ----------
    site
        The recording.
    truth
        The URLs that an exhaustive crawl of it requests.
    measure
        How importance is measured. For a file: URLs that the site lacks are ignored, URLs of the site that are
        missing have 0, and one that redirects stands for the final page.
    """

    def __init__(self, site: RecordedSite, truth: SiteTruth, measure: Measure) -> None:
        counted = np.zeros(site.n_urls, np.bool_)
        counted[truth.order] = True
        counted &= pages_of(site)
        self._number = np.where(counted, np.cumsum(counted) - 1, -1)
        self.values: NDArray[np.float64] = _values(site, measure)[counted]
        n_pages = len(self.values)
        n_hot = round(measure.hot * n_pages) if measure.hot < 1 else int(measure.hot)
        ranked = np.sort(self.values)[::-1]
        least = ranked[min(max(1, n_hot), n_pages) - 1] if n_pages else 0.0
        hot = self.values[(self.values >= least) & (self.values > 0)]
        threshold = float(hot.min()) if len(hot) else math.inf
        self.facts = ImportanceFacts(n_pages=n_pages, n_hot=len(hot), threshold=threshold)

    def visits(self, harvest: Harvest) -> Visits:
        """Return how early a crawl visited the important pages."""
        numbers = self._number[page_order(harvest)]
        order = numbers[numbers >= 0]
        return Visits(
            crawl_and_stop_with_threshold(order, self.values, self.facts.threshold),
            crawl_and_stop(order, self.values),
            self.facts.n_pages,
        )


def read_importance(path: Path) -> dict[str, float]:
    """Return the importance of URLs from a CSV file: a URL and a number in each line, after a line ``url,...`` or not.

    Raises
    ------
    ConfigError
        If it cannot be read, or a line has anything else, or a repeated URL.
    """
    known: dict[str, float] = {}
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            for row in (reader := csv.reader(file)):
                if not row or (reader.line_num == 1 and row[0].strip().lower() == "url"):
                    continue
                at = f"{path}, line {reader.line_num}"
                url, value = _read_row(row, at)
                if url in known:
                    raise ConfigError(f"{at}: {brief(url)} is in an earlier line too; give each URL once")
                known[url] = value
    except (OSError, UnicodeError, csv.Error) as error:
        raise ConfigError(
            f"the importance is to be read from {path}, which cannot be read ({error}); give {', '.join(MEASURES)}, or "
            "a CSV file with a URL and a number in each line"
        ) from error
    if not known:
        raise ConfigError(f"{path} has no importance of any page; give a URL and a number in each line")
    return known


def _read_row(row: list[str], at: str) -> tuple[str, float]:
    if len(row) != 2:
        raise ConfigError(f"{at} has {len(row)} columns; give a URL and its importance, as http://a/b,12.5")
    url, text = (part.strip() for part in row)
    value = _number(text)
    if value is None:
        raise ConfigError(f"{at}: the importance is {brief(text)}; give a number from 0")
    return url, value


def _visited(percent: float, n_pages: int) -> int:
    """Return how many pages are so many %; at least one."""
    return max(1, round(percent / 100 * n_pages))


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < math.inf else None


def _values(site: RecordedSite, measure: Measure) -> NDArray[np.float64]:
    """Return the importance of each URL of a site."""
    if measure.query:
        return similarity(site, measure.query)
    if measure.values is None:
        return pagerank(site) if measure.by == "pagerank" else backlinks(site)
    found = np.zeros(site.n_urls)
    ends = ends_of(site.redirect)
    for url, number in numbers_of(site.path, measure.values).items():
        found[ends[number]] = max(found[ends[number]], measure.values[url])
    return found


def _metrics() -> dict[str, Metric[Visits]]:
    found: dict[str, Metric[Visits]] = {}
    for mark in _MARKS:
        found[f"pst_{mark}"] = Metric(
            f"Hot pages after {mark} %", "% of all hot pages", "more",
            f"How many of the hot pages, the most important ones, were visited when {mark} % of all pages were (P_ST).",
            partial(Visits.pst_after, percent=mark),
        )  # fmt: skip
    for mark in _MARKS:
        found[f"pcs_{mark}"] = Metric(
            f"Best {mark} % after {mark} %", "% of the pages visited", "more",
            f"When {mark} % of all pages were visited, how many of these are among the {mark} % most important (P_CS).",
            partial(Visits.pcs_after, percent=mark),
        )  # fmt: skip
    return found


#: How early a crawl visits important pages, by their keys, in the order of a report.
IMPORTANCE_METRICS: Mapping[str, Metric[Visits]] = MappingProxyType(_metrics())

#: All metrics that a crawl can have, by their keys.
KNOWN_METRICS: Mapping[str, Metric[Any]] = MappingProxyType({**METRICS, **IMPORTANCE_METRICS})
