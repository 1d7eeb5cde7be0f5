"""Files about something: how many relevant ones the first requests find, with a sentence and without it.

Each crawl is simulated as people crawl (no pictures, styles and the like). Which files are relevant is known from the
site's own order, which no policy sees: on the bundled portal from its plan (the title of the file names a theme, in any
of its three languages), on real sites from the folder of a page that links to the file. The sentences do not use the
names of these folders. Sites, sentences and labels were written before any crawl was run, but for those of the cases in
``LATER``: there, only files of the English edition count, as the default embedding is for English, and the title of the
page that has the file may name the theme, too, as a goal with a sentence reads both.

Rows: the default policy with the sentence, whose files are then worth what the sentence says; and without the sentence
the same policy, SB-CLASSIFIER, KEYWORDS and BFS, for which each file counts 1; and best-first by the relevance of
links. ``exhaust`` crawls to the end with the sentence, and fails if a relevant file is missing. ::

    python benchmarks/sites.py --folder sites fetch sklearn2 twisted petsc
    python benchmarks/sites.py --folder sites record sklearn2 twisted petsc --bodies
    python benchmarks/about_files.py run --folder sites --out about.jsonl
    python benchmarks/about_files.py exhaust --folder sites --out about.jsonl
    python benchmarks/about_files.py tables --out about.jsonl
"""

from __future__ import annotations

import argparse
import json
import math
import re
from collections import defaultdict
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from scrapy_focus.goals.files import FilesGoal
from scrapy_focus.lab.compare.specs import PolicySpec
from scrapy_focus.lab.recordings.format import RecordedSite
from scrapy_focus.lab.recordings.importers.folder import record_site
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.lab.replay.truth import SiteTruth
from scrapy_focus.lab.sites.portal.plan import YEARS, Plan
from scrapy_focus.lab.sites.portal.portal import StatisticsPortal
from scrapy_focus.lab.sites.portal.words import LANGUAGES, NOUNS
from scrapy_focus.topic.about import AboutTopic
from scrapy_focus.web.mime import blocked_extensions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy_focus.core.types import Outcome

REQUESTS = (100, 300, 1000)
GOAL = 1.5  # times the relevant files at ...
GOAL_AT = 300  # ... so many requests
PAGES, SEED = 5_000, 0  # of the portal
SENTENCE, PLAIN = "with the sentence", "without it"
ROWS = {
    SENTENCE: "BranchingBandit",
    PLAIN: "BranchingBandit",
    "best-first by relevance": "BestFirst",
    "SB-CLASSIFIER": "SB-CLASSIFIER",
    "KEYWORDS": "KEYWORDS",
    "BFS": "BFS",
}
READS = (SENTENCE, "best-first by relevance")  # rows that are given the sentence
ENGLISH = LANGUAGES.index("en")
FIXED = ("KEYWORDS", "BFS", "best-first by relevance")  # rows without chance

SOURCES, FILES_EACH = ("data", "publications", "archive", "news", "copy"), 40  # as the plan numbers files
SOURCE_OF = {"copy": "data"}

Relevant = Callable[[RecordedSite], set[str]]


class Case(NamedTuple):
    """What is looked for on a site."""

    name: str
    site: str  # of sites.py, or "portal"
    about: str
    relevant: Relevant  # the URLs of the files that are


def themed(*themes: str, english: bool = False) -> Relevant:
    """Files of the portal whose titles name one of these themes, in the language of their edition.

    ``english``: only those of the English edition, but also those whose data set, publication, news or series has such
    a title. The default embedding is for English.
    """
    plan = Plan(pages=PAGES, seed=SEED)
    words = [{NOUNS[e][NOUNS[0].index(theme)].lower() for theme in themes} for e in range(len(LANGUAGES))]

    def relevant(site: RecordedSite) -> set[str]:
        found = set()
        for url in files_of(site):
            number = re.search(r"-(\d+)\.\w+$|/node/(\d+)/file$|[?]id=(\d+)$", url)
            file = None if number is None else plan.file_of_number(int(next(filter(None, number.groups()))))
            if file is None or number is None:
                raise SystemExit(f"{url} is no file of the portal's plan; remove the recording of the portal")
            e = int(next(filter(None, number.groups()))) % len(LANGUAGES)
            titles = [file.title]
            if english:
                titles += title_of_owner(plan, int(next(filter(None, number.groups()))))
            if (e == ENGLISH or not english) and words[e] & set(" ".join(titles).lower().split()):
                found.add(url)
        return found

    return relevant


