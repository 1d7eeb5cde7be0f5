"""Runs commands of Scrapy in forks of a process that has imported everything, and measures them.

Measured are: the status; the highest resident memory; CPU seconds since the start of the crawl; and the longest time
for which our own code blocks the event loop in one turn. The last is CPU time of the thread in turns of the loop, so
that it is the same on a busy machine. Our own code is everything below the methods of our components and of the example
project's. The time of Scrapy and lxml to inflate, decode and parse a page for any spider is not included.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import os
import resource
import sys
import time
from collections import deque
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

from scrapy.settings.default_settings import DOWNLOADER_MIDDLEWARES_BASE, EXTENSIONS_BASE, SPIDER_MIDDLEWARES_BASE
from scrapy.utils.misc import load_object, walk_modules_iter

from scrapy_focus.finders.kit.page.frame import made_environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

OURS = (
    "scrapy_focus.scheduler", "scrapy_focus.schedulers", "scrapy_focus.spidermiddlewares", "scrapy_focus.downloadermiddlewares",
    "scrapy_focus.engine.seen", "scrapy_focus.extensions", "scrapy_focus.pipelines", "scrapy_focus.engine.inflight", "scrapy_focus.engine.turns",
    "scrapy_focus.finders.kit.spiders.middlewares", "scrapy_focus.finders.files.pipelines", "scrapy_focus.finders.files.spider", "scrapy_focus.finders.topic.spider",
)  # fmt: skip
BEFORE = (
    "scrapy_focus.finders.files.spider", "scrapy_focus.finders.topic.spider", "scrapy_focus.finders.files.pipelines", "scrapy_focus.addon", "scrapy_focus.scheduler",
    "sklearn.linear_model", "scrapy.cmdline", "scrapy.commands.crawl", "scrapy.core.downloader.handlers.http11", "scrapy_focus.commands.status",
    "scrapy_focus.commands.check", "scrapy_focus.jobs.doctor.check", "scrapy_focus.jobs.doctor.status", "scrapy_focus.policies.treeq",
    "scrapy_focus.policies.branching", "scrapy_focus.policies.tagpath", "rich.panel", "rich.live", "stock.spiders",
    "aiohttp.web", "scrapy.core.downloader.handlers._aiohttp", "tldextract", "jinja2", "focused.spiders.datasets",
)  # fmt: skip
_ENDS = (
    "open",
    "close",
    "open_spider",
    "close_spider",
    "spider_opened",
    "spider_closed",
)  # before and after a crawl
_LOOPS = 400_000
_NOMINAL = 0.02  # CPU seconds that they take on a machine of 2024


class Turns:
    """Notes how long our own code takes of each turn of the event loop, in CPU seconds of its thread."""

    def __init__(self) -> None:
        self.longest = 0.0
        self.where: dict[str, float] = {}  # of the longest turn
        self.counting = False
        self._own: dict[str, float] = {}
        self._inside = ""

    def watch(self) -> None:
        """Watch all turns from now on, and the calls of everything that is imported by now."""
        for name in OURS:
            try:
                module = import_module(name)
            except ModuleNotFoundError:
                continue
            for thing in vars(module).values():
                if inspect.isclass(thing) and thing.__module__ == name:
                    self._watch_class(thing)
        self._leave_out()
        run = asyncio.Handle._run

        def turn(handle: asyncio.Handle) -> None:
            run(handle)
            if self._own:
                total = sum(self._own.values())
                if self.counting and total > self.longest:
                    self.longest, self.where = total, dict(self._own)
                self._own.clear()

        asyncio.Handle._run = turn  # type: ignore[method-assign]

    def _watch_class(self, cls: type) -> None:
        for name, value in list(vars(cls).items()):
            waits = inspect.iscoroutinefunction(value) or inspect.isasyncgenfunction(value)
            if isinstance(value, FunctionType) and not name.startswith("__") and not waits:
                setattr(cls, name, self._watched(value))

    def _watched(self, call: Callable[..., Any]) -> Callable[..., Any]:
        name = call.__qualname__

        def timed(*args: Any, **kwargs: Any) -> Any:
            return call(*args, **kwargs) if self._inside else self._time(name, call, *args, **kwargs)

        @functools.wraps(call)
        def stepped(*args: Any, **kwargs: Any) -> Iterator[Any]:
            steps = call(*args, **kwargs)
            end = object()
            while (value := next(steps, end) if self._inside else self._time(name, next, steps, end)) is not end:
                yield value

        return stepped if inspect.isgeneratorfunction(call) else _like(call, timed)

    def _time(self, name: str, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self._inside = name
        begun = time.thread_time()
        try:
            return call(*args, **kwargs)
        finally:
            if name.rpartition(".")[2] not in _ENDS:
                self._own[name] = self._own.get(name, 0.0) + time.thread_time() - begun
            self._inside = ""

    def _leave_out(self) -> None:
        from parsel import selector
        from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware as Compression
        from scrapy.http import TextResponse

        selector.create_root_node = self._without(selector.create_root_node)
        TextResponse.text = property(self._without(TextResponse.text.fget))  # type: ignore[method-assign,assignment]
        Compression.process_response = self._without(Compression.process_response)  # type: ignore[method-assign]

    def _without(self, call: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(call)
        def timed(*args: Any, **kwargs: Any) -> Any:
            name, begun = self._inside, time.thread_time()
            try:
                return call(*args, **kwargs)
            finally:
                if name:
                    self._own[name] = self._own.get(name, 0.0) - (time.thread_time() - begun)

        return timed


def _like(call: Callable[..., Any], timed: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``timed`` with the parameters of ``call``, from which signals derive the arguments of a receiver."""
    parameters = inspect.signature(call).parameters.values()
    if not all(each.kind is each.POSITIONAL_OR_KEYWORD for each in parameters):
        return functools.wraps(call)(timed)
    names, made = ", ".join(each.name for each in parameters), {"timed": timed}
    exec(f"def like({names}): return timed({names})", made)
    like = functools.wraps(call)(made["like"])
    like.__defaults__ = call.__defaults__  # type: ignore[attr-defined]
    return like


