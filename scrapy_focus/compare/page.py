"""Writes a comparison as one page that can be read without us: what was done, what came out, and how sure that is.

The page is one file that needs nothing else, no network either. Whatever comes from recordings, policies or goals is
escaped: a recorded site may be called anything.
"""

from __future__ import annotations

import html
import math
from typing import TYPE_CHECKING, NamedTuple

from scrapy_focus.compare.style import STYLE
from scrapy_focus.compare.words import (
    bound,
    cell_text,
    count_text,
    headline,
    listed,
    number,
    p_text,
    policy_text,
    value_text,
    warnings_of,
)
from scrapy_focus.goals.files import FilesGoal
from scrapy_focus.replay.metrics import METRICS
from scrapy_focus.web.mime import describe_types

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from scrapy_focus.compare.comparison import Comparison, Contrast, Verdict

_FIGURES = ("requests", "volume")
_CAPTIONS = {
    "requests": "Share found against requests",
    "volume": "Wanted volume against the volume that was received in vain",
}
_VERDICTS: dict[Verdict, str] = {
    "better": "Clearly better on", "worse": "Clearly worse on", "unclear": "Not clear on", "neither": "Neither gets there on",
}  # fmt: skip
_OVERVIEW = 3  # sites from which there is an overview

_INTRODUCTION = """
<p>A crawler cannot see a web site as a whole. It knows the links that it has found so far, and has to choose which of them
to follow next. What chooses is called a <dfn>policy</dfn>. A good policy finds most of what is wanted early, and asks the
site for little else. This page compares policies by letting each crawl the same sites for the same thing.</p>
<dl class="words">
<dt>Request</dt><dd>The crawler asks the site for one address. Pages, files, redirects, errors, repeated attempts and short
looks ahead (HEAD requests) all count. Requests cost time, and are a load for the site.</dd>
<dt>Target</dt><dd>What is looked for. Here: {goal}.</dd>
<dt>Exhaustive crawl</dt><dd>A crawl that asks for every address of a site once. Requests are given in percent of it, so that
large and small sites can be compared.</dd>
<dt>Recorded site</dt><dd>Nothing was fetched for this page. What each address of a site answers was recorded once, and every
crawl was played back from that recording. So all policies met exactly the same site.</dd>
<dt>Seed</dt><dd>Most policies use chance. Each crawl was made with {seeds}, which differ only in that. The number after ± is
the standard deviation over them: how much luck matters.</dd>
</dl>"""

_READING = """
<p>Each line is the mean of one policy over all seeds, the shade around it one standard deviation up and down. <strong>Higher
and further left is better.</strong> In the first picture of a site, a line that passes 80 at 30 says: after 30 % of the
requests of an exhaustive crawl, 80 % of what is wanted had been found. The second picture says the same of bytes: how
much had to be received in vain. {reference}</p>"""

_PAIRS = """
<p class="soft">The difference is taken between crawls of the same site with the same seed. p is the probability of a mean
difference as large as this if pairs differed by luck alone, and each told as much as any other (paired t-test over all
pairs). It says nothing about sites that were not compared, and little where there are few seeds. &ldquo;Clearly&rdquo;
means, with several seeds, p &lt; 0.05 on that site alone, the same difference with every seed, or that one of the two got
there with more seeds, and was not behind with the others.</p>"""


class Repeat(NamedTuple):
    """What it takes to make a comparison again."""

    made: datetime
    command: str
    versions: dict[str, str]


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
    n_policies, n_sites = len(comparison.policies), len(comparison.sites)
    lead = (
        f"{count_text(n_policies, 'policy')}, {count_text(n_sites, 'recorded site')}, "
        f"{count_text(len(comparison.seeds), 'seed')}: {count_text(len(comparison.runs), 'crawl')}. "
        f"Made on {repeat.made:%d %B %Y} with scrapy_focus {repeat.versions.get('scrapy_focus', '')}."
    )
    title = f"Comparison of {listed(comparison.labels)}"
    sections = [
        _warnings(comparison), _result(comparison, metric), _introduction(comparison),
        _section("numbers", METRICS[metric].label, _table(comparison, metric) + _pairs(comparison, metric)),
        _section("sites", "Site by site", _sites(comparison, plots=plots)),
        _section("metrics", "All metrics", _all_metrics(comparison, metric)),
        _section("failures", "What failed", _failures(comparison)),
        _section("repeat", "How to repeat it", _repeat(comparison, repeat)),
    ]  # fmt: skip
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{_text(title)}</title>\n'
        f"<style>{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>Which links should a crawler follow?</h1>\n"
        f'<p class="soft">{_text(lead)}</p>\n</header>\n<main>\n{"".join(sections)}</main>\n'
        f"<footer>\n<p>Made by scrapy focus-compare. Next to this page: runs.csv (a row for each crawl), summary.json (all "
        f"means and differences), curves.json, and the pictures.</p>\n</footer>\n</body>\n</html>\n"
    )


