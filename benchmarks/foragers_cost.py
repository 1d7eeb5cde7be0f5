"""The cost of a hundred foragers on a million known pages.

A synthetic web of hubs and articles is crawled in memory, by a hundred foragers whose weblogs and paths are full from
the start, compared with the simplest revisiting policy: each page sleeps for the same time, and pages leave in the
order of waking. The memory of pages has the maximum size. CPU is that of the process, in the methods of the policy
alone, so neither the synthetic web nor other programs count; garbage is collected meanwhile. ``choice`` is
``select``; ``outcome`` is all work after a page is fetched: placing links, learning, ended steps, next ones,
restarts, children and deaths. Every measurement has a separate process. ::

    python benchmarks/foragers_cost.py                                  # a million pages, ten minutes
    python benchmarks/foragers_cost.py calls --pages 100000 --crawls learned WLRL
    python benchmarks/foragers_cost.py stored --pages 300000
    python benchmarks/foragers_cost.py days --days 30
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from lxml import html as lxml_html

from scrapy_focus import Crawl, Job, Link, Outcome, Placement, memory_frontier
from scrapy_focus.jobs.pickles import Classes
from scrapy_focus.jobs.snapshots import classes_of
from scrapy_focus.policies.foragers import Foragers
from scrapy_focus.policies.foragers.states import TextStates
from scrapy_focus.policies.orderings import BreadthFirst

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from scrapy_focus import Pick

BEGIN = 1_767_571_200.0  # 5 January 2026, 0:00 UTC
DAY = 86400.0
EVERY = 3 * DAY  # between two visits of a page by the least policy
BATCH = 500
HUBS = 2000  # pages that list what is new, and that others link to
LINKS = 60  # of a page
FLEET = 100
REMEMBERED = 1 << 15  # pages with data outside the frontier
WARM = 1000  # visits before any counts
METHODS = ("place", "know", "learn", "again")
CRAWLS: dict[str, dict[str, Any]] = {
    "the least": {},
    "learned": {"mode": "learned"},
    "WLRL": {"mode": "WLRL"},
    "WL": {"mode": "WL"},
    "WLRL, all links": {"mode": "WLRL", "lookahead": "full"},
    "WL, all links": {"mode": "WL", "lookahead": "full"},
    "WLRL 2005": {"mode": "WLRL", "preset": "palotai-2005"},
    "WL 2005": {"mode": "WL", "preset": "palotai-2005"},
}


class EachAgain(BreadthFirst):
    """Fetches each page again after the same time."""

    def again(self, outcome: Outcome) -> Placement | None:
        return Placement(0, 0.0, after=outcome.at + EVERY)


class MadePage(NamedTuple):
    """A page that is parsed before the timed part."""

    url: str
    text: str
    root: Any
    status: int = 200
    headers: dict[str, str] = {}
    kind: str = "text/html"


class Web:
    """Pages by their numbers: hubs first, then articles, up to ``most`` of them known at the start.

    ``births`` is how many links to articles that nobody has seen come up on a hub that changed, on average.
    """

    def __init__(self, most: int, *, births: float, seed: int) -> None:
        self.n = most
        self.births = births
        self.rng = np.random.default_rng(seed)
        words = [f"word{n:04}" for n in range(4000)]
        topics = [self.rng.zipf(1.3, 4000) for _ in range(40)]
        self.texts: list[str] = []
        for n in range(400):
            of_topic = topics[n % 40] / topics[n % 40].sum()
            text = " ".join(words[at] for at in self.rng.choice(4000, 400, p=of_topic).tolist())
            self.texts.append(f"<html><body><h1>{n}</h1><p>{text}</p></body></html>")

    def link(self, key: int) -> Link:
        """Return a link to a page."""
        if key <= HUBS:
            return Link(f"http://h.test/section-{key % 40}/list-{key}", key, "h.test", anchor="more", tag_path=HUB_PATH)
        url = f"http://h.test/section-{key % 40}/{key // 997}/word{key % 4000:04}-word{key % 3989:04}-{key}.html"
        return Link(url, key, "h.test", anchor=f"word{key % 4000:04} word{key % 3989:04}", tag_path=PATHS[key % 7])

    def known(self) -> list[int]:
        """Return the keys of the known links of a page."""
        keys = self.rng.integers(1, self.n + 1, LINKS)
        keys[: LINKS // 4] = self.rng.integers(1, HUBS + 1, LINKS // 4)
        found: list[int] = keys.tolist()
        return found

    def answer(self, pick: Pick, *, seen: bool) -> tuple[Outcome, list[Link], list[int]]:
        """Return the result of fetching a page: its outcome, new links, and keys of known ones."""
        is_hub = pick.key <= HUBS
        changed = None if not seen else bool(self.rng.random() < (0.3 if is_hub else 0.02))
        if changed is False:
            return Outcome(pick=pick, status=200, mime="text/html", size=9999, changed=False), [], []
        n_new = int(self.rng.poisson(self.births)) if is_hub else 0
        new = [self.link(self.n + n) for n in range(1, n_new + 1)]
        known = self.known()
        self.n += n_new
        text = self.texts[pick.key % 400]
        page = MadePage(pick.url, text, lxml_html.fromstring(text))
        return (
            Outcome(pick=pick, status=200, mime="text/html", size=9999, changed=changed, page=page),
            new,
            known,
        )


HUB_PATH = "html/body/nav.sections/ul/li/a"
PATHS = [f"html/body/main#content/div.box-{n}/ul.list/li/h3/a" for n in range(7)]


class Clock:
    """A clock that is set."""

    def __init__(self) -> None:
        self.now = BEGIN

    def __call__(self) -> float:
        """Return the time."""
        return self.now


class Timed:
    """A method of a policy, the times of the calls since the last outcome, and the longest one."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self.method = method
        self.seconds = 0.0
        self.longest = 0.0

    def __call__(self, *args: Any) -> Any:
        """Call it."""
        began = time.process_time()
        answer = self.method(*args)
        took = time.process_time() - began
        self.seconds += took
        self.longest = max(self.longest, took)
        return answer

    def taken(self) -> float:
        """Return the seconds of CPU since this was asked for last."""
        taken, self.seconds = self.seconds, 0.0
        return taken


