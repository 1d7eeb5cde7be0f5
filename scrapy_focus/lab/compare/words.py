"""The results of a comparison in words, for the terminal and the page alike, and no more than it shows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from scrapy_focus.goals.files import FilesGoal
from scrapy_focus.lab.replay.importance import KNOWN_METRICS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from scrapy_focus.lab.compare.comparison import Cell, Comparison, Contrast
    from scrapy_focus.lab.compare.runs import SiteFacts
    from scrapy_focus.lab.compare.specs import PolicySpec

_ALIKE = 0.005  # ratios nearer to 1 are called equal


def number(value: float, unit: str) -> str:
    """Format a number in this unit.

    Examples
    --------
    >>> number(53.512, "% of an exhaustive crawl"), number(1234.0, "requests"), number(0.98765, "0 to 1")
    ('53.5', '1,234', '0.988')
    >>> number(2_500_000, "bytes"), number(math.nan, "requests")
    ('2.50 MB', '-')
    """
    if not math.isfinite(value):
        return "-" if math.isnan(value) else "never"
    if unit == "bytes":
        return f"{value / 1e6:,.2f} MB"
    if unit == "0 to 1":
        return f"{value:.3f}"
    if unit.startswith("%") or value != int(value):
        return f"{value:,.1f}"
    return f"{value:,.0f}"


def cell_text(cell: Cell, metric: str, *, budget: int | None = None) -> str:
    """Format a mean with its spread, or how often there is none."""
    unit = KNOWN_METRICS[metric].unit
    if not cell.n:
        text = "failed" if cell.failed else "not done"
    elif cell.never:
        text = _never_text(cell, unit, budget)
    else:
        spread = "" if math.isnan(cell.sd) else f" ± {number(cell.sd, unit)}"
        text = f"{number(cell.mean, unit)}{spread}"
    if cell.failed and cell.n:
        return f"{text} ({cell.failed} failed)"
    return text


def _never_text(cell: Cell, unit: str, budget: int | None) -> str:
    """Describe with how many seeds a policy never got there, and when it did with the others."""
    never = "never" if budget is None else "> budget"
    seeds = "1 seed" if cell.n == 1 else f"{cell.n} seeds"
    text = f"{never} ({cell.never} of {seeds})"
    if not math.isnan(cell.reached):
        text += f", else {number(cell.reached, unit)}"
    return text


def value_text(comparison: Comparison, site: str, policy: str, metric: str) -> str:
    """Format the result of a policy on a site, for a table."""
    if site in comparison.empty_for(metric):
        return "nothing to find"
    return cell_text(comparison.cell(site, policy, metric), metric, budget=comparison.conditions.budget)


def policy_text(policy: PolicySpec) -> str:
    """Describe in a sentence how a policy chooses, if known."""
    given = ", ".join(f"{key}={value!r}" for key, value in policy.params.items())
    said = policy.summary()
    return f"{said} Here with {given}.".strip() if given else said


def goal_text(goal: object) -> str:
    """Describe what a goal looks for, if it says so itself."""
    if isinstance(goal, FilesGoal):
        types = str(goal.wanted)
        known = "data files and documents, such as csv, xlsx, json, pdf and zip"
        said = known if types == "data" else f"files of these types: {types}"
        said = f"{said}, {goal.about}" if goal.about else said
        return f"{said}, each content once" if goal.stored else said
    named = goal if hasattr(goal, "__qualname__") else type(goal)
    if named is goal or type(goal).__repr__ is object.__repr__:
        return f"what {getattr(named, '__qualname__', named)} counts"
    return repr(goal)


def ratio_text(ratio: float, what: str, than: str, *, counted: bool = False) -> str:
    """Describe how much less or more of something one thing has than another.

    Examples
    --------
    >>> [ratio_text(ratio, "requests", "BFS", counted=True) for ratio in (0.031, 0.4, 0.5)]
    ['3.1 % as many requests as BFS', '60 % fewer requests than BFS', 'half as many requests as BFS']
    >>> [ratio_text(ratio, "volume", "BFS") for ratio in (1.001, 1.2, 3.0)]
    ['as much volume as BFS', '20 % more volume than BFS', '3.0 times as much volume as BFS']
    """
    less, much = ("fewer", "many") if counted else ("less", "much")
    if abs(ratio - 1) < _ALIKE:
        return f"as {much} {what} as {than}"
    if abs(ratio - 0.5) < _ALIKE:
        return f"half as {much} {what} as {than}"
    if ratio < 0.1:
        return f"{100 * ratio:.2g} % as {much} {what} as {than}"
    if ratio < 1:
        return f"{100 * (1 - ratio):.0f} % {less} {what} than {than}"
    if ratio < 2:
        return f"{100 * (ratio - 1):.0f} % more {what} than {than}"
    return f"{ratio:.1f} times as {much} {what} as {than}"


def p_text(contrast: Contrast) -> str:
    """Format the p-value of a difference, or why there is none."""
    pairs = contrast.pairs
    if pairs.n < 2:
        return "-"
    if pairs.sd == 0:
        return "always equal" if not pairs.difference else "always the same difference"
    return "< 0.001" if pairs.p < 0.001 else f"{pairs.p:.3f}"


def headline(comparison: Comparison, metric: str, policy: str, contrast: Contrast) -> str:
    """Describe in one sentence how a policy did against the baseline, with the sites where it did not do well."""
    n = len(contrast.verdicts)
    if not n and comparison.empty_for(metric) == list(comparison.sites):
        return f"{policy} and {comparison.baseline} cannot be compared: there is nothing to find."
    if not n:
        return f"{policy} and {comparison.baseline} have no runs in common."
    claim = f"{policy} {_claim(metric, contrast, comparison.baseline)}"
    if n == 1:
        ((site, verdict),) = contrast.verdicts.items()
        return f"{claim} on {site}{', but the difference is not clear' if verdict == 'unclear' else ''}."
    return f"{claim}{_over(contrast)}: {', '.join(_verdicts(contrast))}."


def _verdicts(contrast: Contrast) -> list[str]:
    """List on which sites a policy is better, worse, or neither."""
    better = contrast.sites("better")
    names = f" ({listed(better)})" if better else ""
    parts = [f"it is clearly better on {len(better) or 'none'} of {len(contrast.verdicts)}{names}"]
    if worse := contrast.sites("worse"):
        parts.append(f"clearly worse on {listed(worse)}")
    if unclear := contrast.sites("unclear"):
        parts.append(f"no difference is clear on {listed(unclear)}")
    if neither := contrast.sites("neither"):
        parts.append(f"neither gets there on {listed(neither)}")
    return parts


def bound(comparison: Comparison, metric: str, policy: str, contrast: Contrast) -> str:
    """Describe what a policy with the truth shows."""
    claim = f"{_claim(metric, contrast, comparison.baseline)}{_over(contrast)}"
    return f"{policy}, which is given the answers beforehand as no real crawl can be, {claim}."


def warnings_of(comparison: Comparison) -> list[str]:
    """Return the caveats of the numbers."""
    found = []
    if comparison.interrupted:
        found.append(f"The comparison was interrupted: {len(comparison.runs)} of {comparison.planned} runs were made.")
    if failures := comparison.failures:
        found.append(f"{len(failures)} of {comparison.planned} runs failed, and are in no mean.")
    if len(comparison.seeds) == 1:
        found.append("There is one seed: a difference may be luck.")
    for name, facts in comparison.sites.items():
        found += _warnings_of_site(comparison, name, facts)
    if comparison.empty:
        found.append(
            f"There is nothing to find on {listed(comparison.empty)}: no recorded URL is a target. Look for something "
            "else, or record more."
        )
    if unimportant := comparison.empty_for("pst_5") if comparison.conditions.importance else []:
        found.append(f"No page is important on {listed(unimportant)}.")
    for site, times in _missed(comparison).items():
        if times:
            found.append(
                f"On {site} up to {times:,.0f} requests of a crawl went to URLs that were never recorded; each counts "
                "as a request that brings nothing."
            )
    return found


def _missed(comparison: Comparison) -> dict[str, float]:
    """Return the requests of a crawl that went to URLs that were never recorded, the most on each site."""
    missed: dict[str, float] = {}
    for run in comparison.runs:
        missed[run.site] = max(missed.get(run.site, 0), run.metrics.get("missed", 0))
    return missed


def _warnings_of_site(comparison: Comparison, name: str, facts: SiteFacts | None) -> Iterator[str]:
    if facts is not None:
        if facts.completeness.missing or not facts.completeness.finished:
            yield f"The recording of {name} is not complete: {facts.completeness}."
    elif any(run.site == name for run in comparison.runs):  # otherwise it was not its turn yet
        yield f"Nothing could be made of {name}."


def listed(names: Sequence[str]) -> str:
    """Join names into a list."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def count_text(n: int, what: str) -> str:
    """Format a number with its noun.

    Examples
    --------
    >>> count_text(1, "seed"), count_text(5, "policy")
    ('1 seed', '5 policies')
    """
    many = f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"
    return f"{n:,} {what if n == 1 else many}"


