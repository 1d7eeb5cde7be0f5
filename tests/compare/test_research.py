"""What a researcher calls: simulate, compare, and how a comparison is shown, tabulated and drawn."""

from __future__ import annotations

import math
import subprocess
import sys
from contextlib import closing
from functools import partial
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import pytest
from compared import comparison, record

from scrapy_focus import Comparison, ConfigError, FilesGoal, Link, Ordering, Outcome, RecordingError, compare, simulate
from scrapy_focus.lab.compare.figures import ShownFigure
from scrapy_focus.lab.recordings.format import RecordedSite
from scrapy_focus.lab.replay import simulate as replay
from scrapy_focus.policies.orderings import BreadthFirst
from tests.made import HANG

if TYPE_CHECKING:
    from pathlib import Path

inf, nan = math.inf, math.nan


class Shortest(Ordering):
    """Short URLs first."""

    def __init__(self, *, sign: int = 1) -> None:
        self.sign = sign

    def rank(self, link: Link, source: Outcome | None) -> float:
        return -self.sign * len(link.url)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record(tmp_path_factory.mktemp("sites") / "one.sqlite")


def shown(values: dict[str, dict[str, Any]], **more: Any) -> Comparison:
    """Return a comparison whose numbers are given by hand, as a notebook has it."""
    return Comparison.from_runs(comparison(values, **more))


# Calls


def test_a_simulation_is_that_of_the_loop(site: Path) -> None:
    """Recording, policy and targets in whatever form make the crawl that the underlying function makes."""
    expected = replay.simulate(BreadthFirst(), FilesGoal(), site, budget=150, seed=3)
    for policy in ("BFS", BreadthFirst, BreadthFirst(), partial(BreadthFirst)):
        found = simulate(site, policy, budget=150, seed=3)
        assert (found.asked, list(found.found)) == (expected.asked, list(expected.found))
    typed = simulate(RecordedSite(site), "BFS", targets="text/html", budget=150)
    assert typed.found[-1] > expected.found[-1]
    by_goal = simulate(site, "BFS", targets=FilesGoal(types=["text/html"]), budget=150)
    assert list(typed.found) == list(by_goal.found)
    assert (
        repr(expected) == f"<Harvest: {expected.found[-1]:g} of {expected.exhaustive.worth:g} found with 150 requests>"
    )


def test_a_policy_that_crawled_can_be_looked_into_and_not_used_again(site: Path) -> None:
    """A simulation runs the object that it is given; a comparison copies it for each run."""
    policy = Shortest()
    found = compare(site, {"mine": policy, "class": Shortest}, seeds=[0], processes=1, budget=50)
    assert not hasattr(policy, "frontier")
    assert found.runs[0].metrics == found.runs[1].metrics
    simulate(site, policy, budget=50)
    assert len(policy.frontier) > 0
    with pytest.raises(ConfigError, match="Shortest has crawled already"):
        compare(site, [policy], seeds=[0], processes=1)