class Driver:
    """A crawl of the made web, one request at a time."""

    def __init__(self, name: str, pages: int, *, per_day: int, births: float = 0.5, job: Any = None) -> None:
        self.clock = Clock()
        self.web = Web(pages, births=births, seed=1)
        self.seen: set[int] = set()
        self.rewarded: set[int] = set()
        self.each = DAY / per_day
        self.policy = policy_of(name)
        where: dict[str, Any] = {"frontier": memory_frontier} if job is None else {"job": job}
        self.crawl = Crawl(self.policy, goal=self.reward, clock=self.clock, seed=0, strict=True, **where)
        self.pages = pages

    def reward(self, outcome: Outcome) -> float:
        """Reward articles that came up while this ran, once."""
        key = outcome.pick.key
        return float(key > self.pages and not outcome.error and key not in self.seen)

    def fill(self, *, remembers: bool = True) -> None:
        """Make all pages known; ``remembers``: those with a record, as if they had been visited."""
        policy, web, rng = self.policy, self.web, self.web.rng
        self.crawl.add([web.link(int(key)) for key in rng.choice(HUBS, FLEET, replace=False) + 1])
        for start in range(0, self.pages, BATCH):
            links = [web.link(key) for key in range(start + 1, min(start + BATCH, self.pages) + 1)]
            links = [link for link in links if not self.crawl.frontier.states([link.key])[0]]
            dues = (rng.random(len(links)) * EVERY + BEGIN).tolist()
            is_least = not isinstance(policy, Foragers)
            self.crawl.frontier.push(links, [Placement(0, -1.0, after=due if is_least else 0.0) for due in dues])
        if isinstance(policy, Foragers) and remembers:
            self._remember(policy)
            self._send_out(policy)

    def _remember(self, policy: Foragers) -> None:
        rng, web = self.web.rng, self.web
        keys = [*range(1, HUBS + 1), *(rng.choice(self.pages - HUBS, REMEMBERED - HUBS, replace=False) + HUBS + 1)]
        keys = [int(key) for key in keys if key <= self.pages]
        for key in keys:
            page = policy.pages.see(key)
            page.at, page.changed, page.version = BEGIN - rng.random() * EVERY, None, key
            page.links = np.array(web.known(), np.int64)
            if policy._texts is not None:
                policy.pages.set_state(page, rng.uniform(-1, 1, policy._rules.k).astype(np.float32))
            for _ in range(2):
                policy.rates.visit(key, web.link(key).url, page.at, changed=rng.random() < 0.2, is_target=False)
            self.seen.add(key)
        others = rng.choice(self.pages, REMEMBERED, replace=False) + 1
        for start in range(0, REMEMBERED if policy.learns == "learned" else 0, BATCH):
            policy.links.found([web.link(int(key)) for key in others[start : start + BATCH]], policy.now)

    def _send_out(self, policy: Foragers) -> None:
        """Put all foragers in the middle of a path, with full weblogs."""
        rng = self.web.rng
        for forager in policy.fleet.values():
            chosen = rng.choice(HUBS, policy._rules.weblog, replace=False) + 1
            forager.weblog = {int(key): float(value) for key, value in zip(chosen, rng.random(100), strict=True)}
            forager.urls = {key: self.web.link(key).url for key in forager.weblog}
            forager.keep_best()
            for _ in range(int(rng.integers(99))):
                forager.path.append((int(rng.integers(1, HUBS + 1)), 0.0))
                forager.discover(self.web.known())

    def visit(self) -> None:
        """Make one visit, when its turn comes."""
        while True:
            self.clock.now += self.each
            pick = self.crawl.next()
            if pick is not None:
                break
        self.crawl.sent(pick.id)
        outcome, links, known = self.web.answer(pick, seen=pick.key in self.seen)
        self.crawl.report(outcome, links, known)
        self.seen.add(pick.key)


