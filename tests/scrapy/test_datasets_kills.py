"""The spider ``datasets`` of the example project stores, lists and counts each file once, however often it is killed."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from forked import Forked
from forked import run as run_forked
from scrapy.exceptions import DropItem

from scrapy_focus.lab.sites.portal.portal import StatisticsPortal
from scrapy_focus.lab.sites.server import SiteServer
from tests.made import HANG

if TYPE_CHECKING:
    from collections.abc import Callable

PROJECT = Path(__file__).parents[2] / "example_project"

DUMP = """
import json, pathlib
from scrapy.statscollectors import MemoryStatsCollector

class Dump(MemoryStatsCollector):
    def close_spider(self, *args, **kwargs):
        pathlib.Path({path!r}).write_text(json.dumps(self._stats, default=str))
        super().close_spider(*args, **kwargs)
"""

STORE = """
import json, os, signal, sys
from pathlib import Path
from scrapy_focus.finders.kit.spiders.items import DataFile
from scrapy_focus.finders.files.pipelines import StoreFiles

out, step = Path(sys.argv[1]), sys.argv[2]
die = lambda: os.kill(os.getpid(), signal.SIGKILL)

def dying(function, after):
    def wrapped(*args, **kwargs):
        result = function(*args, **kwargs) if after else None
        die()
    return wrapped

