"""Makes what decides in a live crawl: the crawl itself, or one end of a crawl that several machines share."""

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

_CLOCK = "_FOCUS_CLOCK"  # a setting that nobody needs but who shows days in minutes: a FastClock, as text
_LARGEST = 90_000  # bytes of the settings of a leader: what is larger does not outlive who sent it
_MARGIN = 1.5  # a delay is up to so many times as long as it is set (RANDOMIZE_DOWNLOAD_DELAY)
_LEAST_LINGER = 30.0  # seconds
_LONGEST_LINGER = 60.0  # seconds, for what sites ask for
#: Settings that may differ from machine to machine.
_OWN = frozenset(
    {
        "FOCUS_CLUSTER", "FOCUS_CLUSTER_ENGINE", "FOCUS_EXIT_STATUS", "FOCUS_LEARNED_FROM", "FOCUS_LEARNED_TO",
        "FOCUS_LOG",
        "FOCUS_PROGRESS",
    }
)  # fmt: skip
#: Settings of Scrapy that decide what a site sees, and what is found.
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
    """All that is needed to make the leader of a crawl, again and again: names, numbers, and small values."""

    settings: bytes  # pickled, as this process has them
    default_policy: str  # its import path
    spider: str  # its name
    project: list[str]  # packages of which stored objects may be
    agreed: dict[str, str]
    paths: list[str]  # where to import from
    maker: str  # import path of what makes it
    log: dict[str, Any]  # of its process: path, level, format, dates


def clock_of(settings: BaseSettings) -> Callable[[], float] | None:
    """Return what says what time it is in a crawl; ``None``: the machine."""
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
    """Return the crawl of some settings; ``goal`` in place of the one that they name."""
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
    """Return what stands for the crawl in a process that fetches for one which another machine leads.

    Raises
    ------
    ConfigError
        If the engine cannot be made, or the leader could not be made of these settings.
    """
    if not is_asyncio_available():
        raise ConfigError(
            "FOCUS_CLUSTER needs asyncio, and another reactor runs; remove TWISTED_REACTOR from the settings, so that "
            "Scrapy takes its own"
        )
    from scrapy_focus.cluster.worker import Worker  # neither is imported by crawls of one machine, without a job

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
    """Return the leader of a crawl, as it was when an earlier one was closed or killed.

    Parameters
    ----------
    may_begin
        Whether there may be no earlier one.

    Raises
    ------
    ConfigError
        If the settings cannot be used here.
    FolderInUseError
        If another process has the ``JOBDIR``.
    ResumeError
        If its crawl is another one.
    StorageError
        If it cannot be used, or has no crawl where there was one.
    """
    from scrapy_focus.cluster.leader import Leader, RemoteGoal
    from scrapy_focus.features import rows_of
    from scrapy_focus.jobs.job import Job

    for path in plan["paths"]:
        if path not in sys.path:
            sys.path.append(path)
    settings = Settings(pickle.loads(plan["settings"]))  # noqa: S301 (of whoever may run code here anyway)
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
                f"{folder} has no crawl any more: bring it back, or end the crawl with focus stop, and use "
                "another JOBDIR"
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
        per_host=2 if delayed else most + max(1, most // 2),  # some wait for those that download
        most_out=config.cluster_most_out,
        learned_to=config.learned_to,
    )


def plan_of(crawler: Crawler, config: Config, policy: Policy) -> LeaderPlan:
    """Return what the leader of a crawl is made of.

    Raises
    ------
    ConfigError
        If a setting cannot be sent to another machine.
    """
    settings, spider = crawler.settings, cast("Spider", crawler.spider)
    values = {name: settings[name] for name in settings if name.startswith("FOCUS_") or name in _NEEDED}
    values.pop("FOCUS_CLUSTER_ENGINE", None)  # it is there already
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
    """Return what has to be equal for all workers of a crawl: names and values, as text."""
    described = describe(policy, config.goal, config.mission(), spider.name)
    named = [name for name in settings if name.startswith("FOCUS_") and name not in _OWN and settings[name] is not None]
    arguments = _arguments_of(spider)
    described |= {f"setting: {name}": _plainly(settings[name]) for name in sorted(named)}
    described |= {f"setting: {name}": str(get(settings, name)) for name, get in _SHARED.items()}
    return {name: str(value) for name, value in {**described, **arguments}.items()}


def _arguments_of(spider: Spider) -> dict[str, str]:
    """Return the attributes of a spider that are plain values, but those in which workers differ."""
    arguments = {}
    for name, value in sorted(vars(spider).items()):
        if name.startswith("_") or name in ("name", "out", "worker"):
            continue
        if type(value) in (str, int, float, bool):
            arguments[f"spider: {name}"] = text_of(value)
    return arguments


def _plainly(value: object) -> str:
    """Return the value of a setting as text, which is the same where it was given as text on the command line."""
    return str(value) if isinstance(value, str | int | float) else text_of(value)


def linger(settings: BaseSettings, config: Config) -> float:
    """Return the seconds after which a host may go to another worker that its own asks for nothing."""
    waits = min(config.longest_wait, _LONGEST_LINGER) if "retry-after" in config.obey else 0.0
    return max(rest(settings, config), waits, _LEAST_LINGER)


def rest(settings: BaseSettings, config: Config) -> float:
    """Return the seconds after which a host may go to another worker whose own is gone: longer than any delay."""
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
