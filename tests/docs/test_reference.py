"""The reference documents everything that exists, and nothing else."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any, get_args

import pytest
from scrapy.settings import Settings
from scrapy.utils.misc import load_object

import scrapy_focus
from scrapy_focus import Crawl, memory_frontier
from scrapy_focus.cluster.leader import Leader
from scrapy_focus.config import GONE, ROWS, SETTINGS, Config
from scrapy_focus.core.goal import ItemsGoal
from scrapy_focus.engine.browser.rules import Refusal
from scrapy_focus.engine.failure import FAILURES
from scrapy_focus.features import rows_of
from scrapy_focus.finders.files.pipelines import FIELDS
from scrapy_focus.finders.kit.arguments.credentials import PASSWORD
from scrapy_focus.lab.sites.portal.portal import StatisticsPortal
from scrapy_focus.lab.sites.server import SiteServer
from scrapy_focus.policies.orderings import BreadthFirst
from tests.docs.reference import (
    DOCS,
    PACKAGE,
    ROOT,
    documented_settings,
    documented_stats,
    labels,
    read,
    stats_in,
)
from tests.features.documented import documented_features
from tests.made import HANG

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy_focus.core.setting import Setting

FOLDERS = (
    "*.py",
    "engine/**/*.py",
    "features/*/*.py",
    "finders/news/watch_notes.py",
    "finders/kit/spiders/*.py",
    "core/*.py",
)
SOURCES = [path for folder in FOLDERS for path in sorted(PACKAGE.glob(folder))]
SOURCES += [PACKAGE / "cluster" / name for name in ("worker.py", "conversation.py", "leader.py")]
#: The existing settings, and those whose documentation is tested with their feature, whether it exists or not.
EXIST = sorted(row.name for row in (*ROWS.values(), *rows_of({})))
KNOWN = {*EXIST, *(name for feature in documented_features() for name in feature.settings)}


# Settings


def test_settings_page_is_complete() -> None:
    """Exactly the existing settings are documented, each once and completely."""
    titles = re.findall(r"^(FOCUS_\w+)\n-+$", read("reference/settings.rst"), re.MULTILINE)
    assert sorted(titles) == sorted(KNOWN)
    for name, fields in documented_settings().items():
        assert fields.keys() == {"Type", "Default", "Unit", "Change it"}, name


def test_pages_name_settings_that_exist() -> None:
    """No page mentions a setting that does not exist; the one environment variable of that form is known."""
    for page in [*DOCS.rglob("*.rst"), *ROOT.glob("*.rst")]:
        text = page.read_text()
        declared = set(re.findall(r'Setting\("(\w+)"', text))  # in an example
        gone = set(GONE) if page.name == "CHANGES.rst" else set()
        assert set(re.findall(r"\bFOCUS_(?!TEST_)[A-Z_]+[A-Z]\b", text)) <= {*KNOWN, *declared, *gone, PASSWORD}, page


@pytest.mark.parametrize("name", SETTINGS)
def test_documented_default_is_the_default(name: str) -> None:
    """A setting with its documented default has the same effect as without a value."""
    default = ast.literal_eval(documented_settings()[name]["Default"].strip("`"))
    unset = Config.from_settings(Settings(), load_object(_policy_default()))
    same = Config.from_settings(Settings({name: default}), load_object(_policy_default()))
    if name in ("FOCUS_GOAL", "FOCUS_STRUCTURED", "FOCUS_TARGETS", "FOCUS_TOPIC"):
        assert not default
        assert type(unset.goal) is type(same.goal) is ItemsGoal
        return
    fields = {"FOCUS_POLICY_PARAMS": "params", "FOCUS_COST_LIMIT": "stop"}
    field = fields.get(name, name.removeprefix("FOCUS_").lower())
    assert getattr(same, field) == getattr(unset, field)
    plain: Any = load_object(default) if name == "FOCUS_POLICY" else default
    if isinstance(plain, list):
        plain = type(getattr(unset, field))(plain)
    assert getattr(unset, field) == plain


def _policy_default() -> str:
    return ast.literal_eval(documented_settings()["FOCUS_POLICY"]["Default"].strip("`"))


def test_documented_policy_is_that_of_the_scheduler() -> None:
    """The scheduler of the add-on uses the documented policy by default."""
    settings = Settings()
    scrapy_focus.Addon().update_settings(settings)
    assert settings["SCHEDULER"] is scrapy_focus.FocusScheduler
    assert scrapy_focus.FocusScheduler.default_policy is load_object(_policy_default())


@pytest.mark.parametrize("row", rows_of({}), ids=lambda row: row.name)
def test_documented_default_of_a_feature_is_its_default(row: Setting[Any]) -> None:
    """The same holds for settings of features."""
    default = ast.literal_eval(documented_settings()[row.name]["Default"].strip("`"))
    assert row.of({row.name: default}) == row.of({}) == default


@pytest.mark.parametrize("row", [*ROWS.values(), *rows_of({})], ids=lambda row: row.name)
def test_the_page_says_what_the_row_says(row: Setting[Any]) -> None:
    """The default and the unit of each setting are those of its row."""
    fields = documented_settings()[row.name]
    default = ast.literal_eval(fields["Default"].strip("`"))
    if row.name == "FOCUS_POLICY":  # the page names that of the scheduler
        assert row.default is None
    elif isinstance(row.default, (frozenset, tuple)):
        assert type(row.default)(default) == row.default
    else:
        assert (default or None) == (row.default or None)
    assert fields["Unit"].startswith(row.unit)


def test_settings_are_read_by_their_rows() -> None:
    """No module reads a setting in another way, or with another default."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
                continue
            name = node.args[0].value if isinstance(node.args[0], ast.Constant) else None
            if isinstance(name, str) and name in KNOWN and node.func.attr.startswith("get"):
                is_bare = node.func.attr == "get" and len(node.args) == 1
                assert is_bare or node.func.attr == "getpriority", f"{path}:{node.lineno}"


