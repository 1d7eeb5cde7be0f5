"""Crawls of hostile sites: run one, and hold what it left against the bounds."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import unicodedata
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faultserver import FaultServer
from scenarios import FORGED, GOOD, INSIDE, OUTSIDE, SCENARIOS, Scenario

from scrapy_focus.engine.ending import STATUS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from faultserver import Asked

HERE = Path(__file__).parent
PROJECT = HERE.parents[1] / "example_project"
MEMORY = 300_000_000  # bytes that are resident at most
CPU = 0.5  # seconds a page
HELD = 0.1  # seconds of CPU for which our own code blocks the event loop, at most
SEED = 1
SETTINGS = {
    "TELNETCONSOLE_ENABLED": 0, "REMOTE_CONTROL_ENABLED": 0, "DOWNLOAD_DELAY": 0, "LOGSTATS_INTERVAL": 1,
    "DOWNLOAD_TIMEOUT": 20, "FOCUS_PROGRESS": "log", "FOCUS_SEED": SEED, "JOBDIR": "job", "LOG_LEVEL": "INFO",
}  # fmt: skip
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_RECORD = re.compile(r"(?m)^(?=\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \[)")  # where a record of a log begins
_ERROR = re.compile(r"\S+ \S+ \[(scrapy_focus|focused|datasets|topic)[\w.]*\] (ERROR|CRITICAL)")
_FRAME = re.compile(r"(scrapy_focus|focused)/\S+\.py\", line|never retrieved")


class Nursery:
    """Starts commands, one at a time, and measures them; to be closed."""

    def __init__(self) -> None:
        path = os.pathsep.join(filter(None, [str(HERE), str(PROJECT), os.environ.get("PYTHONPATH")]))
        quiet = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": path}
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "measured.py")],
            env={**os.environ, **quiet},
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.slowness: float = self._read()["slowness"]

    def __enter__(self) -> Nursery:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def run(self, command: list[str], folder: Path, environment: dict[str, str]) -> dict[str, Any]:
        """Run a command of Scrapy in a folder, and return what was measured."""
        self._process.stdin.write(
            json.dumps({"command": command, "folder": str(folder), "environment": environment}) + "\n"
        )
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> dict[str, Any]:
        line = self._process.stdout.readline()
        assert line, "the process that runs the crawls is gone"
        return json.loads(line)


@dataclass
class Crawled:
    """The results and costs of a crawl."""

    scenario: Scenario
    spider: str
    folder: Path
    asked: list[Asked]
    measured: dict[str, Any]
    outputs: dict[str, str] = field(default_factory=dict)  # of the commands that look at its JOBDIR
    slowness: float = 1.0

    @property
    def pages(self) -> int:
        return max(1, len(self.asked))

    @property
    def cpu(self) -> float:
        """CPU seconds a page, on a machine of 2024."""
        return float(self.measured["cpu"]) / self.pages / self.slowness

    @property
    def memory(self) -> int:
        """Bytes that were resident at most."""
        return int(self.measured["memory"])

    @property
    def held(self) -> float:
        """For how many CPU seconds our own code held the loop at most, on a machine of 2024."""
        return float(self.measured.get("held", 0.0)) / self.slowness

    def texts(self) -> Iterator[tuple[str, str]]:
        """Yield each text that the crawl, or a command that looks at it, showed or wrote for readers."""
        yield from self.outputs.items()
        for name in ("stdout", "stderr", "items.jsonl", "log.jsonl", "out/manifest.jsonl", "out/skipped.jsonl"):
            path = self.folder / name
            if path.exists():
                yield name, path.read_bytes().decode("utf-8", "surrogateescape")

    def found(self) -> set[int]:
        """Return which of the five good things were found."""
        name = "out/manifest.jsonl" if self.spider == "datasets" else "items.jsonl"
        path = self.folder / name
        urls = [json.loads(line)["url"] for line in path.read_bytes().splitlines()] if path.exists() else []
        return {n for n in GOOD for url in urls if url.startswith(f"{self.scenario.root}good/{n}.")}

    def failures(self, noise: float = 1.0) -> list[str]:
        """Return the violated bounds; ``noise`` is the factor of CPU time due to other processes in the caches."""
        return [*self._not_found(), *self._beyond(noise), *self._left_site(), *self._wrote()]

    def _not_found(self) -> Iterator[str]:
        status = self.measured["status"]
        if status not in (STATUS["found"], STATUS["budget"]):
            yield f"it ended with status {status}"
        if lost := set(GOOD) - self.found():
            yield f"{len(lost)} of {len(GOOD)} good things were not found"

    def _beyond(self, noise: float) -> Iterator[str]:
        if self.memory > MEMORY:
            yield f"{self.memory / 1e6:.0f} MB were resident"
        if self.cpu > CPU * noise:
            yield f"{self.cpu:.2f} s of CPU a page ({self.pages} pages)"
        if self.held > HELD * noise:
            yield f"the loop was held for {self.held:.2f} s, in {self.measured['where']}"
        if len(self.asked) > self.scenario.budget:
            yield f"{len(self.asked)} requests came, of a budget of {self.scenario.budget}"
        counted = self.measured.get("stats", {}).get("focus/requests", 0)
        if counted < len(self.asked):
            yield f"{counted} requests were counted, of {len(self.asked)} that came"

    def _left_site(self) -> Iterator[str]:
        for asked in self.asked:
            if asked.host in INSIDE or asked.host.startswith("0x") or asked.method not in ("GET", "HEAD"):
                yield f"{asked.method} {asked.host}{asked.path[:60]} was asked for"
            elif self.spider != "topic" and asked.host == OUTSIDE:
                yield f"another host was asked for {asked.path[:60]}"

    def _wrote(self) -> Iterator[str]:
        allowed = {"stdout", "stderr", "items.jsonl", "log.jsonl", "job", "out"}
        for path in {path.name for path in self.folder.iterdir()} - allowed:
            yield f"it wrote {path!r}"
        for path in (Path("/tmp/evil-file"), *self.folder.parent.glob("*evil-file*")):
            if path.exists():
                yield f"it wrote {path}"
        for name, text in self.texts():
            if odd := unprintable(text):
                yield f"{name} has {odd}"
            if re.search(rf"(?m)^{re.escape(FORGED)}", text):
                yield f"{name} has a line that the site wrote"
        yield from self._failed()

    def _failed(self) -> Iterator[str]:
        """Yield the log lines about failures of ours; Scrapy's tracebacks of failed downloads contain our code, too."""
        for record in _RECORD.split((self.folder / "stderr").read_text(errors="replace")):
            if _ERROR.match(record) or (_FRAME.search(record) and "ERROR: Error downloading" not in record[:100]):
                lines = record.strip().splitlines()
                yield f"the log says: {lines[0][:200]} .. {lines[-1][:200]}"


