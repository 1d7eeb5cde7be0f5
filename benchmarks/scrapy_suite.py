"""Runs Scrapy's own tests with our scheduler, or our add-on, as Scrapy's default, and compares with stock Scrapy.

Each test that passes with stock Scrapy must pass with ours, except those in ``BY_DESIGN`` and ``BY_CHANCE``, each of
which has its reason. Any other difference is a failure, and so is a test of ``BY_DESIGN`` that passes in a run of the
whole suite: then it is to be removed. A test that fails is tried again twice, and those that need the Internet are
skipped. Run it before a release, with a Python that has this package and the test requirements of Scrapy (the section
``test-requirements`` of its ``tox.ini``) and pytest-rerunfailures; it takes half an hour::

    python benchmarks/scrapy_suite.py [--sdist scrapy-2.19.0.tar.gz] [--modes scheduler,addon] [FILE...]

Without ``--sdist``, pip downloads the source distribution of the Scrapy that is installed. Files are named as in it
(``tests/test_crawl.py``); the default is all files about crawls. Processes that tests start use the same defaults: a
``sitecustomize`` changes them wherever Scrapy is imported.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from xml.etree import ElementTree as ET

import scrapy

_PLUGIN = """
import importlib.abc, importlib.util, os, sys

NAME, MODE = "scrapy.settings.default_settings", os.environ.get("FOCUS_SUITE_MODE", "stock")

class Loader(importlib.abc.Loader):
    def __init__(self, inner):
        self.inner = inner
    def create_module(self, spec):
        return self.inner.create_module(spec)
    def exec_module(self, module):
        self.inner.exec_module(module)
        if MODE == "scheduler":
            module.SCHEDULER = "scrapy_focus.FocusScheduler"
        else:
            module.ADDONS = {"scrapy_focus.Addon": 500}

class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != NAME:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        spec.loader = Loader(spec.loader)
        return spec

if MODE != "stock":
    sys.meta_path.insert(0, Finder())