def serve() -> None:
    """Run commands in forks, as requested on stdin, a line of JSON each; print the measurements likewise."""
    for name in BEFORE:
        import_module(name)
    for package in ("scrapy.commands", "scrapy_focus.commands", "scrapy_focus.finders", "scrapy_focus.lab.commands"):
        deque(walk_modules_iter(package), maxlen=0)
    for components in (EXTENSIONS_BASE, DOWNLOADER_MIDDLEWARES_BASE, SPIDER_MIDDLEWARES_BASE):
        deque(map(load_object, components), maxlen=0)
    templates = made_environment()
    for name in templates.list_templates(extensions=["jinja", "css", "js"]):
        templates.get_template(name)
    print(json.dumps({"slowness": slowness()}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        report = Path(asked["folder"], "measured.json")
        pid = os.fork()
        if pid == 0:
            status = 70
            try:
                status = _run(report=report, **asked)
            finally:
                os._exit(status)
        _, status, used = os.wait4(pid, 0)
        said = json.loads(report.read_text()) if report.exists() else {}
        report.unlink(missing_ok=True)
        unit = 1 if sys.platform == "darwin" else 1024
        cpu = used.ru_utime + used.ru_stime - said.get("cpu_before", 0.0)
        print(
            json.dumps(
                {**said, "status": os.waitstatus_to_exitcode(status), "memory": used.ru_maxrss * unit, "cpu": cpu}
            ),
            flush=True,
        )


def slowness() -> float:
    """Return how many times slower this machine computes than one of 2024, at least 1."""
    begun, total = time.process_time(), 0
    for n in range(_LOOPS):
        total += n & 7
    return max(1.0, (time.process_time() - begun) / _NOMINAL)


def _run(command: list[str], folder: str, environment: dict[str, str], report: Path) -> int:
    from scrapy import cmdline, signals
    from scrapy.core.engine import ExecutionEngine

    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))  # a bomb is not to end the machine
    os.chdir(folder)
    os.environ.update(environment)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), number)
    sys.addaudithook(_stay)
    turns, said = Turns(), {"cpu_before": 0.0}
    turns.watch()
    started = ExecutionEngine.start_async

    async def start(engine: ExecutionEngine, *args: Any, **kwargs: Any) -> None:
        used = resource.getrusage(resource.RUSAGE_SELF)
        said["cpu_before"], turns.counting = used.ru_utime + used.ru_stime, True
        engine.crawler.signals.connect(closed, signals.spider_closed)
        await started(engine, *args, **kwargs)

    def closed(spider: Any) -> None:
        turns.counting = False
        said["stats"] = spider.crawler.stats.get_stats()

    ExecutionEngine.start_async = start  # type: ignore[method-assign]
    ExecutionEngine._SLOT_HEARTBEAT_INTERVAL = 0.2
    sys.argv = ["scrapy", *command]
    status = 0
    try:
        cmdline.execute()
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    sys.stdout.flush()
    sys.stderr.flush()
    where = sorted(turns.where.items(), key=lambda part: -part[1])[:3]
    report.write_text(json.dumps({**said, "held": turns.longest, "where": where}, default=str))
    return status


def _stay(event: str, args: tuple[Any, ...]) -> None:
    """Block all network access to other machines: an audit hook."""
    if event == "socket.connect" and isinstance(args[1], tuple) and args[1][0] != "127.0.0.1":
        raise OSError(f"a connection to {args[1]!r}, which no test is to make")
    if event == "socket.getaddrinfo" and args[0] not in ("127.0.0.1", "localhost", None):
        raise OSError(f"a look-up of {args[0]!r}, which no test is to make")


if __name__ == "__main__":
    serve()
