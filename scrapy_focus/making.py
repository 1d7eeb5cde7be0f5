"""Make the crawl of a process: the crawl itself, or a worker or the leader of a crawl on several machines."""

from __future__ import annotations

import os
import pickle
import secrets
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, cast

from scrapy.settings import BaseSettings, Settings
from scrapy.utils.asyncio import is_asyncio_available
from scrapy.utils.misc import load_object

from scrapy_focus.config import Config
from scrapy_focus.core.clock import FastClock
from scrapy_focus.core.contract import load_learned
from scrapy_focus.core.crawl import Crawl
from scrapy_focus.core.errors import ConfigError, StorageError
from scrapy_focus.core.policy import import_path
from scrapy_focus.core.printable import brief, reason_of
from scrapy_focus.engine.requests import project_of
from scrapy_focus.frontiers.memory import memory_frontier
from scrapy_focus.jobs.description import describe, text_of
from scrapy_focus.web.poorlinks import PoorLinks

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable

    from scrapy import Spider
    from scrapy.crawler import Crawler

    from scrapy_focus.cluster.engine import Engine
    from scrapy_focus.cluster.leader import Leader
    from scrapy_focus.cluster.worker import Worker
    from scrapy_focus.core.goal import Goal
    from scrapy_focus.core.policy import Policy
    from scrapy_focus.jobs.job import Job

_CLOCK = "_FOCUS_CLOCK"  # a setting for demos that show days in minutes: a FastClock, as text
_LARGEST = 90_000  # bytes of a leader's settings: larger ones do not outlive the process that sent them
_MARGIN = 1.5  # the longest delay as a multiple of its setting (RANDOMIZE_DOWNLOAD_DELAY)
_LEAST_LINGER = 30.0  # seconds
_LONGEST_LINGER = 60.0  # seconds, for delays that sites ask for
#: Settings that may differ from machine to machine.
_OWN = frozenset(
    {
        "FOCUS_CLUSTER", "FOCUS_CLUSTER_ENGINE", "FOCUS_EXIT_STATUS", "FOCUS_LEARNED_FROM", "FOCUS_LEARNED_TO",
        "FOCUS_LOG",
        "FOCUS_PROGRESS", "FOCUS_WARC",
    }
)  # fmt: skip
#: Settings of Scrapy that affect what a site sees, and what is found.
_SHARED: dict[str, Callable[[BaseSettings, str], object]] = {
    "AUTOTHROTTLE_ENABLED": BaseSettings.getbool,
    "CONCURRENT_REQUESTS_PER_DOMAIN": BaseSettings.getint,
    "DEPTH_LIMIT": BaseSettings.getint,
    "DOWNLOAD_DELAY": BaseSettings.getfloat,
    "ROBOTSTXT_OBEY": BaseSettings.getbool,
    "URLLENGTH_LIMIT": BaseSettings.getint,
}
#: Settings of Scrapy that a leader needs.
_NEEDED = (*_SHARED, _CLOCK, "AUTOTHROTTLE_MAX_DELAY", "CONCURRENT_REQUESTS", "JOBDIR")


class LeaderPlan(TypedDict):
    """Everything needed to make the leader of a crawl, repeatedly: names, numbers, and small values."""

    settings: bytes  # of this process, pickled
    default_policy: str  # its import path
    spider: str  # its name
    project: list[str]  # packages that stored objects may belong to
    agreed: dict[str, str]
    paths: list[str]  # where to import from
    maker: str  # import path of the function that makes it
    log: dict[str, Any]  # of its process: path, level, format, dates


def clock_of(settings: BaseSettings) -> Callable[[], float] | None:
    """Return the clock of a crawl; ``None``: the machine's."""
    text = settings.get(_CLOCK)
    return FastClock.of(text) if text else None


def make_crawl(
    config: Config,
    policy: Policy,
    job: Job | None,
    *,
    goal: Goal | None = None,
    counts: Counter[str] | None = None,
    clock: Callable[[], float] | None = None,
    patience: float = 60.0,
    is_shared: bool = False,
) -> Crawl:
    """Return the crawl for some settings; ``goal`` replaces the one in the settings."""
    if config.learned_from and (job is None or job.is_new):
        load_learned(policy, config.learned_from)
    poor_last = policy.poor_last if config.poor_last is None else config.poor_last
    return Crawl(
        policy,
        frontier=(config.frontier or memory_frontier) if job is None else None,
        job=job,
        goal=config.goal if goal is None else goal,
        mission=config.mission(),
        budget=config.make_budget(),
        stop=config.stop,
        most_waiting=config.most_waiting,
        poor=PoorLinks() if poor_last else None,
        seed=config.seed,
        log=config.make_log(),
        explain=config.explain,
        clock=clock,
        patience=patience,
        counts=counts,
        is_shared=is_shared,
    )