"""

#: Warnings of newer versions of pytest about how these tests are written; Scrapy's configuration makes errors of them.
_NEWER_PYTEST = ("Session-scoped fixtures defined as instance methods", "fixture 'dh' is wrapped by @staticmethod")

#: A test that deletes an attribute which only Scrapy's scheduler has. With ours it fails halfway and leaves its crawl
#: open, which later tests notice, so it is not run.
_LEAVES_OPEN = "tests/test_engine_close_spider.py::test_exception_scheduler"

#: Globs of files about crawls; the others test functions that no scheduler meets.
FILES = (
    "test_addons.py", "test_closespider.py", "test_cmdline_crawl_with_pipeline/__init__.py", "test_command_*.py",
    "test_contracts.py", "test_core_*.py", "test_crawl*.py", "test_downloader*.py", "test_dupefilters.py",
    "test_engine*.py", "test_extension_*.py", "test_feedexport*.py", "test_log*.py", "test_middleware.py",
    "test_pipeline*.py", "test_poet.py", "test_request_*.py", "test_scheduler*.py", "test_signal*.py", "test_spider*.py",
    "test_stats.py", "test_utils_job.py", "test_utils_log.py", "test_utils_reactorless.py", "test_utils_request.py",
    "test_utils_spider.py", "test_zz_resources.py",
)  # fmt: skip

_IN_MEMORY = "what cannot be serialized is kept in memory, too; the log says so in other words"
_PRIORITY = "the policy decides what comes next; priorities count with FOCUS_REQUEST_PRIORITY, and then it passes"
_QUEUES = "it sets the class of Scrapy's queue of start requests, and our scheduler has no such queues"
_BOTH = {
    "test_engine_close_spider::test_exception_scheduler": "it deletes an attribute that only Scrapy's scheduler has",
    "test_scheduler::test_unserializable_requests": _IN_MEMORY,
    "TestRequestSendOrder::test_default": _PRIORITY,
    "TestRequestSendOrder::test_lifo_start": _QUEUES,
    "TestRequestSendOrder::test_shared_queues": _QUEUES,
}
_QUIET = "failed downloads are one line of the add-on for each kind, and Scrapy's line is logged at DEBUG"
#: Differences that are intended, as mode -> part of the name of a test -> reason.
BY_DESIGN: dict[str, dict[str, str]] = {
    "scheduler": _BOTH
    | {"TestAddonManager::test_fallback_workflow": "it asserts that Scrapy's scheduler is the default; ours is here"},
    "addon": _BOTH
    | {
        "test_spider_errback_downloader_error": _QUIET,
        "TestEngine::test_crawler_dupefilter": "links to known URLs are dropped before Scrapy sends signals about them",
        "test_200_and_invalid_gzipped_body_must_fail": "a body that is not encoded as its header says is kept as it came",
        "test_ipv6_default_name_resolver": "the add-on's resolver accepts an IPv6 address",
        "test_integration_no_async_not_subclass": "it makes all pipelines without a crawler, which ours needs",
    },
}
#: Tests that pass or fail as the policy draws: neither is a failure.
BY_CHANCE = {
    "TestRequestSendOrder::test_lazy": "the policy draws between a start request and a link of a page; both are new",
}
_LONGEST = 200  # characters of the reason of a failure


def outcomes(folder: Path, plugin: Path, mode: str, files: list[str]) -> dict[str, str]:
    """Run tests of Scrapy in one mode, and return the result of each: passed, skipped, or why it failed."""
    report = plugin / f"{mode}.xml"
    env = os.environ | {
        "FOCUS_SUITE_MODE": mode,
        # the folder of Scrapy comes before ours: both have a package named tests
        "PYTHONPATH": os.pathsep.join([str(plugin), str(folder), str(Path(__file__).parents[1])]),
    }
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rfER", "-p", "no:cacheprovider", "--timeout=120", "--reruns=2",
         "-m", "not requires_internet", "--continue-on-collection-errors", f"--junitxml={report}",
         *(f"-Wignore:{each}" for each in _NEWER_PYTEST), *([] if mode == "stock" else [f"--deselect={_LEAVES_OPEN}"]),
         *files],
        cwd=folder, env=env, check=False,
    )  # fmt: skip
    if not report.exists():
        sys.exit(f"pytest left no report in mode {mode}; its output says why")
    found = {}
    for case in ET.parse(report).iter("testcase"):  # one that was tried again comes once more, and the last counts
        kind = "passed"
        for child in case:
            if child.tag in ("failure", "error"):
                kind = "failed: " + " ".join((child.get("message") or "").split())[:_LONGEST]
            elif child.tag == "skipped":
                kind = "skipped"
        found[f"{case.get('classname')}::{case.get('name')}"] = kind
    return found


def passed(found: dict[str, str]) -> int:
    """Return how many tests passed."""
    return sum(kind == "passed" for kind in found.values())


def differences(stock: dict[str, str], ours: dict[str, str], by_design: dict[str, str]) -> tuple[list[str], list[str]]:
    """Return the tests that pass with stock Scrapy only and are not intended to, and intended ones that pass."""
    lost = [name for name, kind in stock.items() if kind == "passed" and ours.get(name) != "passed"]
    unexpected = [name for name in lost if not any(part in name for part in (*by_design, *BY_CHANCE))]
    mended = [part for part in by_design if not any(part in name for name in lost)]
    return unexpected, mended


def main() -> int:
    """Compare, and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("files", nargs="*")
    parser.add_argument("--sdist", type=Path, help="source distribution of Scrapy (default: pip downloads it)")
    parser.add_argument("--modes", default="scheduler,addon", help="(default: %(default)s)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        plugin = Path(name)
        (plugin / "sitecustomize.py").write_text(_PLUGIN)
        sdist = options.sdist
        if sdist is None:
            subprocess.run(
                [sys.executable, "-m", "pip", "download", "--quiet", "--no-binary", "scrapy", "--no-deps",
                 f"scrapy=={scrapy.__version__}", "--dest", name],
                check=True,
            )  # fmt: skip
            [sdist] = plugin.glob("*.tar.gz")
        with tarfile.open(sdist) as archive:
            archive.extractall(plugin, filter="data")
        [folder] = plugin.glob("[Ss]crapy-*/")
        files = options.files or sorted(
            {str(path.relative_to(folder)) for each in FILES for path in (folder / "tests").glob(each)}
        )
        stock = outcomes(folder, plugin, "stock", files)
        status = 0
        for mode in options.modes.split(","):
            ours = outcomes(folder, plugin, mode, files)
            unexpected, mended = differences(stock, ours, BY_DESIGN[mode])
            print(f"\n{mode}: {passed(ours):,} tests passed, with stock Scrapy {passed(stock):,}")
            print(f"unexpected differences: {len(unexpected)}")
            for each in unexpected:
                print(f"{each}: {ours.get(each, 'not run')}")
            if mended and not options.files:
                print("pass now, remove from BY_DESIGN:", *mended)
            status |= bool(unexpected or (mended and not options.files))
    return status


if __name__ == "__main__":
    sys.exit(main())