# Stats


def raised_stats() -> set[str]:
    """Return every stat in the source, except those of features with separate tests."""
    apart = [PACKAGE / "features" / feature.name for feature in documented_features()]
    names, families = stats_in(path for path in SOURCES if path.parent not in apart)
    known = {"error/", "failure/", "outcome/", "trap/", "browser/refused/"}
    assert families == known, "another family of stats: teach this test what may be in it"
    refusals = {f"focus/browser/refused/{refusal}" for refusal in get_args(Refusal) if refusal}
    failures = {f"focus/failure/{kind}" for kind in FAILURES}
    crawl = Crawl(BreadthFirst(), frontier=memory_frontier, is_shared=True)
    names |= {f"focus/cluster/{name}" for name in Leader(crawl).news().counts}
    return names | refusals | failures | {f"focus/outcome/{label}" for label in labels()}


def test_stats_page_is_complete() -> None:
    """Exactly the stats in the source are documented, each once."""
    found = documented_stats()
    assert len(found) == len(set(found))
    of_features = {name for feature in documented_features() for name in feature.stats}
    assert set(found) == raised_stats() | of_features


def test_crawl_raises_documented_stats_only(tmp_path: Path) -> None:
    """The stats of a real crawl are documented, and the command on the first page works as described."""
    command = next(
        line.removeprefix("   $ ").split()
        for line in read("tutorials/files.rst").splitlines()
        if line.startswith("   $ focus files 127.0.0.1:8000")
    )
    assert command.pop(0) == "focus"
    out, stats = tmp_path / "found", tmp_path / "stats.json"
    (tmp_path / "dump.py").write_text(
        "import json, pathlib\n"
        "from scrapy.statscollectors import MemoryStatsCollector\n\n\n"
        "class Dump(MemoryStatsCollector):\n"
        "    def close_spider(self, *args, **kwargs):\n"
        f"        pathlib.Path({str(stats)!r}).write_text(json.dumps(self._stats, default=str))\n"
        "        super().close_spider(*args, **kwargs)\n"
    )
    with SiteServer(StatisticsPortal(pages=300, seed=0)) as server:
        command = [server.url if word.startswith("127.0.0.1") else word for word in command]
        done = subprocess.run(
            [
                sys.executable, "-m", "scrapy_focus", *command, "--budget", "150", "--out", str(out), "-L", "INFO",
                "-s", "STATS_CLASS=dump.Dump", "-s", "LOGSTATS_INTERVAL=0.1",
                "-s", f"FOCUS_LOG={tmp_path / 'log.jsonl.gz'}",
            ],
            cwd=ROOT / "example_project", env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}, capture_output=True,
            text=True, timeout=HANG, check=False,
        )  # fmt: skip
        requests = server.requests
    assert done.returncode == 0, done.stderr
    collected = json.loads(stats.read_text())
    focus = {name for name in collected if name.startswith("focus/")}
    assert {"focus/requests", "focus/reward", "focus/outcome/ok"} <= focus <= set(documented_stats())
    assert collected["finish_reason"] == "focus_budget_requests"
    assert collected["focus/requests"] == requests == 150
    assert collected["focus/selected"] == collected["focus/outcomes"] + collected.get("focus/released", 0)
    lines = [json.loads(line) for line in (out / "manifest.jsonl").read_text().splitlines()]
    assert len(lines) == collected["focus/reward"] > 0
    for line in lines:
        assert line.keys() == {*FIELDS, "why", "crawl", "at", "requests"}
        assert (out / line["path"]).stat().st_size == line["size"]
        assert re.match(r"\d+ clicks from a seed; |found on a seed; ", line["why"]), line["why"]
    assert re.search(
        r"scrapy_focus: policy BranchingBandit, goal files: csv, xlsx, each content once, budget 150 requests",
        done.stderr,
    )
    assert re.search(r"Finished \(focus_budget_requests\): 150 of 150 requests, \d+ files; per 100 req", done.stderr)


