"""How early crawls of real sites visit the important pages, by five orders, and how early they find files.

Measured: crawls without a network of the sites that ``sites.py`` recorded, and of Wikispeedia. A page is important by
its PageRank (IR) or by the number of other pages that link to it (IB) on the whole site; hot are the 2 % that are the
most important (and those that are equal to the last of them). The tables have P_ST, the share of the hot pages that
are visited, and P_CS, the share of the visited pages that are among as many most important ones, after 5, 10 and 20 %
of the pages; and, of the same crawls, the share of the hot pages and of all files after so many % of the requests of
an exhaustive crawl. ``BranchingBandit`` looks for files, to show that this is a different goal. Every successful
answer is a page, including a file.

Random orders are crawled with several seeds, with mean and standard deviation. Not measured: time, and links that
lead off the site. ``focus compare SITE.sqlite --importance pagerank --hot 0.02`` shows the same for your own
sites. ::

    python benchmarks/sites.py fetch ghc sklearn2 statsm
    python benchmarks/sites.py record ghc sklearn2 statsm
    python benchmarks/important_sites.py sites/ghc.sqlite sites/sklearn2.sqlite sites/statsm.sqlite wikispeedia.tar.xz
"""

from __future__ import annotations

import argparse
import html
import json
import math
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from scrapy_focus.core.mission import Mission
from scrapy_focus.goals.files import FilesGoal
from scrapy_focus.lab.compare.specs import PolicySpec
from scrapy_focus.lab.recordings.format import RecordedSite
from scrapy_focus.lab.recordings.writer import Answer, SiteWriter
from scrapy_focus.lab.replay.importance import Measure, SiteImportance
from scrapy_focus.lab.replay.importance_metrics import pagerank, pages_of
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.lab.replay.truth import SiteTruth
from scrapy_focus.web.mime import blocked_extensions
from wikispeedia import read_web

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray


#: Label -> policy.
ORDERS = {
    "breadth-first": "BFS",
    "PageRank": "Importance",
    "back-links": "Importance:by=backlinks",
    "OPIC": "Importance:by=opic",
    "random": "RANDOM",
    "BranchingBandit": "BranchingBandit",
}
BY_CHANCE = ("random", "BranchingBandit")
HOT = 0.02  # share of the pages
PERCENT = (5, 10, 20)  # of the pages or of the requests
_BUDGET = 0.5  # of the requests of an exhaustive crawl


def record_wikispeedia(archive: Path, path: Path) -> None:
    """Record the articles, the start page being that on the United States; their pages are the links on them."""
    web, host = read_web(archive), "http://wikispeedia.example/wiki/"
    with SiteWriter(path, roots=[f"{host}United_States"], source="Wikispeedia") as writer:
        for name, title, targets in zip(web.names, web.titles, web.targets, strict=True):
            links = [(host + web.names[target], html.escape(web.titles[target])) for target in targets]
            body = "".join(f'<p><a href="{html.escape(url)}">{text}</a></p>' for url, text in links)
            page = f"<html><head><title>{html.escape(title)}</title></head><body>{body}</body></html>"
            headers = {"Content-Type": "text/html; charset=utf-8"}
            writer.add(Answer(url=host + name, status=200, headers=headers, body=page.encode()))
        writer.finish()