def policy_of(name: str) -> Any:
    """Return a policy by its name here."""
    return Foragers(fewest=FLEET, most=FLEET, **CRAWLS[name]) if CRAWLS[name] else EachAgain()


def calls(name: str, pages: int, n: int, per_day: int) -> dict[str, float]:
    """Return microseconds of CPU of a choice and of an outcome, and the longest calls, in milliseconds."""
    driver = Driver(name, pages, per_day=per_day)
    driver.fill()
    gc.collect()
    gc.freeze()
    for _ in range(WARM):
        driver.visit()
    policy = driver.policy
    select = Timed(policy.select)
    timed = {method: Timed(getattr(policy, method)) for method in METHODS}
    for method, each in {"select": select, **timed}.items():
        setattr(policy, method, each)
    choices, outcomes = [], []
    for _ in range(n):
        driver.visit()
        choices.append(select.taken())
        outcomes.append(sum(each.taken() for each in timed.values()))
    found = {
        "choice": 1e6 * float(np.mean(choices)), "choice 99 %": 1e6 * float(np.quantile(choices, 0.99)),
        "outcome": 1e6 * float(np.mean(outcomes)), "outcome 99 %": 1e6 * float(np.quantile(outcomes, 0.99)),
        "select ms": 1000 * select.longest,
    }  # fmt: skip
    found |= {f"{method} ms": 1000 * each.longest for method, each in timed.items()}
    for method in (*METHODS, "select"):
        delattr(policy, method)
    return found | seldom(driver)