def half(path, data):
    with path.open("wb") as file:
        file.write(data[: len(data) // 2])
    die()

def half_a_line(self, *args):
    with self.manifest.open("a") as file:
        file.write('{"url": "http://x/2", "sha')
    die()

pipeline = StoreFiles(out)
pipeline.open_spider()
make = lambda n: DataFile(url=f"http://x/{n}", mime="text/csv", size=1, page="", anchor="", name=f"{n}.csv", body=b"%d" % n * 99)
pipeline.process_item(make(1))
if step == "mkdir":
    Path.mkdir = dying(Path.mkdir, True)
elif step == "write":
    Path.write_bytes = half
elif step == "written":
    Path.rename = dying(Path.rename, False)
elif step == "renamed":
    Path.rename = dying(Path.rename, True)
elif step == "half a line":
    StoreFiles.note = half_a_line
else:
    StoreFiles.note = dying(StoreFiles.note, True)
pipeline.process_item(make(2))
"""


def check(out: Path) -> list[dict[str, Any]]:
    """Fail unless stored files are intact, with one line each in the manifest; return the manifest."""
    lines: list[dict[str, Any]] = [json.loads(line) for line in (out / "manifest.jsonl").read_text().splitlines()]
    assert len({line["sha256"] for line in lines}) == len(lines)
    assert {line["path"] for line in lines} == {
        path.relative_to(out).as_posix() for path in (out / "files").rglob("*") if path.is_file()
    }
    for line in lines:
        assert hashlib.sha256((out / line["path"]).read_bytes()).hexdigest() == line["sha256"]
    return lines


@pytest.mark.parametrize("step", ["mkdir", "write", "written", "renamed", "half a line", "listed"])
def test_killed_while_it_stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """At whatever step a kill comes, the repeated file is stored and listed once, and its copies are dropped."""
    done = run_forked([sys.executable, "-c", STORE, str(tmp_path), step], cwd=PROJECT)
    assert done.returncode == -signal.SIGKILL
    monkeypatch.syspath_prepend(str(PROJECT))
    from scrapy_focus.finders.files.pipelines import StoreFiles
    from scrapy_focus.finders.kit.spiders.items import DataFile

    def make(url: int, content: int) -> DataFile:
        return DataFile(
            url=f"http://x/{url}", mime="text/csv", size=1, page="", anchor="", name=f"{url}.csv",
            body=b"%d" % content * 99,
        )  # fmt: skip

    pipeline = StoreFiles(tmp_path, resumed=True)
    pipeline.open_spider()
    assert not list((tmp_path / "files").glob(".*"))
    item = pipeline.process_item(make(2, 2))
    assert item.path == "files/x/top/2.csv"
    assert (tmp_path / item.path).read_bytes() == b"2" * 99
    assert item.content == b""
    for url, content in ((3, 1), (4, 2)):
        with pytest.raises(DropItem, match=f"http://x/{url} is a copy of .*{content}.csv"):
            pipeline.process_item(make(url, content))
    assert len((tmp_path / ".focus/copies.jsonl").read_text().splitlines()) == 2
    pipeline.process_item(make(5, 5))
    assert [line["url"] for line in check(tmp_path)] == [f"http://x/{n}" for n in (1, 2, 5)]


def test_a_new_crawl_with_the_same_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file listed by an earlier crawl is an item of the next one, with a line; a resumed one adds no further line."""
    monkeypatch.syspath_prepend(str(PROJECT))
    from scrapy_focus.finders.files.pipelines import StoreFiles
    from scrapy_focus.finders.kit.spiders.items import DataFile

    for crawl, resumed, states in ((1, False, ["new"]), (2, False, ["new", "same"]), (2, True, ["new", "same"])):
        pipeline = StoreFiles(tmp_path / "out", resumed=resumed, crawl=crawl)
        pipeline.open_spider()
        item = DataFile(url="http://x/ä", mime="", size=1, page="", anchor="ä\n\u2028", name="a", body=b"1")
        stored = pipeline.process_item(item)
        assert (tmp_path / "out" / stored.path).read_bytes() == b"1"
        lines = [json.loads(line) for line in (tmp_path / "out/manifest.jsonl").open()]
        assert [line["anchor"] for line in lines] == ["ä\n\u2028"] * len(states)
        assert [line["state"] for line in lines] == states
        assert stored.state == states[-1]
    other = {"not": "a file"}
    assert pipeline.process_item(other) is other


class Crawls:
    """Runs of one job of the spider, in separate processes."""

    def __init__(self, server: SiteServer, folder: Path) -> None:
        self.server = server
        self.folder = folder
        folder.mkdir()
        self.out = folder / "out"
        (folder / "dump.py").write_text(DUMP.format(path=str(folder / "stats.json")))
        settings = {
            "JOBDIR": folder / "job", "DOWNLOAD_DELAY": 0, "CONCURRENT_REQUESTS_PER_DOMAIN": 8, "STATS_CLASS": "dump.Dump",
            "TELNETCONSOLE_ENABLED": False, "REMOTE_CONTROL_ENABLED": False, "FOCUS_PROGRESS": "off", "FOCUS_SEED": 1,
        }  # fmt: skip
        self.command = [sys.executable, "-m", "scrapy", "crawl", "datasets", "-a", f"root={server.url}"]
        self.command += ["-a", f"out={self.out}"]
        for name, value in settings.items():
            self.command += ["-s", f"{name}={value}"]

    def run(self, until: Callable[[], bool] | None = None, how: int = signal.SIGKILL) -> int:
        """Run to the end, or until something is so; return the exit status."""
        env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(self.folder), str(PROJECT.parent)])}
        with (self.folder / "log").open("ab") as log:
            process = Forked(self.command, cwd=PROJECT, env=env, stderr=log, stdout=log)
            try:
                while until is not None and process.poll() is None and not until():
                    time.sleep(0.002)
                if until is not None:
                    process.send_signal(how)
                return process.wait(HANG)
            finally:
                process.kill()

    def lines(self) -> int:
        """How many lines the manifest has."""
        manifest = self.out / "manifest.jsonl"
        return manifest.read_bytes().count(b"\n") if manifest.exists() else 0

    def stats(self) -> dict[str, Any]:
        """Return the stats of the last completed run."""
        stats: dict[str, Any] = json.loads((self.folder / "stats.json").read_text())
        return stats


@pytest.mark.parametrize(
    ("how", "times"),
    [
        pytest.param(signal.SIGTERM, 1, marks=pytest.mark.slow, id="stopped"),
        pytest.param(signal.SIGKILL, 2, id="killed"),
    ],
)
def test_each_file_once(tmp_path: Path, how: int, times: int) -> None:
    """A job that is stopped or killed again and again finds all there is: each file whole, once, listed once and counted once."""
    portal = StatisticsPortal(pages=200, seed=0, endless=False)
    expected = {hashlib.sha256(portal.fetch(path).body).hexdigest() for path in portal.targets()}
    assert 30 < len(expected) < portal.n_targets
    with SiteServer(portal, latency=0.004) as server:
        job = Crawls(server, tmp_path / "job")
        for i in range(times):
            more = job.lines() + 1 + 2 * i
            job.run(lambda more=more: job.lines() >= more, how)  # type: ignore[misc]
            begin = server.requests
            job.run(lambda begin=begin, i=i: server.requests >= begin + 5 + 20 * i, how)  # type: ignore[misc]
        assert job.run() == 0
    lines = check(job.out)
    assert {line["sha256"] for line in lines} == expected
    assert job.stats()["focus/reward"] == len(lines)
    assert "Traceback" not in (job.folder / "log").read_text()