def title_of_owner(plan: Plan, number: int) -> list[str]:
    """Return the title of what the file of this number belongs to, by the plan."""
    number, e = divmod(number, len(LANGUAGES))
    number, source = divmod(number, len(SOURCES))
    owner = number // FILES_EACH
    name = SOURCES[source]
    return [plan.title(e, f"series/{owner // YEARS}" if name == "archive" else f"{SOURCE_OF.get(name, name)}/{owner}")]


def below(folder: str) -> Relevant:
    """Files that a page below this folder links to."""

    def relevant(site: RecordedSite) -> set[str]:
        files = {site.ids[url] for url in files_of(site)}
        pages = [page for page in range(site.n_urls) if urlsplit(site.urls[page]).path.startswith(folder)]
        linked = {int(target) for page in pages for target in site.targets[site.links(page)]}
        return {site.urls[page] for page in files & linked}

    return relevant


CASES = (
    Case("portal, wages", "portal", "unemployment and wages", themed("labour", "wages")),
    Case("portal, tourism", "portal", "tourism", themed("tourism")),
    Case(
        "sklearn2, k-means", "sklearn2", "grouping similar points together without labels, such as k-means",
        below("/auto_examples/cluster/"),
    ),
    Case(
        "twisted, HTTP", "twisted", "HTTP servers and clients, HTML templates and browser sessions", below("/web/"),
    ),
    Case(
        "petsc, pictures", "petsc", "pictures on the screen: windows, lines, colors and plots",
        below("/docs/manualpages/Draw/"),
    ),
)  # fmt: skip
LATER = (
    Case("portal, wages, in English", "portal", "unemployment and wages", themed("labour", "wages", english=True)),
    Case("portal, tourism, in English", "portal", "tourism", themed("tourism", english=True)),
)


ALL = (*CASES, *LATER)
_truths: dict[Path, SiteTruth] = {}  # by recording; of files on anything, whose totals are not used


class Judged(FilesGoal):
    """Files, with or without a sentence; notes after how many requests each was found, for the judge alone."""

    def __init__(self, about: str) -> None:
        super().__init__(relevance=AboutTopic(about) if about else None)
        self.requests = 0
        self.found: dict[str, int] = {}  # file -> requests until then

    def __call__(self, outcome: Outcome) -> float:
        self.requests += outcome.requests
        if not outcome.error:
            for url in (outcome.pick.url, outcome.pick.url if outcome.page is None else outcome.page.url):
                self.found.setdefault(url, self.requests)
        return super().__call__(outcome)


def files_of(site: RecordedSite) -> list[str]:
    """Return the URLs of the files of a site."""
    goal = FilesGoal()
    urls = range(site.n_urls)
    return [site.urls[i] for i in urls if site.status[i] == 200 and goal.wants(site.mimes[i], site.urls[i])]


def recording_of(case: Case, folder: Path) -> Path:
    """Return the recording of a site; that of the portal is made."""
    path = folder / f"{case.site}.sqlite"
    if case.site == "portal" and not path.exists():
        portal = StatisticsPortal(pages=PAGES, seed=SEED, endless=False)
        record_site(portal, path, root="http://portal.example/", bodies=True)
    if not path.exists():
        raise SystemExit(f"{path} is missing: run sites.py fetch {case.site}, and record {case.site} --bodies")
    return path


def crawl(cases: Sequence[Case], folder: Path, row: str, seed: int, budget: int | None) -> list[dict[str, Any]]:
    """Crawl a site, and return for each of its cases after how many requests each relevant file was found."""
    about = cases[0].about if row in READS else ""
    path = recording_of(cases[0], folder)
    with closing(RecordedSite(path)) as site:
        goal = Judged(about)
        if path not in _truths:
            _truths[path] = SiteTruth(site, FilesGoal(), ignored=blocked_extensions(goal.types))
        made = simulate(
            PolicySpec.parse(ROWS[row]).make(), goal, site, budget=budget, seed=seed,
            ignored=blocked_extensions(goal.types), learn_redirects=False, truth=_truths[path],
        )  # fmt: skip
        results = []
        for case in cases:
            relevant = case.relevant(site)
            missing = sorted(relevant - set(goal.found)) if budget is None else []
            results.append({
                "case": case.name, "row": row, "seed": seed, "budget": budget, "urls": site.n_urls,
                "files": len(files_of(site)), "relevant": len(relevant), "requests": len(made.found) - 1,
                "found": sorted(goal.found[url] for url in relevant & set(goal.found)), "missing": missing,
            })  # fmt: skip
        return results