def goal_text(goal: object) -> str:
    """Say what a goal looks for, as far as it says so itself."""
    if isinstance(goal, FilesGoal):
        types = describe_types(goal.types)
        known = "data files and documents, such as csv, xlsx, json, pdf and zip"
        return f"{known if types == 'data' else f'files of these types: {types}'}{', each content once' if goal.stored else ''}"
    told = type(goal).__repr__ is not object.__repr__ and not hasattr(goal, "__qualname__")
    named = goal if hasattr(goal, "__qualname__") else type(goal)
    return repr(goal) if told else f"what {getattr(named, '__qualname__', named)} counts"


def _warnings(comparison: Comparison) -> str:
    found = warnings_of(comparison)
    items = "".join(f"<li>{_text(warning)}</li>\n" for warning in found)
    return f'<div class="warning" role="note">\n<ul>\n{items}</ul>\n</div>\n' if found else ""


def _result(comparison: Comparison, metric: str) -> str:
    contrasts = comparison.paired(metric)
    able = [policy for policy in contrasts if policy not in comparison.told]
    lines = [headline(comparison, metric, policy, contrasts[policy]) for policy in able]
    lines += [
        bound(comparison, metric, policy, contrasts[policy])
        for policy in contrasts
        if policy in comparison.told and contrasts[policy].ratios
    ]
    if not lines:
        lines = ["There is only one policy, and so nothing to compare it with."]
    items = "".join(f"<li>{_text(line)}</li>\n" for line in lines)
    return _section("result", "Result", f'<div class="result">\n<ul>\n{items}</ul>\n</div>\n')


def _introduction(comparison: Comparison) -> str:
    conditions = comparison.conditions
    text = _INTRODUCTION.format(
        goal=_text(goal_text(conditions.goal)), seeds=_text(count_text(len(comparison.seeds), "seed"))
    )
    limits = []
    if conditions.budget is not None:
        limits.append(
            f"Each crawl was stopped after {count_text(conditions.budget, 'request')}; what it had not reached by then is shown "
            "as &ldquo;&gt; budget&rdquo;."
        )
    if conditions.concurrency > 1:
        limits.append(f"{conditions.concurrency} requests were in flight at a time, so a policy learns with a delay.")
    if comparison.told:
        who = _text(listed([label for label in comparison.labels if label in comparison.told]))
        limits.append(
            f"{who}: marked with *, told beforehand what addresses are. That is possible in a recording only, and shows what "
            "could be reached."
        )
    named = zip(_starred(comparison), comparison.policies, strict=True)
    known = [(label, policy_text(spec)) for label, spec in named]
    items = "".join(f"<dt>{_text(label)}</dt><dd>{_text(said)}</dd>\n" for label, said in known if said)
    policies = f'<h3>The policies</h3>\n<dl class="words">\n{items}</dl>\n' if items else ""
    paragraphs = "".join(f"<p>{limit}</p>\n" for limit in limits)
    return _section("about", "What was compared", f"{text}\n{policies}{paragraphs}")


def _table(comparison: Comparison, metric: str) -> str:
    about = METRICS[metric]
    better = "Less is better." if about.better == "less" else "More is better."
    rows = []
    for site in comparison.sites:
        best, cells = comparison.best(site, metric), []
        for policy in comparison.labels:
            cell = comparison.cell(site, policy, metric)
            text = _text(value_text(comparison, site, policy, metric))
            kind = "best" if policy in best else "long" if cell.never or cell.failed else ""
            cells.append(f'<td class="{kind}">{text}</td>' if kind else f"<td>{text}</td>")
        rows.append(f'<tr><th scope="row">{_text(site)}</th>{"".join(cells)}</tr>')
    ratios = comparison.paired(metric)
    if any(contrast.ratios for contrast in ratios.values()):
        cells = [
            f'<td class="long">{_ratio(ratios[policy]) if policy in ratios else "1"}</td>'
            for policy in comparison.labels
        ]
        rows.append(f'<tr><th scope="row">times {_text(comparison.baseline)}, geometric mean</th>{"".join(cells)}</tr>')
    best_are = "Shaded and bold: the best on each site, of those without *."
    caption = f"{about.description} Unit: {about.unit}. {better} {best_are}"
    return _rows(f"table-{metric}", ["Site", *_starred(comparison)], rows, caption)


