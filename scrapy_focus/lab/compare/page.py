"""Writes a comparison as one page that can be read without us: what was done, what came out, and how sure that is.

The page is one file that needs nothing else, no network either. What it looks like and says is in ``page.html.jinja``,
which escapes whatever comes from recordings, policies or goals: a recorded site may be called anything. Here are the
values that it shows.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from markupsafe import Markup

from scrapy_focus.core.table_lines import text_of
from scrapy_focus.finders.kit.sheets.environment import environment
from scrapy_focus.finders.kit.sheets.tables import Cell, Row, Table
from scrapy_focus.lab.compare import plots as drawing
from scrapy_focus.lab.compare.losses import STAGES, TITLE, losses
from scrapy_focus.lab.compare.words import (
    bound,
    cell_text,
    count_text,
    goal_text,
    headline,
    listed,
    number,
    p_text,
    policy_text,
    value_text,
    warnings_of,
)
from scrapy_focus.lab.replay.importance import IMPORTANCE_METRICS, KNOWN_METRICS
from scrapy_focus.learn.arms import REWARD_COLUMNS, REWARDS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jinja2 import Template

    from scrapy_focus.lab.compare.comparison import Comparison, Contrast, Verdict
    from scrapy_focus.lab.compare.plots import PanelName
    from scrapy_focus.lab.compare.repeat import Repeat
    from scrapy_focus.lab.replay.importance import ImportanceFacts, Measure

_TEMPLATE = "page.html.jinja"
_OVERVIEW = 3  # sites from which there is an overview
#: That say what a panel shows.
_METRICS: dict[PanelName, str] = {"requests": "requests_90", "volume": "waste_90", "pst": "pst_5", "pcs": "pcs_5"}
_BESIDE = ("pst_5", "pcs_5", "requests_90")  # shown side by side, where crawls are judged by important pages
_FIRST = ("found_at_100", "found_at_300", "found_at_1000")
_CAPTIONS: dict[PanelName, str] = {
    "requests": "Share found against requests",
    "volume": "Wanted volume against the volume that was received in vain",
    "pst": "Hot pages visited against pages visited (P_ST)",
    "pcs": "Share of the pages visited that are among as many most important ones (P_CS)",
}
_VERDICTS: dict[Verdict, str] = {
    "better": "Clearly better on",
    "worse": "Clearly worse on",
    "unclear": "Not clear on",
    "neither": "Neither gets there on",
}


class Figure(NamedTuple):
    """A picture that is part of the page."""

    drawing: Markup  # an element
    caption: str


class Site(NamedTuple):
    """What the page says of a site, apart from the numbers in tables."""

    name: str
    roots: list[str]
    facts: dict[str, str]  # none, if no crawl could read its recording
    figures: list[Figure]


def page(comparison: Comparison, *, metric: str, repeat: Repeat, plots: bool = True) -> str:
    """Return the page.

    Parameters
    ----------
    comparison
        What is shown.
    metric
        What matters most; it is shown first.
    repeat
        What it takes to make it again.
    plots
        Draw the curves.
    """
    beside = _other(_BESIDE, metric) if comparison.conditions.importance else []
    first = _other(_FIRST, metric)
    specs, informed = comparison.policies, [label for label in comparison.labels if label in comparison.informed]
    return _template().render(
        comparison=comparison,
        conditions=comparison.conditions,
        repeat=repeat,
        title=f"Comparison of {listed(comparison.labels)}",
        warnings=warnings_of(comparison),
        results=_results(comparison, metric),
        goal=goal_text(comparison.conditions.goal),
        policies={_starred(comparison, spec.label): policy_text(spec) for spec in specs},
        informed=listed(informed) if informed else "",
        metric=KNOWN_METRICS[metric],
        measure=comparison.conditions.importance,
        beside=_tables(comparison, beside),
        table=_table(comparison, metric),
        first=_tables(comparison, first),
        losses=_losses(comparison),
        rewards=_rewards(comparison),
        differences=_differences(comparison, metric),
        left_out=_left_out(comparison, metric),
        plots=plots,
        bounded=any(spec.is_bound() for spec in specs),
        overviews=_overviews(comparison) if plots and len(comparison.sites) >= _OVERVIEW else [],
        sites=[_site(comparison, name, f"site{n}", plots=plots) for n, name in enumerate(comparison.sites)],
        others=[
            (about, _table(comparison, key))
            for key, about in comparison.metrics.items()
            if key not in (metric, *beside, *first)
        ],
    )


@lru_cache(maxsize=1)
def _template() -> Template:
    made = environment("scrapy_focus.lab.compare")
    made.filters |= {"counted": count_text, "listed": listed, "repr": repr}
    return made.get_template(_TEMPLATE)


def _results(comparison: Comparison, metric: str) -> list[str]:
    """Say how each policy did against the baseline, those that are given the truth last."""
    contrasts = comparison.paired(metric)
    rivals = {policy: contrast for policy, contrast in contrasts.items() if policy not in comparison.informed}
    bounds = {policy: contrasts[policy] for policy in contrasts if policy not in rivals and contrasts[policy].ratios}
    said = [headline(comparison, metric, policy, contrast) for policy, contrast in rivals.items()]
    said += [bound(comparison, metric, policy, contrast) for policy, contrast in bounds.items()]
    return said or ["There is only one policy, and so nothing to compare it with."]


def _other(metrics: Iterable[str], metric: str) -> list[str]:
    return [each for each in metrics if each != metric]


def _tables(comparison: Comparison, metrics: Iterable[str]) -> list[tuple[str, Table]]:
    """Return a table of each metric, with its label."""
    return [(KNOWN_METRICS[each].label, _table(comparison, each)) for each in metrics]


def _table(comparison: Comparison, metric: str) -> Table:
    about = KNOWN_METRICS[metric]
    rows = [_means(comparison, site, metric) for site in comparison.sites]
    contrasts = comparison.paired(metric)
    if any(contrast.ratios for contrast in contrasts.values()):
        ratios = [_ratio(contrasts[policy]) if policy in contrasts else "1" for policy in comparison.labels]
        cells = [Cell(ratio, "long") for ratio in ratios]
        if metric in IMPORTANCE_METRICS:
            cells += [Cell("")] * 2
        rows.append(Row(f"times {comparison.baseline}, geometric mean", cells))
    caption = (
        f"{about.description} Unit: {about.unit}. {about.better.capitalize()} is better. "
        "Shaded and bold: the best on each site, of those without *."
    )
    heads = ["Site", *(_starred(comparison, policy) for policy in comparison.labels)]
    if metric in IMPORTANCE_METRICS:
        heads += [drawing.IDEAL, drawing.AT_RANDOM]
    return Table(f"table-{metric}", caption, heads, rows)


def _losses(comparison: Comparison) -> Table | None:
    """Return where each policy loses requests; ``None`` if the link floor is not compared."""
    rows = [
        Row(loss.site, [Cell(loss.policy), *(Cell(number(value, "requests")) for value in loss.requests)])
        for loss in losses(comparison)
    ]
    caption = (
        f"{TITLE}, in three stages of a crawl: difference of the means. Where half of the targets are fewer than ten, "
        "the first stage ends at half."
    )
    return Table("losses", caption, ["Site", "Policy", *STAGES.values()], rows) if rows else None


def _rewards(comparison: Comparison) -> Table | None:
    """Return the rewards of groups of links at the end of each policy that has such groups; ``None`` if none has."""
    rows = []
    for site in comparison.sites:
        for policy in comparison.labels:
            if numbers := comparison.rewards(site, policy):
                texts = [*map(text_of, numbers), *["-"] * (len(REWARD_COLUMNS) - len(numbers))]
                rows.append(Row(site, [Cell(_starred(comparison, policy), "name"), *map(Cell, texts)]))
    caption = f"{REWARDS} at the end of a crawl, averaged over the seeds."
    return Table("rewards", caption, ["Site", "Policy", *REWARD_COLUMNS], rows) if rows else None


def _means(comparison: Comparison, site: str, metric: str) -> Row:
    best, cells = comparison.best(site, metric), []
    for policy in comparison.labels:
        cell = comparison.cell(site, policy, metric)
        kind = ""
        if policy in best:
            kind = "best"
        elif cell.never or cell.failed:
            kind = "long"
        cells.append(Cell(value_text(comparison, site, policy, metric), kind))
    if metric in IMPORTANCE_METRICS:
        cells += _references(comparison, site, metric)
    return Row(site, cells)


def _references(comparison: Comparison, site: str, metric: str) -> list[Cell]:
    """Return what the best order and one by chance have."""
    facts, unit = comparison.sites[site], KNOWN_METRICS[metric].unit
    if facts is None or facts.importance is None or not facts.importance.n_hot:
        return [Cell("-"), Cell("-")]
    values = facts.importance.ideal(metric), facts.importance.at_random(metric)
    return [Cell(number(value, unit)) for value in values]


def _ratio(contrast: Contrast) -> str:
    left_out = len(contrast.verdicts) - len(contrast.ratios)
    if not contrast.ratios:
        return "-"
    if left_out:
        return f"{contrast.ratio:.2f} ({count_text(left_out, 'site')} left out)"
    return f"{contrast.ratio:.2f}"


def _differences(comparison: Comparison, metric: str) -> Table | None:
    """Return what each policy differs by from the baseline; ``None`` if there is no other policy."""
    contrasts, unit = comparison.paired(metric), KNOWN_METRICS[metric].unit
    rows = []
    for policy, contrast in contrasts.items():
        pairs = contrast.pairs
        counts = [len(contrast.sites(verdict)) for verdict in _VERDICTS]
        texts = [_difference(contrast, unit), str(pairs.n), p_text(contrast), *map(str, counts)]
        rows.append(Row(_starred(comparison, policy), [Cell(text) for text in texts]))
    heads = ["Policy", "Difference", "Pairs", "p", *_VERDICTS.values()]
    caption = f"Differences from {comparison.baseline}, in {unit}; sites are counted."
    return Table("differences", caption, heads, rows) if rows else None


def _difference(contrast: Contrast, unit: str) -> str:
    pairs = contrast.pairs
    if math.isnan(pairs.difference):
        return "-"
    sign = "+" if pairs.difference > 0 else ""
    spread = "" if math.isnan(pairs.sd) else f" ± {number(pairs.sd, unit)}"
    return f"{sign}{number(pairs.difference, unit)}{spread}"


def _left_out(comparison: Comparison, metric: str) -> str:
    """Say which pairs are in no difference, and why."""
    said = []
    for policy, contrast in comparison.paired(metric).items():
        pairs = contrast.pairs
        times = {
            "only it got there": pairs.only_b,
            f"only {comparison.baseline} did": pairs.only_a,
            "neither did": pairs.neither,
        }
        if any(times.values()):
            said.append(f"{policy}: {', '.join(f'{n} where {what}' for what, n in times.items() if n)}")
    return "; ".join(said)


def _site(comparison: Comparison, name: str, number_of: str, *, plots: bool) -> Site:
    found = comparison.sites[name]
    figures = (
        [_figure(comparison, name, panel, f"{number_of}-{panel}") for panel in drawing.panels_of(comparison)]
        if plots
        else []
    )
    if found is None:
        return Site(name, [], {}, figures)
    whole = found.exhaustive
    volume, wanted = (whole.target_bytes + whole.other_bytes) / 1e6, whole.target_bytes / 1e6
    density = 100 * whole.worth / max(1, whole.requests)
    facts = {
        "Exhaustive crawl": f"{count_text(whole.requests, 'request')}, {volume:,.1f} MB",
        "To be found": f"{number(whole.worth, '')} ({density:.1f} per 100 requests), {wanted:,.1f} MB, "
        f"on {count_text(whole.hosts, 'host')}",
        "Recording": str(found.completeness),
    }
    if found.importance is not None:
        facts["Hot pages"] = _hot_text(found.importance, comparison.conditions.importance)
    return Site(name, found.roots, facts, figures)


def _figure(comparison: Comparison, site: str, panel: PanelName, name: str) -> Figure:
    metric = _METRICS[panel]
    cells = {policy: comparison.cell(site, policy, metric) for policy in comparison.labels}
    reached = "; ".join(f"{policy}: {cell_text(cell, metric)}" for policy, cell in cells.items())
    about = KNOWN_METRICS[metric]
    title = f"{_CAPTIONS[panel]} on {site}. {about.label}, in {about.unit}: {reached}"
    element = drawing.inline_svg(drawing.draw_panel(comparison, site, panel), name, title)
    return Figure(Markup(element), _CAPTIONS[panel])  # noqa: S704 (matplotlib escapes what it draws)


def _hot_text(importance: ImportanceFacts, measure: Measure | None) -> str:
    """Say how many pages are hot, and from which importance on."""
    if not importance.n_hot:
        return f"none of {count_text(importance.n_pages, 'page')}"
    pages = count_text(importance.n_pages, "page")
    what = {"pagerank": "PageRank", "backlinks": "back-links"}.get(measure.by if measure else "", "importance")
    return f"{importance.n_hot:,} of {pages} ({what}: {importance.threshold:,.4g} or more)"


def _overviews(comparison: Comparison) -> list[Figure]:
    """Draw all sites as small multiples: each kind of thing that is judged once."""
    panels = [panel for panel in drawing.panels_of(comparison) if panel in ("pst", "requests")]
    figures = []
    for panel in panels:
        title = f"{_CAPTIONS[panel]} on {listed(list(comparison.sites))}; each is drawn larger below"
        element = drawing.inline_svg(drawing.draw_overview(comparison, panel), f"overview-{panel}", title)
        caption = f"{_CAPTIONS[panel]}: all sites; each is drawn larger below."
        figures.append(Figure(Markup(element), caption))  # noqa: S704
    return figures


def _starred(comparison: Comparison, label: str) -> str:
    """Return a label, with a star after that of a policy that is given the truth."""
    return f"{label}\N{NO-BREAK SPACE}*" if label in comparison.informed else label
