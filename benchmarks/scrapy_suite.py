"""Runs Scrapy's own tests with our scheduler, or our add-on, as Scrapy's default, and compares with stock Scrapy.

Each test that passes with stock Scrapy must pass with ours, except those in ``BY_DESIGN``, each of which has its reason.
Any other difference is a failure, and so is an entry that passes in a run of the whole suite: then it is to be removed.
Run it before a release, with a Python that has this package and the test requirements of Scrapy (the
section ``test-requirements`` of its ``tox.ini``)::

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

#: Globs of files about crawls; the others test functions that no scheduler meets.
FILES = (
    "test_addons.py", "test_closespider.py", "test_cmdline_crawl_with_pipeline/__init__.py", "test_command_*.py",
    "test_contracts.py", "test_core_*.py", "test_crawl*.py", "test_downloader*.py", "test_dupefilters.py",
    "test_engine*.py", "test_extension_*.py", "test_feedexport*.py", "test_log*.py", "test_middleware.py",
    "test_pipeline*.py", "test_poet.py", "test_request_*.py", "test_scheduler*.py", "test_signal*.py", "test_spider*.py",
    "test_stats.py", "test_utils_job.py", "test_utils_log.py", "test_utils_reactorless.py", "test_utils_request.py",
    "test_utils_spider.py", "test_zz_resources.py",
)  # fmt: skip

_DEFAULT = "it asserts that the default is Scrapy's own scheduler"
_IN_MEMORY = "what cannot be serialized is kept in memory, too; the log and the stats say so in other words"
_NO_QUEUES = "it deletes an attribute of Scrapy's scheduler, which ours does not have"
_PRIORITY = "the policy decides: priorities count with FOCUS_REQUEST_PRIORITY, and Scrapy's queues are not used"
_SCHEDULER = {
    "TestAddonManager::test_fallback_workflow": _DEFAULT,
    "test_engine_close_spider::test_exception_scheduler": _NO_QUEUES,
    "test_scheduler::test_unserializable_requests": _IN_MEMORY,
    "TestRequestSendOrder::test_default": _PRIORITY,
    "TestRequestSendOrder::test_lifo_start": _PRIORITY,
    "TestRequestSendOrder::test_shared_queues": _PRIORITY,
}
#: Tests that would fail, leave a crawl open, and let others fail that come later.
_LEFT_OUT = ("tests/test_engine_close_spider.py::test_exception_scheduler",)
_DROPPED = "requests for known URLs are dropped before they are scheduled"
_IPV6 = "an IPv6 address in a URL is crawled, too"
_KEPT = "a body that is not encoded as it says is kept as it came"
_MADE = "it makes pipelines without a crawler, which those of the add-on need"
_QUIET = "failed downloads are one line of the add-on for each kind, and Scrapy's line is logged at DEBUG"
#: Differences that are intended, as mode -> part of the name of a test -> reason.
BY_DESIGN: dict[str, dict[str, str]] = {
    "scheduler": _SCHEDULER,
    "addon": _SCHEDULER
    | {
        "TestDefaults::test_200_and_invalid_gzipped_body_must_fail": _KEPT,
        "TestEngine::test_crawler_dupefilter": _DROPPED,
        "test_ipv6_default_name_resolver": _IPV6,
        "TestCustomPipelineManager::test_integration_no_async_not_subclass": _MADE,
        "test_spider_errback_downloader_error": _QUIET,
    },
}


def outcomes(folder: Path, plugin: Path, mode: str, files: list[str]) -> dict[str, str]:
    """Run tests of Scrapy in one mode, and return what became of each: passed, skipped or failed."""
    report = plugin / f"{mode}.xml"
    env = os.environ | {
        "FOCUS_SUITE_MODE": mode,
        "PYTHONPATH": os.pathsep.join([str(plugin), str(Path(__file__).parents[1]), str(folder)]),
    }
    left_out = [] if mode == "stock" else [f"--deselect={name}" for name in _LEFT_OUT]
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout=300", "--continue-on-collection-errors",
         "-W", "ignore::pytest.PytestWarning",  # of a pytest that is newer than the suite
         f"--junitxml={report}", *left_out, *files],
        cwd=folder, env=env, check=False,
    )  # fmt: skip
    if not report.exists():
        sys.exit(f"pytest left no report in mode {mode}; its output says why")
    found = {}
    for case in ET.parse(report).iter("testcase"):
        kinds = {child.tag for child in case}
        kind = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
        found[f"{case.get('classname')}::{case.get('name')}"] = kind
    return found


def differences(stock: dict[str, str], ours: dict[str, str], by_design: dict[str, str]) -> tuple[list[str], list[str]]:
    """Return the tests that pass with stock Scrapy only and are not intended to, and intended ones that pass."""
    lost = [name for name, kind in stock.items() if kind == "passed" and ours.get(name) != "passed"]
    unexpected = [name for name in lost if not any(part in name for part in by_design)]
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
            unexpected, mended = differences(stock, outcomes(folder, plugin, mode, files), BY_DESIGN[mode])
            n_passed = sum(kind == "passed" for kind in stock.values())
            print(
                f"{mode}: {len(stock):,} tests, of which {n_passed:,} pass with stock Scrapy; unexpected differences: {len(unexpected)}"
            )
            print(*unexpected, sep="\n")
            if mended and not options.files:
                print("pass now, remove from BY_DESIGN:", *mended)
            status |= bool(unexpected or (mended and not options.files))
    return status


if __name__ == "__main__":
    sys.exit(main())
