"""Does a policy or frontier of yours keep its promises? Properties that every one must have, to be called from a test."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from scrapy_focus.core.crawl import Crawl
from scrapy_focus.core.errors import FrontierError
from scrapy_focus.core.types import Link, Outcome, Pick, Placement, State
from scrapy_focus.frontiers.memory import MemoryFrontier

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from scrapy_focus.core.frontier import Frontier
    from scrapy_focus.core.policy import Policy


_WIDTH = 3
_MOST_DIVISIONS = 8


def check_policy(make: Callable[[], Policy], *, pages: int = 60, seed: int = 0) -> None:
    """Raise ``AssertionError`` if a policy breaks a promise; takes about a second.

    Parameters
    ----------
    make
        Returns a new policy each time; a class will do.
    pages
        Size of the small made-up site that it crawls, on three hosts.
    seed
        Of the crawls.

    Notes
    -----
    What is checked: it fetches every page of the site, with one and with eight in flight; it never selects while nothing
    waits, nor a host that is busy; the same seed gives the same order; it stays alive through failures, HEADs, and picks
    that are handed back; it can be pickled in mid-crawl and goes on with the same choices; ``explain`` gives what
    JSON can hold; it does not change the links that it is given. What the policy raises itself, or the crawl on its
    account (:class:`~scrapy_focus.core.errors.PolicyError`), comes through as it is.
    """
    site = _Site(pages)
    orders = [_crawl(make(), site, seed=seed, in_flight=k) for k in (1, 8)]
    for order in orders:
        fetched = {url for url, method in order if method == "GET"}
        missed = site.reachable - fetched - ({url for url, _ in order} & site.dead_urls)
        _require(not missed, f"it never fetched {sorted(missed)[:3]} though links to them were placed or offered")
    again = _crawl(make(), site, seed=seed, in_flight=1)
    _require(again == orders[0], f"the same seed gave another order: {_first_difference(orders[0], again)}")
    stored = _crawl(make(), site, seed=seed, in_flight=1, pickle_after=len(orders[0]) // 2)
    _require(stored == orders[0], f"after pickling it chose otherwise: {_first_difference(orders[0], stored)}")
    policy = make()
    policy.open(MemoryFrontier(), np.random.default_rng(seed))
    _require(policy.select(()) is None, "select() gave a pick though nothing waits")


def check_frontier(make: Callable[[], Frontier], *, steps: int = 2000, seed: int = 0) -> None:
    """Raise ``AssertionError`` if a frontier breaks a promise; compares it with a dictionary over random steps.

    Half as many steps follow with one that keeps vectors.

    Parameters
    ----------
    make
        Returns a new, empty frontier each time.
    steps
        Operations to try.
    seed
        Of the operations.
    """
    rng = np.random.default_rng(seed)
    frontier = make()
    _require(len(frontier) == 0 and frontier.pop(0) is None, "a new frontier must be empty")
    model: dict[int, Placement] = {}
    found: dict[int, tuple[Link, int]] = {}  # as first pushed, and the origin
    flying: dict[int, tuple[Pick, Placement]] = {}
    settled: dict[int, State] = {}
    for step in range(steps):
        action = int(rng.integers(0, 10))
        if action < 4:
            links = [_random_link(rng) for _ in range(int(rng.integers(1, 6)))]
            links = list({link.key: link for link in links}.values())
            places = [None if rng.random() < 0.1 else _random_place(rng) for _ in links]
            added = frontier.push(links, places, origin=step)
            before = len(model)
            for link, place in zip(links, places, strict=True):
                if place is not None and link.key not in {pick.key for pick, _ in flying.values()}:
                    if link.key not in model:
                        found[link.key] = link, step
                    model[link.key] = place
                    settled.pop(link.key, None)
                elif place is None and link.key not in model and link.key not in {p.key for p, _ in flying.values()}:
                    settled.setdefault(link.key, State.FETCHED)
            _require(added == len(model) - before, f"push() said {added} new links, it was {len(model) - before}")
        elif action < 7:
            arm, busy = int(rng.integers(0, 7)), {f"host{i}" for i in range(4) if rng.random() < 0.4}
            open_ranks = [
                place.rank for key, place in model.items() if place.arm == arm and found[key][0].host not in busy
            ]
            pick = frontier.pop(arm, busy)
            _require(
                (pick is None) == (not open_ranks),
                f"pop({arm}, {busy}) gave {pick} with {len(open_ranks)} links to take",
            )
            if pick is not None:
                _require(pick.host not in busy, f"pop() gave a link of the busy host {pick.host}")
                _require(pick.rank == max(open_ranks), f"pop() gave rank {pick.rank}, the best is {max(open_ranks)}")
                _require_same(pick, *found[pick.key], model[pick.key])
                flying[pick.id] = (pick, model.pop(pick.key))
        elif action == 7 and model:
            keys = [int(key) for key in rng.choice(list(model), size=min(3, len(model)), replace=False)]
            places = [None if rng.random() < 0.2 else _random_place(rng) for _ in keys]
            frontier.move(keys, places)
            for key, place in zip(keys, places, strict=True):
                if place is None:
                    del model[key]
                    settled[key] = State.FETCHED
                else:
                    model[key] = place
        elif action == 8 and flying:
            pick, place = flying.pop(next(iter(flying)))
            if rng.random() < 0.5:
                frontier.settle(pick)
                settled[pick.key] = State.PROBED if pick.method == "HEAD" else State.FETCHED
            else:
                frontier.release(pick)
                model[pick.key] = place
        elif action == 9 and model:
            key = int(rng.choice(list(model)))
            pick = frontier.take(key)
            _require(pick is not None and pick.key == key, f"take({key}) gave {pick}")
            if pick is not None:
                _require_same(pick, *found[key], model[key])
                flying[pick.id] = (pick, model.pop(key))
        hosts = {key: link.host for key, (link, _) in found.items()}
        _compare(frontier, model, {pick.key for pick, _ in flying.values()}, settled, hosts, rng)
        _require(
            {id_: pick.key for id_, pick in frontier.flying.items()}
            == {id_: pick.key for id_, (pick, _) in flying.items()},
            f"flying has the picks {list(frontier.flying)}, it should be {list(flying)}",
        )
    if flying:
        pick, _ = next(iter(flying.values()))
        frontier.settle(pick)
        try:
            frontier.settle(pick)
        except FrontierError:
            pass
        else:
            raise AssertionError("settling a pick twice must raise FrontierError")
    frontier.close()
    _check_vectors(make(), steps // 2, rng)


def _check_vectors(frontier: Frontier, steps: int, rng: np.random.Generator) -> None:
    """Compare a new frontier that keeps vectors with a dictionary: the arm and the vector of each link that waits."""
    frontier.keep_vectors(_WIDTH)
    model: dict[int, tuple[int, tuple[int, ...]]] = {}
    divisions: list[tuple[int, int, int, int]] = []

    def follow(arm: int, vector: tuple[int, ...]) -> int:
        for of, column, above, new_arm in divisions:
            arm = new_arm if arm == of and vector[column] > above else arm
        return arm

    for _ in range(steps):
        action = int(rng.integers(0, 8))
        if action < 3:
            links = {link.key: link for link in (_random_link(rng) for _ in range(4))}
            memos = rng.integers(0, 8, (len(links), _WIDTH)).astype(np.float32)
            arms = rng.integers(0, 4, len(links)).tolist()
            frontier.push([*links.values()], [Placement(*each) for each in zip(arms, [0.0] * 4, memos, strict=False)])
            for key, arm, memo in zip(links, arms, memos.astype(int).tolist(), strict=True):
                model[key] = follow(arm, tuple(memo)), tuple(memo)
        elif action == 3 and len(divisions) < _MOST_DIVISIONS:
            new_arm = 4 + len(divisions)
            divisions.append(
                (int(rng.integers(0, new_arm)), int(rng.integers(0, _WIDTH)), int(rng.integers(0, 8)), new_arm)
            )
            frontier.divide(*divisions[-1])
            model = {key: (follow(arm, vector), vector) for key, (arm, vector) in model.items()}
        elif action == 4 and model:
            n = frontier.give_up(frontier.draw(np.ones(len(frontier.waiting), np.int64), rng).slots[:1])
            left = {key: each for key, each in model.items() if frontier.states([key]) == [State.WAITING]}
            gone = len(model) - len(left)
            _require(n == 1 == gone, f"give_up() of one link said {n}, and gave {gone} up")
            model = left
        else:
            _draw(frontier, model, rng)
        frontier.check()
        counts = Counter(arm for arm, _ in model.values())
        _require(
            frontier.waiting.tolist() == [counts[arm] for arm in range(len(frontier.waiting))]
            and len(frontier) == len(model),
            f"after divisions arms hold {frontier.waiting.tolist()} links, it should be {dict(counts)}",
        )
        on_hosts = Counter(f"host{key % 4}" for key in model)
        said = dict(zip(frontier.hosts, frontier.host_waiting.tolist(), strict=True))
        _require(+Counter(said) == on_hosts, f"host_waiting says {said}, it should be {dict(on_hosts)}")
        vectors = [list(vector) for _, vector in model.values()]
        _require(frontier.vectors([*model]).tolist() == vectors, "vectors() does not say what was pushed last")
    frontier.close()


def _draw(frontier: Frontier, model: dict[int, tuple[int, tuple[int, ...]]], rng: np.random.Generator) -> None:
    """Draw, and take one of what was drawn."""
    closed = rng.random(len(frontier.hosts)) < 0.3
    busy = {f"host{i}" for i in range(4) if rng.random() < 0.3}
    shut = busy | {name for name, is_closed in zip(frontier.hosts, closed.tolist(), strict=True) if is_closed}
    counts = rng.integers(0, 3, len(frontier.waiting))
    drawn = frontier.draw(counts, rng, busy=busy, closed=closed)
    open_arms = {arm for key, (arm, _) in model.items() if f"host{key % 4}" not in shut}
    wanted = [arm for arm, count in enumerate(counts.tolist()) for _ in range(count) if arm in open_arms]
    _require(
        drawn.arms.tolist() == wanted, f"draw({counts}) gave links of the arms {drawn.arms}, it should be {wanted}"
    )
    hosts = {frontier.hosts[host] for host in drawn.hosts}
    _require(not hosts & shut, f"draw() gave links of {sorted(hosts & shut)}, which are busy or closed")
    for slot, arm, vector in zip(drawn.slots.tolist(), drawn.arms.tolist(), drawn.vectors.tolist(), strict=True):
        pick = frontier.take_slot(slot)
        if pick is None:  # it was drawn twice
            continue
        known = model[pick.key]
        got = pick.arm, tuple(pick.memo.astype(int).tolist()) if pick.memo is not None else None
        _require(
            got == known == (arm, tuple(vector)), f"what was drawn as {arm, vector} is {known}, and was taken as {got}"
        )
        if rng.random() < 0.5:
            frontier.release(pick)
        else:
            frontier.settle(pick)
            del model[pick.key]


def _require_same(pick: Pick, link: Link, origin: int, place: Placement) -> None:
    got = pick[1:7], pick.origin, pick.method, pick.payload
    wanted = (link.key, link.url, link.host, link.depth, place.arm, place.rank), origin, place.method, link.payload
    _require(got == wanted, f"a pick came out as {got} that went in as {wanted}")
    same = pick.memo is place.memo is None or np.array_equal(pick.memo, place.memo)  # type: ignore[arg-type]
    _require(same, f"a pick came out with the memo {pick.memo} that went in with {place.memo}")


def _compare(
    frontier: Frontier,
    model: dict[int, Placement],
    flying: set[int],
    settled: dict[int, State],
    hosts: dict[int, str],
    rng: np.random.Generator,
) -> None:
    frontier.check()
    _require(len(frontier) == len(model), f"{len(frontier)} links wait, it should be {len(model)}")
    counts = Counter(place.arm for place in model.values())
    busy = {"host1"}
    open_counts = Counter(place.arm for key, place in model.items() if hosts[key] not in busy)
    awake = frontier.awake(busy)
    for arm, head in enumerate(frontier.heads):
        best = max((place.rank for place in model.values() if place.arm == arm), default=-np.inf)
        _require(head == best, f"arm {arm} says that its best rank is {head}, it is {best}")
    for arm, waiting in enumerate(frontier.waiting):
        _require(waiting == counts[arm], f"arm {arm} holds {waiting} links, it should be {counts[arm]}")
        _require(
            awake[arm] == open_counts[arm], f"arm {arm} has {awake[arm]} links awake, it should be {open_counts[arm]}"
        )
    keys = [*model, *flying, *settled, -1]
    wanted = [State.WAITING] * len(model) + [State.FLYING] * len(flying) + [*settled.values(), State.NEW]
    _require(frontier.states(keys) == wanted, "states() does not say what happened to the keys")
    arm = int(rng.integers(0, 7))
    scanned = {link.key: place for link, place in frontier.scan(arm)}
    expected = {key for key, place in model.items() if place.arm == arm}
    _require(scanned.keys() == expected, f"scan({arm}) gave other links than those that wait there")
    drawn = [link.key for link, _ in frontier.sample(arm, 4, rng)]
    _require(len(set(drawn)) == len(drawn) == min(4, len(expected)), f"sample() gave {drawn} of {len(expected)} links")
    _require(set(drawn) <= expected, "sample() gave links that do not wait in the arm")


class _Site:
    """A small web on three hosts: a tree with cross links, some dead links, and some pages worth something."""

    def __init__(self, pages: int) -> None:
        rng = np.random.default_rng(7)
        self.pages = pages
        self.links = [
            [i for i in (2 * page + 1, 2 * page + 2, *rng.integers(0, pages, 3).tolist()) if i < pages]
            for page in range(pages)
        ]
        self.dead = {i for i in range(3, pages) if i % 11 == 3}
        self.worth = {i for i in range(pages) if i % 5 == 4} - self.dead
        reached, queue = {0}, [0]
        while queue:
            page = queue.pop()
            if page not in self.dead:
                fresh = set(self.links[page]) - reached
                reached |= fresh
                queue.extend(fresh)
        self.dead_urls = {self.link(page).url for page in self.dead}
        self.reachable = {self.link(page).url for page in reached}

    def link(self, page: int) -> Link:
        place = "nav" if page % 2 else "main"
        path = f"html/body/{place}/ul/li/a"
        return Link(f"http://h{page % 3}/{page}", page, f"h{page % 3}", page.bit_length(), f"page {page}", path)

    def answer(self, pick: Pick) -> tuple[Outcome, list[Link]]:
        if pick.key in self.dead:
            return Outcome(pick=pick, status=404, mime="text/html", error="http_error"), []
        outcome = Outcome(pick=pick, status=200, mime="text/html", size=100, items=float(pick.key in self.worth))
        return outcome, [] if pick.method == "HEAD" else [self.link(page) for page in self.links[pick.key]]


class _WatchingCrawl(Crawl):
    """A crawl that sees whether a policy changes what it is given."""

    def _place(self, links: Sequence[Link], source: Outcome | None, origin: int) -> int:
        before = list(links)
        added = super()._place(links, source, origin)
        _require(list(links) == before, "place() changed the links that it was given")
        return added


def _crawl(policy: Policy, site: _Site, *, seed: int, in_flight: int, pickle_after: int = -1) -> list[tuple[str, str]]:
    crawl = _WatchingCrawl(policy, seed=seed, strict=True)
    crawl.add([site.link(0)])
    order: list[tuple[str, str]] = []
    out: list[Pick] = []
    released = 0
    while True:
        busy = {pick.host for pick in out} if in_flight > 1 else set()
        pick = crawl.next(busy) if len(out) < in_flight else None
        if pick is not None:
            _require(pick.host not in busy, f"select() gave a link of the busy host {pick.host}")
            _check_explanation(crawl.policy, pick)
            if len(order) % 13 == 12 and released < len(order) // 13:
                released += 1
                crawl.release(pick.id)
                continue
            crawl.sent(pick.id)
            order.append((pick.url, pick.method))
            out.append(pick)
            if len(order) == pickle_after:
                crawl.policy = _copy(crawl.policy)
                crawl.policy.attach(crawl.frontier)
            continue
        if not out:
            break
        outcome, links = site.answer(out.pop(0))
        crawl.report(outcome, links)
        _require(len(order) < 20 * site.pages, "it fetches the same pages again and again")
    crawl.frontier.check()
    _require(
        not len(crawl.frontier), f"select() gives nothing though {len(crawl.frontier)} links wait and no host is busy"
    )
    return order


def _copy(policy: Policy) -> Policy:
    try:
        copy: Policy = pickle.loads(pickle.dumps(policy))  # noqa: S301 (made a moment ago)
    except Exception as error:
        raise AssertionError(f"it cannot be pickled in mid-crawl: {error}") from error
    _require(not hasattr(copy, "frontier"), "it was pickled with its frontier; extend super().__getstate__()")
    return copy


def _check_explanation(policy: Policy, pick: Pick) -> None:
    reasons = policy.explain(pick)
    _require(isinstance(reasons, dict), f"explain() gave {reasons!r}; return a dict")
    try:
        json.dumps(reasons, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise AssertionError(f"explain() gave {reasons!r}, which JSON cannot hold: {error}") from error


def _random_link(rng: np.random.Generator) -> Link:
    key = int(rng.integers(0, 120))
    return Link(f"http://host{key % 4}/{key}", key, f"host{key % 4}", int(rng.integers(0, 9)), payload=bytes([key]))


def _random_place(rng: np.random.Generator) -> Placement:
    memo = np.array([1.5], np.float32) if rng.random() < 0.3 else None
    return Placement(int(rng.integers(0, 6)), float(rng.integers(0, 50)), memo, "HEAD" if rng.random() < 0.2 else "GET")


def _first_difference(one: Sequence[object], two: Sequence[object]) -> str:
    pairs: Iterator[tuple[object, object]] = zip(one, two, strict=False)
    return next(
        (f"step {i}: {a} and {b}" for i, (a, b) in enumerate(pairs) if a != b), f"{len(one)} and {len(two)} steps"
    )


def _require(condition: object, what: str) -> None:
    if not condition:
        raise AssertionError(what)