def unprintable(text: str) -> str:
    """Return the control characters of a text, with the first of them in context."""
    for n, character in enumerate(text):
        if character in "\n\t":
            continue
        if character in _BIDI or unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp"):
            return f"U+{ord(character):04X} in {text[max(0, n - 40) : n + 20]!r}"
    return ""


def crawl(
    nursery: Nursery,
    server: FaultServer,
    scenario: Scenario,
    spider: str,
    folder: Path,
    terminal: dict[str, str] | None = None,
    **settings: Any,
) -> Crawled:
    """Crawl the host of a scenario, in a folder that is made for it; ``terminal``: environment that claims one."""
    folder.mkdir(parents=True)
    server.forget()
    arguments = {
        "datasets": [f"root={scenario.root}", "out=out", f"budget={scenario.budget}"],
        "topic": [f"seeds={scenario.root}", "keywords=bees,honey,hive", "out=items.jsonl", f"budget={scenario.budget}"],
    }
    ours = spider in arguments
    given = {
        **SETTINGS,
        **scenario.settings,
        **({} if ours else scenario.limits),
        "FOCUS_BUDGET_REQUESTS": scenario.budget,
        **settings,
    }
    command = ["crawl", spider, *([] if ours else ["-o", "items.jsonl"])]
    command += [word for argument in arguments.get(spider, [f"root={scenario.root}"]) for word in ("-a", argument)]
    command += [word for name, value in given.items() for word in ("-s", f"{name}={value}")]
    environment = {
        "SCRAPY_SETTINGS_MODULE": "focused.settings" if ours else "stock.settings",
        "http_proxy": server.address, "https_proxy": server.address, "no_proxy": "",
    }  # fmt: skip
    measured = nursery.run(command, folder, {**environment, **(terminal or {})})
    crawled = Crawled(scenario, spider, folder, list(server.log), measured, slowness=nursery.slowness)
    for look in ("focus-status", "focus-check"):
        crawled.outputs[look] = _look(nursery, look, folder, environment)
    return crawled


def _look(nursery: Nursery, command: str, folder: Path, environment: dict[str, str]) -> str:
    if not (folder / "job").exists():
        return ""
    room = folder.parent / f"{folder.name}-{command}"
    room.mkdir()
    nursery.run([command, str(folder / "job")], room, environment)
    return (room / "stdout").read_bytes().decode("utf-8", "surrogateescape")


def serve_all() -> FaultServer:
    """Return a server of all scenarios."""
    return FaultServer({scenario.host: scenario for scenario in SCENARIOS})