def test_a_comparison_takes_recordings_and_policies_by_name(site: Path) -> None:
    """Names are those of the mappings, one thing needs no list, and the baseline is breadth-first if it is there."""
    found = compare(
        {"portal": site}, {"sign": partial(Shortest, sign=-1), "BFS": "BFS"}, seeds=2, processes=1, budget=60
    )
    assert (list(found.sites), found.labels, found.seeds) == (["portal"], ["sign", "BFS"], [0, 1])
    assert found.baseline == "BFS"
    assert repr(found) == "<Comparison of 1 site x 2 policies x 2 seeds: 4 runs>"
    with closing(RecordedSite(site)) as opened:
        alone = compare(opened, Shortest, seeds=[7], processes=1, budget=60)
    assert (list(alone.sites), alone.labels, alone.seeds) == (["one"], ["Shortest"], [7])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"policies": "BFZ"}, ConfigError, "there is no policy 'BFZ'; did you mean BFS?"),
        ({"policies": 3}, ConfigError, "policy 3 is of type int"),
        ({"policies": [3]}, ConfigError, "policy 3 is of type int; give a name, an import path, a class"),
        ({"policies": [dict]}, ConfigError, "is not a policy"),
        ({"policies": [lambda: 3]}, ConfigError, "makes a int, which is not a policy"),
        ({"policies": [lambda a: 3]}, ConfigError, "missing a required argument: 'a'"),
        ({"policies": [Shortest, Shortest]}, ConfigError, "Shortest is given twice"),
        ({"recordings": "none.sqlite"}, RecordingError, "none.sqlite is not there"),
        ({"targets": "mp3"}, ConfigError, r"no recorded URL is a target.*recorded are text/html \("),
        ({"targets": "c s v"}, ConfigError, "targets='c s v': "),
        ({"targets": 3}, ConfigError, "targets=3: "),
    ],
)
def test_what_cannot_be_compared_is_said_before_anything_runs(
    site: Path, arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    """An unknown policy, a recording that is not there, and one without targets are errors that say so."""
    given: dict[str, Any] = {"recordings": site, "policies": "BFS", "processes": 1, "seeds": 1} | arguments
    with pytest.raises(error, match=message.replace("?", r"\?")):
        compare(**given)


SCRIPT = '''
import sys
from scrapy_focus import FilesGoal, Ordering, compare, simulate

class Mine(Ordering):
    """Short URLs first."""
    def rank(self, link, source):
        return -len(link.url)

class Loud(FilesGoal):
    pass

found = compare(sys.argv[1], [Mine, "BFS"], seeds=2, budget=80, processes=int(sys.argv[2]), targets=Loud())
assert not found.failures, found.failures[0].error
print([run.metrics["area"] for run in found.runs], simulate(sys.argv[1], Mine, budget=80))
'''


def test_classes_of_a_script_are_compared_in_several_processes(site: Path, tmp_path: Path) -> None:
    """A class of ``__main__`` gives the same numbers in two processes as in one, and no guard is needed for it."""
    (tmp_path / "script.py").write_text(SCRIPT)
    words = [sys.executable, "-W", "error", str(tmp_path / "script.py"), str(site)]
    done = [subprocess.run([*words, n], capture_output=True, text=True, timeout=HANG, check=False) for n in ("1", "2")]
    assert [each.stderr for each in done] == ["", ""]
    assert done[0].stdout == done[1].stdout
    assert done[0].stdout.endswith("found with 80 requests>\n")


# How it is shown


class _Texts(HTMLParser):
    """The cells of a table, and which of them are bold."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.bold: list[str] = []
        self.tags: list[str] = []
        self.feed(html)
        assert not self.tags, "every tag is closed"

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag != "br":
            self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.tags.pop() == tag

    def handle_data(self, data: str) -> None:
        if {"td", "th"} & {*self.tags}:
            self.rows[-1][-1] += data
        if "b" in self.tags:
            self.bold.append(data)


def test_a_notebook_shows_a_table_with_the_best_in_bold() -> None:
    """Each policy has its mean and deviation; the informed one is marked, and never the best; names are escaped."""
    values = {"a<b": {"<i>=TagPath": [40.0, 50.0, 60.0], "BFS": [70.0, 70.0, 70.0], "OMNISCIENT": [20.0, 20.0, 20.0]}}
    html = shown(values)._repr_html_()
    table = _Texts(html)
    assert [row[0] for row in table.rows] == ["Policy", "<i>", "BFS", "OMNISCIENT *"]
    assert [row[2] for row in table.rows] == ["Requests until 90 %% of all", "50.0 ± 10.0", "70.0 ± 0.0", "20.0 ± 0.0"]
    assert "50.0 ± 10.0" in table.bold
    assert not {"70.0 ± 0.0", "20.0 ± 0.0"} & {*table.bold}
    assert "over 3 seeds" in html
    assert "<i>" not in html


def test_a_table_of_several_sites_names_them_and_says_what_went_wrong() -> None:
    """A site has a row of its own above its policies; failed runs and incomplete recordings are said below."""
    values = {"a&b": {"BFS": [40.0, nan], "RANDOM": [inf, inf]}, "c": {"BFS": [40.0, 40.0], "RANDOM": [50.0, 50.0]}}
    html = shown(values, budget=100, complete=False)._repr_html_()
    table = _Texts(html)
    assert [row[0] for row in table.rows] == ["Policy", "a&b", "BFS", "RANDOM", "c", "BFS", "RANDOM"]
    assert table.rows[2][2] == "40.0 (1 failed)"
    assert table.rows[3][2] == "> budget (2 of 2 seeds)"
    assert "1 of 8 runs failed" in html
    assert "The recording of c is not complete" in html


def test_latex_is_a_booktabs_table() -> None:
    """Text is escaped, the best is bold, a caption makes it float; it has as many cells in each row."""
    values = {"s_1": {"50%&=TagPath": [40.0, 60.0], "BFS": [70.0, 70.0], "RANDOM": [inf, inf]}}
    found = shown(values, budget=100)
    assert found.to_latex(["requests_90"]) == (
        "\\begin{tabular}{lr}\n"
        "\\toprule\n"
        "Policy & Requests until 90 \\% \\\\\n"
        " & \\% of all \\\\\n"
        "\\midrule\n"
        "50\\%\\& & \\textbf{50.0 $\\pm$ 14.1} \\\\\n"
        "BFS & 70.0 $\\pm$ 0.0 \\\\\n"
        "RANDOM & $>$ budget (2 of 2 seeds) \\\\\n"
        "\\bottomrule\n"
        "\\end{tabular}\n"
    )
    floating = found.to_latex(caption="A & B_1", label="tab:one")
    assert floating.startswith(
        "\\begin{table}\n\\centering\n\\caption{A \\& B\\_1}\n\\label{tab:one}\n\\begin{tabular}{lrrr}"
    )
    assert floating.endswith("\\end{tabular}\n\\end{table}\n")
    several = shown(values | {"t": values["s_1"]}).to_latex()
    assert several.count("\\midrule") == 2
    assert "\\multicolumn{4}{l}{\\textit{s\\_1}} \\\\" in several
    with pytest.raises(ConfigError, match="there is no metric 'recall'"):
        found.to_latex(["recall"])


def test_frames_are_tidy() -> None:
    """A run is a row, and so is each point of its curve; what was never reached is inf, and what failed is NaN."""
    pandas = pytest.importorskip("pandas")
    found = shown({"s": {"BFS": [40.0, inf], "RANDOM": [50.0, nan]}})
    frame = found.to_frame()
    assert list(frame.columns[:4]) == ["site", "policy", "seed", "requests_50"]
    assert list(zip(frame["site"], frame["policy"], frame["seed"], strict=True)) == [
        ("s", "BFS", 0), ("s", "BFS", 1), ("s", "RANDOM", 0), ("s", "RANDOM", 1),
    ]  # fmt: skip
    assert list(frame["requests_90"][:3]) == [40.0, inf, 50.0]
    assert math.isnan(frame["requests_90"][3])
    assert list(frame["error"]) == ["", "", "", "ValueError: <oh & no>"]
    assert set(frame["site_requests"]) == {200}
    assert set(frame["site_targets"]) == {50}
    curves = found.to_frame("curves")
    assert list(curves.columns[:5]) == ["site", "policy", "seed", "requests", "found"]
    first = curves[(curves["policy"] == "BFS") & (curves["seed"] == 0)]
    assert len(first) == 101
    assert list(first["requests"]) == list(range(0, 202, 2))
    assert first["found"].iloc[-1] == 50
    assert first["found"].iloc[10] == pytest.approx(50 * 0.1 * 100 / 40, abs=0.01)
    assert not {"RANDOM"} & set(curves[curves["seed"] == 1]["policy"])
    assert pandas.api.types.is_integer_dtype(curves["requests"])
    with pytest.raises(ConfigError, match="there are 'runs' and 'curves'"):
        found.to_frame("points")  # type: ignore[arg-type]


def test_a_missing_pandas_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line says what to install."""
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ConfigError, match=r"pip install .scrapy-focus\[lab\]"):
        shown({"s": {"BFS": [40.0]}}).to_frame()