def measure(name: str, path: Path, seeds: int) -> Iterator[dict[str, Any]]:
    """Crawl a recorded site by each order, and return the result of each crawl."""
    site, goal = RecordedSite(path), FilesGoal()
    truth = SiteTruth(site, goal, ignored=blocked_extensions(goal.types))
    judges = {by: SiteImportance(site, truth, Measure.of(by, HOT)) for by in ("pagerank", "backlinks")}
    requests = truth.exhaustive.requests
    hot = _hot_pages(site, truth, judges["pagerank"].facts.threshold)
    at = [round(percent / 100 * requests) for percent in PERCENT]
    facts = {
        "site": name, "requests": requests, "pages": judges["pagerank"].facts.n_pages, "n_hot": int(hot.sum()),
        "files": round(truth.exhaustive.worth),
    }  # fmt: skip
    for label, policy in ORDERS.items():
        for seed in range(seeds if label in BY_CHANCE else 1):
            harvest = simulate(
                PolicySpec.parse(policy).make(), FilesGoal(), site, budget=round(_BUDGET * requests), seed=seed,
                mission=Mission.of(goal), truth=truth,
            )  # fmt: skip
            found: dict[str, list[float]] = {}
            for by, judge in judges.items():
                visits = judge.visits(harvest)
                found[f"{by} P_ST"] = [visits.pst_after(percent) for percent in PERCENT]
                found[f"{by} P_CS"] = [visits.pcs_after(percent) for percent in PERCENT]
            visited = [np.unique(harvest.pages[1 : n + 1][~harvest.heads[1 : n + 1]]) for n in at]
            found["hot in requests"] = [100 * float(hot[urls].sum()) / hot.sum() for urls in visited]
            worth = truth.exhaustive.worth
            found["files in requests"] = [100 * float(harvest.found[n]) / worth if worth else math.nan for n in at]
            yield {**facts, "order": label, "seed": seed, **found}


def _hot_pages(site: RecordedSite, truth: SiteTruth, threshold: float) -> NDArray[np.bool_]:
    """Return which URLs of a site are pages that can be reached and whose PageRank is large enough, shape (n_urls,)."""
    reached = np.zeros(site.n_urls, np.bool_)
    reached[truth.order] = True
    return reached & pages_of(site) & (pagerank(site) >= threshold)


def table(runs: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> str:
    """Return Markdown: a row for each site and order, means over the seeds and, by chance, standard deviations."""
    head = " | ".join(f"{title} {percent} %" for title in columns.values() for percent in PERCENT)
    lines = [f"| site | order | {head} |", "|---|---" + "|--:" * (len(columns) * len(PERCENT)) + "|"]
    for site in dict.fromkeys(run["site"] for run in runs):
        for order in ORDERS:
            chosen = [run for run in runs if (run["site"], run["order"]) == (site, order)]
            cells = [_cell([run[key][i] for run in chosen]) for key in columns for i in range(len(PERCENT))]
            lines.append(f"| {site} | {order} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(values: Sequence[float]) -> str:
    if not values or not all(map(math.isfinite, values)):
        return "-"
    mean = f"{np.mean(values):.0f}"
    return mean if len(values) == 1 else f"{mean} ± {np.std(values, ddof=1):.0f}"


def main() -> None:
    """The command line, see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("paths", metavar="SITE", type=Path, nargs="+", help="a recording, or Wikispeedia's archive")
    parser.add_argument("--seeds", type=int, default=10, help="of the orders by chance")
    parser.add_argument("--json", type=Path, help="append a line for each crawl there")
    options = parser.parse_args()
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        for path in options.paths:
            name, recorded = path.name.partition(".")[0], path
            if path.suffix != ".sqlite":
                recorded = Path(folder, f"{name}.sqlite")
                record_wikispeedia(path, recorded)
            for run in measure(name, recorded, options.seeds):
                runs.append(run)
                if options.json is not None:
                    with options.json.open("a", encoding="utf-8") as file:
                        print(json.dumps(run), file=file)
    for what, by in (("PageRank (IR)", "pagerank"), ("the number of back-links (IB)", "backlinks")):
        columns = {f"{by} P_ST": "P_ST", f"{by} P_CS": "P_CS"}
        print(f"\nImportance is {what}; by pages:\n\n{table(runs, columns)}")
    print(
        f"\nBy requests, hot by PageRank:\n\n{table(runs, {'hot in requests': 'hot', 'files in requests': 'files'})}\n"
    )
    for run in {run["site"]: run for run in runs}.values():
        print("{site}: {pages:,} pages, {n_hot:,} hot ones, {files:,} files, {requests:,} requests".format(**run))


if __name__ == "__main__":
    main()