def run(args: argparse.Namespace) -> None:
    """Make all crawls that the output lacks."""
    done = {(each["case"], each["row"], each["seed"], each["budget"]) for each in read(args.out)}
    exhausts = args.command == "exhaust"
    budget = None if exhausts else max(REQUESTS)
    chosen = [case for case in ALL if not args.cases or any(case.name.startswith(each) for each in args.cases)]
    for row in [SENTENCE] if exhausts else args.rows:
        alike: dict[tuple[str, str], list[Case]] = defaultdict(list)  # that one crawl answers
        for case in chosen:
            alike[case.site, case.about if row in READS else ""].append(case)
        for cases in alike.values():
            for seed in range(1 if exhausts or row in FIXED else args.seeds):
                left = [case for case in cases if (case.name, row, seed, budget) not in done]
                for made in crawl(left, args.folder, row, seed, budget) if left else ():
                    with args.out.open("a", encoding="utf-8") as out:
                        print(json.dumps(made), file=out)
                    found = [after(made, n) for n in REQUESTS]
                    print(
                        f"{made['case']}; {row}; seed {seed}: {found}, {len(made['found'])} of {made['relevant']}",
                        flush=True,
                    )


def read(path: Path) -> list[dict[str, Any]]:
    """Return the crawls of an output, none if it does not exist."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def after(made: dict[str, Any], requests: int) -> int:
    """Return how many relevant files were found with so many requests."""
    return sum(at <= requests for at in made["found"])


def tables(args: argparse.Namespace) -> None:
    """Print relevant files by row and requests, their ratios to the crawl without the sentence, and what is missing."""
    runs: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    whole: list[dict[str, Any]] = []
    for each in read(args.out):
        if each["budget"] is None:
            whole.append(each)
        else:
            runs[each["case"], each["row"]].append(each)
    cases = [case.name for case in ALL if (case.name, SENTENCE) in runs]
    first_written = [case.name for case in CASES if case.name in cases]
    rows = [row for row in ROWS if any((case, row) in runs for case in cases)]
    for n in REQUESTS:
        print(f"\nRelevant files after {n:,} requests:\n")
        print(f"| site | URLs | files | relevant | {' | '.join(rows)} |\n|---|{'--:|' * (3 + len(rows))}")
        for case in cases:
            first = runs[case, SENTENCE][0]
            cells = [_cell([after(made, n) for made in runs[case, row]]) for row in rows]
            print(f"| {case} | {first['urls']:,} | {first['files']:,} | {first['relevant']:,} | {' | '.join(cells)} |")
        ratios = [_ratio([_means(runs, case, row, PLAIN, n) for case in first_written]) for row in rows]
        print(f"| geometric mean of the first {len(first_written)}, to {PLAIN} | | | | {' | '.join(ratios)} |")
    print(
        "\nCrawls to the end with the sentence:\n\n| site | requests | relevant | found | missing |\n|---|--:|--:|--:|--:|"
    )
    for each in whole:
        print(
            f"| {each['case']} | {each['requests']:,} | {each['relevant']} | {len(each['found'])} | "
            f"{len(each['missing'])} |"
        )
    missing = [url for each in whole for url in each["missing"]]
    if missing:
        raise SystemExit(f"{len(missing)} relevant files are missing at the end, such as {missing[0]}")


def _cell(found: Sequence[int]) -> str:
    if not found:
        return ""
    low, high = min(found), max(found)
    return f"{fmean(found):.1f} ({low} to {high})" if low < high else f"{low}"


def _means(runs: Any, case: str, row: str, other: str, n: int) -> tuple[float, float]:
    """Return the mean numbers of relevant files of two rows."""
    mine, its = (
        fmean(after(made, n) for made in runs[case, each]) if runs[case, each] else math.nan for each in (row, other)
    )
    return mine, its


def _ratio(pairs: Sequence[tuple[float, float]]) -> str:
    """Return the geometric mean of the ratios; each number counts with half a file more, as some crawls find none."""
    logs = [math.log((mine + 0.5) / (its + 0.5)) for mine, its in pairs if not math.isnan(mine + its)]
    return f"{math.exp(fmean(logs)):.2f}" if logs else ""


def main() -> None:
    """The command line, see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, words in (("run", "crawl with a budget"), ("exhaust", "crawl to the end"), ("tables", "print tables")):
        command = commands.add_parser(name, help=words)
        command.add_argument("--out", type=Path, default=Path("about_files.jsonl"))
        if name != "tables":
            command.add_argument("--folder", type=Path, default=Path("sites"), help="where sites.py recorded the sites")
            command.add_argument("--cases", nargs="+", default=[], help="beginnings of their names; default: all")
        if name == "run":
            command.add_argument("--seeds", type=int, default=5)
            command.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    args = parser.parse_args()
    tables(args) if args.command == "tables" else run(args)


if __name__ == "__main__":
    main()