def make_worker(
    crawler: Crawler,
    config: Config,
    policy: Policy,
    *,
    counts: Counter[str],
    clock: Callable[[], float] | None,
    patience: float,
    when_news: Callable[[], None],
    when_unplaced: Callable[[list[str] | None], None],
    when_failed: Callable[[StorageError], None],
) -> Worker:
    """Return the worker that represents the crawl in a process, for a crawl led by another machine.

    Raises
    ------
    ConfigError
        If the engine cannot be made, or the leader cannot be made from these settings.
    """
    if not is_asyncio_available():
        raise ConfigError(
            "FOCUS_CLUSTER needs asyncio, and another reactor is running; remove TWISTED_REACTOR from the settings, so "
            "that Scrapy uses its default"
        )
    from scrapy_focus.cluster.worker import Worker  # crawls on one machine without a job import neither

    settings, spider = crawler.settings, cast("Spider", crawler.spider)
    plan = plan_of(crawler, config, policy)
    name = config.cluster_name or spider.name
    try:
        cls = load_object(config.cluster_engine)
        engine: Engine = cls(config.cluster, name, plan)
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(
            f"FOCUS_CLUSTER_ENGINE is {brief(config.cluster_engine)}, which cannot be made: {reason_of(error)}"
        ) from error
    worker = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"
    if not hasattr(spider, "worker"):
        spider.worker = worker  # type: ignore[attr-defined]  # for %(worker)s in the URIs of feeds
    slots = min(settings.getint("CONCURRENT_REQUESTS"), config.max_inflight or sys.maxsize)
    return Worker(
        engine,
        name=worker,
        policy=policy,
        goal=config.goal,
        agreed=plan["agreed"],
        slots=slots,
        ahead=0 if config.budget_rate is not None else max(1, slots // 2),
        lease=config.cluster_lease,
        linger=linger(settings, config),
        where=f"the leader of the crawl {name!r} (FOCUS_CLUSTER = {config.cluster!r}; this is worker {worker})",
        patience=patience,
        counts=counts,
        clock=clock,
        when_news=when_news,
        when_unplaced=when_unplaced,
        when_failed=when_failed,
    )


def make_leader(plan: LeaderPlan, may_begin: bool = True) -> Leader:
    """Return the leader of a crawl, in the state when an earlier one was closed or killed.

    Parameters
    ----------
    may_begin
        Whether the crawl may be new.

    Raises
    ------
    ConfigError
        If the settings cannot be used here.
    FolderInUseError
        If another process uses the ``JOBDIR``.
    ResumeError
        If it belongs to another crawl.
    StorageError
        If it cannot be used, or has no crawl though it should.
    """
    from scrapy_focus.cluster.leader import Leader, RemoteGoal
    from scrapy_focus.features import rows_of
    from scrapy_focus.jobs.job import Job

    for path in plan["paths"]:
        if path not in sys.path:
            sys.path.append(path)
    settings = Settings(pickle.loads(plan["settings"]))  # noqa: S301 (the sender may run code here anyway)
    config = Config.from_settings(settings, load_object(plan["default_policy"]), rows_of(settings))
    folder = Path(settings["JOBDIR"], "focus")
    job = Job(
        folder,
        every=config.checkpoint_every,
        name=plan["spider"],
        stores=config.stored_classes,
        project=plan["project"],
    )
    try:
        if job.is_new and not may_begin:
            raise StorageError(
                f"{folder} no longer has a crawl: restore it, or end the crawl with focus stop, and use another JOBDIR"
            )
        crawl = make_crawl(
            config, config.make_policy(), job, goal=RemoteGoal(config.goal), clock=clock_of(settings), is_shared=True
        )
    except BaseException:
        job.close()
        raise
    most = settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN")
    delayed = settings.getfloat("DOWNLOAD_DELAY") > 0 or settings.getbool("AUTOTHROTTLE_ENABLED")
    return Leader(
        crawl,
        agreed=plan["agreed"],
        lease=config.cluster_lease,
        linger=linger(settings, config),
        rest=rest(settings, config),
        per_host=2 if delayed else most + max(1, most // 2),  # some are queued behind those that download
        most_out=config.cluster_most_out,
        learned_to=config.learned_to,
    )


def plan_of(crawler: Crawler, config: Config, policy: Policy) -> LeaderPlan:
    """Return the plan for the leader of a crawl.

    Raises
    ------
    ConfigError
        If a setting cannot be sent to another machine.
    """
    settings, spider = crawler.settings, cast("Spider", crawler.spider)
    values = {name: settings[name] for name in settings if name.startswith("FOCUS_") or name in _NEEDED}
    values.pop("FOCUS_CLUSTER_ENGINE", None)  # it already exists there
    values["JOBDIR"] = str(Path(values["JOBDIR"]).absolute())
    for name in ("FOCUS_LOG", "FOCUS_LEARNED_TO", "FOCUS_LEARNED_FROM"):
        if values.get(name):
            values[name] = str(Path(values[name]).absolute())
    for name, value in values.items():
        _check_sendable(name, value)
    sent = pickle.dumps(values)
    if len(sent) > _LARGEST:
        largest = max(values, key=lambda name: len(pickle.dumps(values[name])))
        raise ConfigError(
            f"the FOCUS_* settings are {len(sent):,} bytes, most of them {largest}; with FOCUS_CLUSTER they are sent "
            f"to the leader, in at most {_LARGEST:,} bytes: give import paths and paths of files in place of objects"
        )
    return LeaderPlan(
        settings=sent,
        default_policy=import_path(config.policy),
        spider=spider.name,
        project=sorted(project_of(spider)),
        agreed=agreed_of(settings, config, policy, spider),
        paths=[path or str(Path.cwd()) for path in sys.path],
        maker=f"{make_leader.__module__}:{make_leader.__qualname__}",
        log={
            "path": str(Path(values["JOBDIR"], "leader.log")),
            "level": settings["LOG_LEVEL"],
            "format": settings["LOG_FORMAT"],
            "dates": settings["LOG_DATEFORMAT"],
        },
    )


def agreed_of(settings: BaseSettings, config: Config, policy: Policy, spider: Spider) -> dict[str, str]:
    """Return the values that must be equal for all workers of a crawl, by name, as text."""
    described = describe(policy, config.goal, config.mission(), spider.name)
    named = [name for name in settings if name.startswith("FOCUS_") and name not in _OWN and settings[name] is not None]
    arguments = _arguments_of(spider)
    described |= {f"setting: {name}": _plainly(settings[name]) for name in sorted(named)}
    described |= {f"setting: {name}": str(get(settings, name)) for name, get in _SHARED.items()}
    return {name: str(value) for name, value in {**described, **arguments}.items()}


def _arguments_of(spider: Spider) -> dict[str, str]:
    """Return the attributes of a spider that are plain values, except those that differ between workers."""
    arguments = {}
    for name, value in sorted(vars(spider).items()):
        if name.startswith("_") or name in ("name", "out", "worker"):
            continue
        if type(value) in (str, int, float, bool):
            arguments[f"spider: {name}"] = text_of(value)
    return arguments


def _plainly(value: object) -> str:
    """Return the value of a setting as text, the same as if it was given as text on the command line."""
    return str(value) if isinstance(value, str | int | float) else text_of(value)


def linger(settings: BaseSettings, config: Config) -> float:
    """Return the seconds without requests after which a host may move to another worker."""
    waits = min(config.longest_wait, _LONGEST_LINGER) if "retry-after" in config.obey else 0.0
    return max(rest(settings, config), waits, _LEAST_LINGER)


def rest(settings: BaseSettings, config: Config) -> float:
    """Return the seconds after which the host of a lost worker may move to another one: longer than any delay."""
    delays = [settings.getfloat("DOWNLOAD_DELAY") * _MARGIN]
    if settings.getbool("AUTOTHROTTLE_ENABLED"):
        delays.append(settings.getfloat("AUTOTHROTTLE_MAX_DELAY"))
    if "crawl-delay" in config.obey:
        delays.append(min(config.longest_wait, _LONGEST_LINGER))
    return max(delays)


def _check_sendable(name: str, value: Any) -> None:
    try:
        pickle.dumps(value)
    except Exception as error:
        raise ConfigError(
            f"{name} is {brief(value)}, which cannot be sent to the leader of a cluster: {reason_of(error)}; give its "
            "import path"
        ) from error