def test_a_figure_shows_itself() -> None:
    """The figure of one site, or of several side by side, is a picture to IPython without pyplot."""
    one = {"BFS": [40.0, 50.0], "RANDOM": [60.0, 70.0]}
    figure = shown({"s": one, "t": one}).plot()
    assert isinstance(figure, ShownFigure)
    assert len(figure.axes) == 2
    data, size = figure._repr_png_()
    assert data.startswith(b"\x89PNG")
    assert size["width"] == round(figure.get_figwidth() * 72)
    assert [axis.get_xlabel() for axis in shown({"s": one, "t": one}).plot("t").axes] != []
    assert shown({"s": one}).plot().get_suptitle() == "s"
    with pytest.raises(ConfigError, match="there is no such site; there are s"):
        shown({"s": one}).plot("u")


NOTEBOOK = """
import sys
from IPython.core.interactiveshell import InteractiveShell
sys.path[:0] = ['tests/compare']

shell = InteractiveShell.instance()
cells = ["from compared import comparison", "from scrapy_focus import Comparison"]
cells += ["c = Comparison.from_runs(comparison({'s': {'BFS': [40.0, 50.0]}}))"]
if sys.argv[1] == "pyplot":
    cells += ["import matplotlib; matplotlib.use('module://matplotlib_inline.backend_inline')"]
    cells += ["import matplotlib.pyplot as plt; figure = plt.figure(); plt.close('all')"]
cells += ["shown = c.plot()", "figures = len(plt.get_fignums()) if 'plt' in globals() else 0"]
assert all(shell.run_cell(cell).success for cell in cells)
formatted, metadata = shell.display_formatter.format(shell.user_ns["shown"])
print(sorted(formatted), "matplotlib.pyplot" in sys.modules, shell.user_ns["figures"])
"""


@pytest.mark.parametrize("style", ["plain", "pyplot"])
def test_ipython_formats_a_figure_as_one_picture(style: str) -> None:
    """With and without pyplot, the output of a cell has one PNG beside its text, and pyplot is not imported for it."""
    pytest.importorskip("IPython")
    pytest.importorskip("matplotlib_inline")
    done = subprocess.run(
        [sys.executable, "-c", NOTEBOOK, style], capture_output=True, text=True, timeout=HANG, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"['image/png', 'text/plain'] {style == 'pyplot'} 0"


def test_it_is_saved_as_the_command_saves_it(site: Path, tmp_path: Path) -> None:
    """The page and the numbers are written into a folder; the page names policies that its command cannot find."""
    policies = {"made": partial(Shortest, sign=-1), "BFS": "BFS"}
    found = compare(site, policies, seeds=1, processes=1, budget=50)
    page = found.save(tmp_path / "out", plots=False)
    assert page.name == "index.html"
    assert (tmp_path / "out" / "runs.csv").exists()
    assert "made is defined in a notebook or script. Move\nit into a module first" in page.read_text()
    again = compare(site, "BFS", seeds=1, processes=1, budget=50).save(tmp_path / "out", plots=False)
    assert "defined in a notebook" not in again.read_text()