def seldom(driver: Driver) -> dict[str, float]:
    """Return the milliseconds of work that is not done at each visit."""
    policy, web = driver.policy, driver.web
    questions: dict[str, Callable[[], Any]] = {"tables": policy.tables, "watched": lambda: policy.watched(50)}
    if isinstance(policy, Foragers):
        questions["due"] = lambda: due_when_blocked(policy)
        questions["give_up"] = lambda: policy.give_up(driver.pages // 10)
        large = [web.link(web.n + n) for n in range(1, 10_001)]
        place = Timed(policy.place)
        states = TextStates()
        for text in web.texts[:299]:
            states.state_of(text)
        questions["states made"] = lambda: states.state_of(web.texts[299])
        questions["10,000 seeds"] = lambda: policy.place(large, None)
        policy.place = place  # type: ignore[method-assign, assignment]
        driver.clock.now += 3600.0
        pick = driver.crawl.next()
        assert pick is not None
        outcome, _, known = web.answer(pick, seen=False)
        began = time.process_time()
        driver.crawl.report(outcome, large, known)
        links = {"10,000 links": time.process_time() - began, "place 500": place.longest}
        del policy.place
    else:
        links = {}
    return {f"{name} ms": 1000 * each for name, each in {**links, **{n: cpu(q) for n, q in questions.items()}}.items()}


def due_when_blocked(policy: Foragers) -> float | None:
    """Return what due() returns if no page is free."""
    policy._blocked = policy.now
    return policy.due()


def cpu(question: Callable[[], Any]) -> float:
    """Return the seconds of CPU that an answer takes."""
    began = time.process_time()
    question()
    return time.process_time() - began


def stored(name: str, pages: int, per_day: int) -> dict[str, float]:
    """Return how long a checkpoint blocks a crawl with a job, and the size of the pickled policy."""
    with tempfile.TemporaryDirectory() as folder:
        driver = Driver(name, pages, per_day=per_day, job=Job(Path(folder) / "job"))
        driver.fill()
        crawl = driver.crawl
        crawl.checkpoint()
        crawl.job.flush()  # type: ignore[union-attr]
        longest = []
        for _ in range(5):
            for _ in range(200):
                driver.visit()
            longest.append(cpu(crawl.checkpoint))
            crawl.job.flush()  # type: ignore[union-attr]
        classes = classes_of(type(driver.policy), Classes())
        pickled = classes.dumps(driver.policy)
        found = {
            "checkpoint ms": 1000 * float(np.median(longest)),
            "pickle ms": 1000 * cpu(lambda: classes.dumps(driver.policy)),
            "pickled kB": len(pickled) / 1000, "read ms": 1000 * cpu(lambda: classes.loads(pickled)),
        }  # fmt: skip
        crawl.close()
    return found


def resident() -> float:
    """Return the bytes of this process that are in memory."""
    return float(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def size_of(value: Any, known: set[int] | None = None) -> int:
    """Return the bytes of a value with all that it holds; classes and modules are not counted."""
    known = set() if known is None else known
    if id(value) in known or isinstance(value, type):
        return 0
    known.add(id(value))
    size = sys.getsizeof(value)
    if isinstance(value, np.ndarray):
        return size if value.base is None else size + value.nbytes
    if isinstance(value, dict):
        size += sum(size_of(key, known) + size_of(each, known) for key, each in value.items())
    elif isinstance(value, (list, tuple, set, frozenset)):
        size += sum(size_of(each, known) for each in value)
    if hasattr(value, "__dict__"):
        size += size_of(vars(value), known)
    for slot in getattr(type(value), "__slots__", ()):
        if hasattr(value, slot):
            size += size_of(getattr(value, slot), known)
    return size


def memory(name: str, pages: int, per_day: int) -> dict[str, float]:
    """Return the bytes of the policy, and of a forager, in kB, after the web was crawled for some time."""
    driver = Driver(name, pages, per_day=per_day)
    driver.fill()
    for _ in range(WARM):
        driver.visit()
    policy = driver.policy
    foragers = [size_of(forager) / 1000 for forager in policy.fleet.values()]
    parts = {part: size_of(getattr(policy, part)) / 1000 for part in ("pages", "rates", "links", "_texts")}
    policy.__dict__.pop("frontier")
    return {
        "policy kB": size_of(policy) / 1000, "forager kB": float(np.mean(foragers)), "largest kB": max(foragers),
        **{f"{part.strip('_')} kB": size for part, size in parts.items()},
    }  # fmt: skip


def days(name: str, pages: int, n: int, per_day: int) -> list[dict[str, float]]:
    """Return, by day, what is in memory."""
    driver = Driver(name, pages, per_day=per_day)
    rows = []
    policy = driver.policy
    driver.fill(remembers=False)
    for day in range(1, n + 1):
        while driver.clock.now < BEGIN + day * DAY:
            driver.visit()
        gc.collect()
        rows.append({"day": day, "resident MB": resident() / 1e6, "known": driver.web.n, **lengths(policy)})
    return rows


def lengths(policy: Foragers) -> dict[str, float]:
    """Return how many entries each container of a policy has, the largest of all foragers for theirs."""
    found = {name.strip("_"): len(value) for name, value in vars(policy).items() if isinstance(value, dict | list)}
    found |= {"pages": len(policy.pages), "rates": len(policy.rates.slots), "links": len(policy.links.slots)}
    found |= {name: len(getattr(policy.rates, f"_{name}")) for name in ("shown", "born")}
    names = ("weblog", "urls", "visited", "open", "_had", "path")
    found |= {f"most {n.strip('_')}": max(len(getattr(f, n)) for f in policy.fleet.values()) for n in names}
    return {name: float(n) for name, n in found.items()}


def apart(task: Callable[[], Any]) -> Any:
    """Return the result of a task in a separate process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(task).result()


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print lines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = ("calls", "memory", "stored", "days")
    parser.add_argument("parts", nargs="*", default=parts[:3], metavar="part", help=f"{', '.join(parts)} (the first 3)")
    parser.add_argument("--pages", type=int, default=1_000_000, help="how many pages are known (1,000,000)")
    parser.add_argument("--visits", type=int, default=5000, help="how many visits are measured (5,000)")
    parser.add_argument("--rate", type=int, default=33_000, help="requests a day (33,000)")
    parser.add_argument("--days", type=int, default=30, help="how many days (30)")
    parser.add_argument("--crawls", nargs="+", choices=CRAWLS, default=list(CRAWLS), help="not all of them")
    options = parser.parse_args(arguments)
    for part in options.parts:
        for name in options.crawls:
            task: Callable[[], Any]
            if part == "calls":
                task = partial(calls, name, options.pages, options.visits, options.rate)
            elif part == "stored":
                task = partial(stored, name, options.pages, options.rate)
            elif name == "the least":
                continue
            elif part == "memory":
                task = partial(memory, name, options.pages, options.rate)
            else:
                task = partial(days, name, options.pages, options.days, options.rate)
            found = apart(task)
            for row in found if isinstance(found, list) else [found]:
                print(f"{part} {name}:", " ".join(f"{key} {value:,.2f}" for key, value in row.items()), flush=True)


if __name__ == "__main__":
    main()