def _claim(metric: str, contrast: Contrast, baseline: str) -> str:
    """Describe a ratio to the baseline, or why there is none."""
    ratio, pairs = contrast.ratio, contrast.pairs
    family, _, share = metric.partition("_")
    label = KNOWN_METRICS[metric].label[:1].lower() + KNOWN_METRICS[metric].label[1:]
    if math.isnan(ratio) and (pairs.only_a or pairs.only_b or pairs.neither):
        of = f"of {sum((pairs.n, pairs.only_a, pairs.only_b, pairs.neither))} crawls"
        return f"got there in {pairs.n + pairs.only_b} {of}, {baseline} in {pairs.n + pairs.only_a} ({label})"
    if math.isnan(ratio):
        return f"has no ratio to {baseline} in {label}"
    if family == "requests":
        goal = f" to find {share} % of what there is" if share else ""
        return f"needs {ratio_text(ratio, 'requests', baseline, counted=True)}{goal}"
    if metric.startswith("found_at_"):
        first = KNOWN_METRICS[metric].label.removeprefix("Found after ")
        return f"finds {ratio_text(ratio, 'targets', baseline, counted=True)} in the first {first}"
    if family == "pst":
        return f"visits {ratio_text(ratio, 'hot pages', baseline, counted=True)} in the first {share} % of the pages"
    if family == "pcs":
        most = f"of the {share} % most important pages"
        return f"visits {ratio_text(ratio, most, baseline, counted=True)} in the first {share} % of the pages"
    return f"has {ratio_text(ratio, label, baseline)}"


def _over(contrast: Contrast) -> str:
    """Describe over how many sites a ratio is taken."""
    n, known = len(contrast.verdicts), list(contrast.ratios)
    if not known or n == 1:
        return ""
    if len(known) == 1:
        return f" on {known[0]}, the only one of {n} sites where both always get there"
    if len(known) < n:
        return f" (geometric mean over the {len(known)} of {n} sites where both always get there)"
    return f" (geometric mean over {n} sites)"