# API and names


def test_api_page_is_complete() -> None:
    """Every public name is documented once."""
    documented = re.findall(r"^\.\. auto\w+:: scrapy_focus\.(\w+)(?:\(.*\))?$", read("reference/api.rst"), re.MULTILINE)
    assert sorted(documented) == sorted(scrapy_focus.__all__)


@pytest.mark.parametrize("page", sorted(DOCS.glob("explanation/*.rst")), ids=lambda page: page.stem)
def test_systems_name_code_that_exists(page: Path) -> None:
    """``file.py::Class.method``, and ``file.py`` followed by names, refer to existing code."""
    text = page.read_text()
    named = re.findall(r"``([\w/]+)\.py::([\w.]+)``", text)
    assert named
    for path, qualname in named:
        found: Any = importlib.import_module(f"scrapy_focus.{path.replace('/', '.')}")
        for name in qualname.split("."):
            assert hasattr(found, name), f"{path}.py has no {qualname}"
            found = getattr(found, name)
    for path, names in re.findall(r"``([\w/]+)\.py``: ((?:``\w+``(?:, )?)+)", text):
        module = importlib.import_module(f"scrapy_focus.{path.replace('/', '.')}")
        for name in re.findall(r"\w+", names):
            assert hasattr(module, name), f"{path}.py has no {name}"


@pytest.mark.parametrize(
    ("page", "policy", "some"),
    [
        (
            "sb-classifier",
            "scrapy_focus.policies.tagpath.TagPath",
            ["theta", "n", "m", "w", "alpha", "batch", "classifier", "features", "case_sensitive"],
        ),
        ("branching-bandit", "scrapy_focus.policies.branching.BranchingBandit", None),
        ("foragers", "scrapy_focus.Foragers", None),
    ],
)
def test_tables_of_parameters_have_the_defaults_of_the_class(page: str, policy: str, some: list[str] | None) -> None:
    """Each parameter is in the table of its system with its default; for SB-CLASSIFIER, each one in the paper."""
    table = re.split(r"^   \* - (?:paper\n     - )?parameter\n", read(f"explanation/{page}.rst"), flags=re.MULTILINE)[1]
    rows = re.findall(
        r"^   (?:\* - \w+\n  )?(?:\* |  )- ``(\w+)``\n     - ``(.+)``$", table.split("\n\n")[0], re.MULTILINE
    )
    declared = inspect.signature(load_object(policy)).parameters
    assert [name for name, _ in rows] == (some or list(declared))
    for name, default in rows:
        assert eval(default) == declared[name].default, name


def test_foragers_are_documented_with_their_rules() -> None:
    """Each rule is listed with its algorithm and its default."""
    from scrapy_focus.policies.foragers.rules import Rules

    text = read("explanation/foragers.rst")
    rules = dict(re.findall(r"``(\w+)``\s+(\d+(?:\.\d+)?)", text.partition("The paper, line by line")[2]))
    for name, default in Rules()._asdict().items():
        assert f"``{name}``" in text
        assert isinstance(default, bool) or float(rules[name]) == default


DISTRICTS = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))


def test_the_map_names_all_districts() -> None:
    """The map has each folder of the package, in the order that import-linter enforces, and fits on one page."""
    text = read("project/design.rst")
    picture = text.partition(".. code-block:: text")[2].partition("The way of a link\n====")[0]
    assert sorted(set(re.findall(r"(?<![\w/])([a-z]+)/(?=\s)", picture.partition("A crawl with")[0]))) == DISTRICTS
    assert len(text.split()) <= 1500


@pytest.mark.parametrize("district", DISTRICTS)
def test_each_district_has_a_readme(district: str) -> None:
    """It states the purpose of the district, what it may import, and where to add code; it names existing files."""
    text = (PACKAGE / district / "README.rst").read_text()
    assert "*May import*" in text
    assert "**Where to add what**" in text
    for name in re.findall(r"``((?:[\w-]+/)*[\w-]+\.(?:py|rst|md))``", text):
        there = PACKAGE / district / name, PACKAGE / name, ROOT / name, *(PACKAGE / district).glob(f"*/{name}")
        assert any(path.exists() for path in there), name


def test_design_names_files_that_exist() -> None:
    """Each file named on the pages for maintainers exists in the package, the tests or the repository."""
    inside = "".join(page.read_text() for page in (DOCS / "project").glob("*.rst"))
    text = inside + (ROOT / "CONTRIBUTING.rst").read_text()
    named = set(re.findall(r"(?<![\w/.])((?:[a-z_]+/)+[a-z_]+\.py)\b", text))
    assert len(named) > 20
    missing = [name for name in sorted(named) if not ((ROOT / name).is_file() or (PACKAGE / name).is_file())]
    assert not missing