def _pairs(comparison: Comparison, metric: str) -> str:
    contrasts, unit = comparison.paired(metric), METRICS[metric].unit
    if not contrasts:
        return ""
    rows, noted = [], []
    for label, (policy, contrast) in zip(_starred(comparison, contrasts), contrasts.items(), strict=True):
        pairs = contrast.pairs
        spread = "" if math.isnan(pairs.sd) else f" ± {number(pairs.sd, unit)}"
        difference = "-" if math.isnan(pairs.difference) else f"{number(pairs.difference, unit)}{spread}"
        if pairs.difference > 0:
            difference = f"+{difference}"
        left_out = {"only it got there": pairs.only_b, f"only {comparison.baseline} did": pairs.only_a,
                    "neither did": pairs.neither}  # fmt: skip
        if any(left_out.values()):
            noted.append(f"{policy}: {', '.join(f'{times} where {what}' for what, times in left_out.items() if times)}")
        cells = [
            difference,
            str(pairs.n),
            p_text(contrast),
            *(str(len(contrast.sites(verdict))) for verdict in _VERDICTS),
        ]
        cells = [f"<td>{_text(cell)}</td>" for cell in cells]
        rows.append(f'<tr><th scope="row">{_text(label)}</th>{"".join(cells)}</tr>')
    heads = ["Policy", "Difference", "Pairs", "p", *_VERDICTS.values()]
    notes = f'<p class="soft">{_text("Pairs left out. " + "; ".join(noted))}.</p>\n' if noted else ""
    return (
        _rows("differences", heads, rows, f"Differences from {comparison.baseline}, in {unit}; sites are counted.")
        + notes
        + _PAIRS
    )


def _sites(comparison: Comparison, *, plots: bool) -> str:
    parts = []
    if plots:
        reference = any(spec.path.endswith(".Omniscient") for spec in comparison.policies)
        dashed = "The thin dashed line asks for targets only: no crawl can do better." if reference else ""
        parts.append(_READING.format(reference=dashed))
        if len(comparison.sites) >= _OVERVIEW:
            parts.append(_overview(comparison))
    for n, name in enumerate(comparison.sites):
        figures = "".join(_figure(comparison, name, panel, f"site{n}-{panel}") for panel in _FIGURES) if plots else ""
        facts = _facts(comparison, name)
        parts.append(f'<h3 id="site{n}">{_text(name)}</h3>\n{facts}<div class="figures">{figures}</div>\n')
    return "".join(parts)


def _facts(comparison: Comparison, name: str) -> str:
    facts = comparison.sites[name]
    if facts is None:
        return "<p>Nothing is known of this site: no crawl could read its recording.</p>\n"
    whole, roots = facts.exhaustive, []
    for url in facts.roots:
        web = url.startswith(("http://", "https://"))
        roots.append(f'<a href="{_text(url)}" rel="noreferrer">{_text(url)}</a>' if web else _text(url))
    rows = {
        "Starts at": ", ".join(roots),
        "Exhaustive crawl": f"{count_text(whole.requests, 'request')}, "
        f"{(whole.target_bytes + whole.other_bytes) / 1e6:,.1f} MB",
        "To be found": f"{number(whole.worth, '')} ({100 * whole.worth / max(1, whole.requests):.1f} per 100 requests), "
        f"{whole.target_bytes / 1e6:,.1f} MB, on {count_text(whole.hosts, 'host')}",
        "Recording": _text(str(facts.completeness)),
    }  # fmt: skip
    return _facts_list(rows)


def _figure(comparison: Comparison, site: str, panel: str, name: str) -> str:
    from scrapy_focus.compare import plots

    known = next(known for known in plots.PANELS if known == panel)
    metric = "requests_90" if panel == "requests" else "waste_90"
    reached = "; ".join(
        f"{policy}: {cell_text(comparison.cell(site, policy, metric), metric)}" for policy in comparison.labels
    )
    about = METRICS[metric]
    title = _text(f"{_CAPTIONS[panel]} on {site}. {about.label}, in {about.unit}: {reached}")
    drawing = plots.inline_svg(plots.draw_panel(comparison, site, known), name, title)
    return f"<figure>{drawing}<figcaption>{_CAPTIONS[panel]}</figcaption></figure>\n"


def _overview(comparison: Comparison) -> str:
    from scrapy_focus.compare import plots

    title = _text(f"Share found against requests on {listed(list(comparison.sites))}; each is drawn larger below")
    drawing = plots.inline_svg(plots.draw_overview(comparison), "overview", title)
    return f'<figure class="wide">{drawing}<figcaption>All sites; each is drawn larger below.</figcaption></figure>\n'


def _all_metrics(comparison: Comparison, first: str) -> str:
    return "".join(
        f"<details><summary>{_text(about.label)} ({_text(about.unit)})</summary>\n{_table(comparison, metric)}</details>\n"
        for metric, about in METRICS.items()
        if metric != first
    )


def _failures(comparison: Comparison) -> str:
    return "".join(
        f"<details><summary>{_text(run.policy)} on {_text(run.site)}, seed {run.seed}: "
        f'{_text(run.error.strip().rpartition(chr(10))[2])}</summary><pre class="wrap">{_text(run.error)}</pre></details>\n'
        for run in comparison.failures
    )


def _repeat(comparison: Comparison, repeat: Repeat) -> str:
    rows = [
        f'<tr><th scope="row">{_text(spec.label)}</th><td class="words"><code>{_text(spec.path)}</code></td>'
        f'<td class="words">{_text(", ".join(f"{key}={value!r}" for key, value in spec.params.items()) or "defaults")}</td></tr>'
        for spec in comparison.policies
    ]
    conditions = comparison.conditions
    latency = conditions.latency
    facts = {
        "Seeds": ", ".join(map(str, comparison.seeds)),
        "Budget": "none" if conditions.budget is None else count_text(conditions.budget, "request"),
        "In flight": str(conditions.concurrency),
        "Latency": latency if isinstance(latency, str) else f"{latency:g} seconds",
        "Versions": ", ".join(f"{name} {version}" for name, version in repeat.versions.items()),
    }
    return (
        f'<p>With the same versions, this command gives the same numbers:</p>\n<pre class="wrap">{_text(repeat.command)}</pre>\n'
        f"{_rows('policies', ['Policy', 'Class', 'Parameters'], rows, 'What the policies are.')}"
        f"{_facts_list({key: _text(value) for key, value in facts.items()})}"
    )


def _starred(comparison: Comparison, labels: Iterable[str] | None = None) -> list[str]:
    return [
        f"{label}\N{NO-BREAK SPACE}*" if label in comparison.told else label for label in labels or comparison.labels
    ]


def _ratio(contrast: Contrast) -> str:
    left = len(contrast.verdicts) - len(contrast.ratios)
    return "-" if not contrast.ratios else f"{contrast.ratio:.2f}{f' ({left} sites left out)' if left else ''}"


def _rows(name: str, heads: Sequence[str], rows: Sequence[str], caption: str) -> str:
    head = "".join(f'<th scope="col">{_text(name)}</th>' for name in heads)
    body = "\n".join(rows)
    return (
        f'<p class="caption" id="{name}">{_text(caption)}</p>\n'
        f'<div class="scroll" role="region" tabindex="0" aria-labelledby="{name}"><table aria-labelledby="{name}">\n'
        f"<thead><tr>{head}</tr></thead>\n"
        f"<tbody>\n{body}\n</tbody>\n</table></div>\n"
    )


def _facts_list(facts: dict[str, str]) -> str:
    rows = "".join(f"<dt>{key}</dt><dd>{value}</dd>\n" for key, value in facts.items())
    return f'<dl class="facts">\n{rows}</dl>\n'


def _section(name: str, title: str, content: str) -> str:
    head = f'<section aria-labelledby="{name}">\n<h2 id="{name}">{_text(title)}</h2>\n'
    return f"{head}{content}</section>\n" if content else ""


def _text(value: str) -> str:
    return html.escape(value)
