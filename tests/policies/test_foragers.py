"""Foragers: the algorithms of the paper, with numbers computed by hand, and that all of them continue in any case."""

from __future__ import annotations

import pickle
import random
from collections import Counter
from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest

from scrapy_focus import ConfigError, Crawl, ReinforcingAgent, State, check_policy, memory_frontier
from scrapy_focus.lab.checks import policy as policy_checks
from scrapy_focus.policies.foragers import Foragers
from scrapy_focus.policies.foragers.forager import Forager
from scrapy_focus.policies.foragers.pages import Pages
from scrapy_focus.policies.foragers.rules import Rules
from scrapy_focus.policies.foragers.td import Td
from tests.made import Clock, failure, link, links
from tests.made import page as came

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from scrapy_focus import Link, Outcome, Pick

HOUR = 3600.0
BEGIN = datetime(2026, 1, 5, tzinfo=UTC).timestamp()
PUBLISHED = "palotai-2005"
TEXT = "word of some text that goes on and says nothing " * 10


class Text(NamedTuple):
    """A page to read."""

    url: str
    text: str
    status: int = 200
    headers: Mapping[str, str] = {}
    kind: str = "text/html"


def article(text: str = TEXT, *, changed: float | None = None) -> str:
    """Return a page with a text that says when it changed."""
    said = "" if changed is None else datetime.fromtimestamp(changed, UTC).isoformat()
    head = said and f'<meta property="article:modified_time" content="{said}">'
    return f"<html><head>{head}</head><body><p>{text}</p></body></html>"


class World:
    """A crawl of a graph of pages; each takes a second."""

    def __init__(
        self, graph: Mapping[int, Iterable[int]], *seeds: int, goal: Any = None, crawl: Mapping[str, Any] | None = None,
        **params: Any,
    ) -> None:  # fmt: skip
        self.graph = dict(graph)
        self.hosts = 1
        self.texts: dict[int, str] = {}
        self.clock = Clock()
        self.clock.now = BEGIN
        self.policy = Foragers(**params)
        options = {"seed": 0, "frontier": memory_frontier, "goal": goal or (lambda outcome: 0.0), **(crawl or {})}
        self.crawl = Crawl(self.policy, strict=True, clock=self.clock, explain=True, **options)
        self.crawl.add(links(*seeds))

    @property
    def fleet(self) -> list[Forager]:
        return list(self.policy.fleet.values())

    def visit(self, answer: Callable[[Pick], Outcome] | None = None, busy: Iterable[str] = ()) -> int | None:
        """Fetch the next page, where there is one, and return its key."""
        pick = self.crawl.next(set(busy))
        if pick is None:
            return None
        self.crawl.sent(pick.id)
        self.clock.now += 1
        self.report(pick, None if answer is None else answer(pick))
        return pick.key

    def report(self, pick: Pick, outcome: Outcome | None = None) -> None:
        text = self.texts.get(pick.key)
        if outcome is None:
            outcome = came(pick, page=None if text is None else Text(pick.url, text))
        has_links = not outcome.error and outcome.changed is not False
        self.crawl.report(outcome, self.links(*self.graph.get(pick.key, [])) if has_links else [])

    def links(self, *keys: int) -> list[Link]:
        """Return links to pages, on as many hosts by turns."""
        return [link(key, host=f"h{key % self.hosts}" if self.hosts > 1 else "h") for key in keys]

    def visits(self, n: int) -> list[int | None]:
        return [self.visit() for _ in range(n)]

    def sleep(self) -> None:
        """Let the time pass until something can be chosen."""
        status = self.crawl.status()
        times = [time for time in (status.due, status.next_due) if time is not None and time > self.clock.now]
        assert times, "nothing would ever happen again"
        self.clock.now = min(times)

    def next(self, answer: Callable[[Pick], Outcome] | None = None) -> int:
        """Fetch the next page, however long that takes."""
        for _ in range(10):
            if (key := self.visit(answer)) is not None:
                return key
            self.sleep()
        raise AssertionError("nothing was chosen")


def alone(mode: str, **rules: Any) -> dict[str, Any]:
    """Return the parameters of one forager alone, as published."""
    return {"fewest": 1, "most": 1, "preset": PUBLISHED, "mode": mode, "rules": rules}


def forager(known: Mapping[int, float], path: Iterable[tuple[int, float]] = (), **rules: Any) -> Forager:
    """Return a forager that knows pages and has been at some."""
    made = Forager(0, seat=0, born=0.0, home=-1, weblog=dict(known), td=Td(2), rules=Rules.of(rules))
    made.path.extend(path)
    return made


def test_constants_are_those_of_the_paper() -> None:
    """Sections 3.1 to 3.3: of lists, learning, rewards, scores, ages and states; three minutes are 70 requests."""
    rules = Foragers(preset=PUBLISHED)._rules
    assert (rules.start, rules.weblog, rules.beta, rules.steps) == (10, 100, 0.3, 100)
    assert (rules.gamma, rules.alpha) == (0.9, 0.1)
    assert (rules.reward, rules.penalty) == (100, 1)
    assert (rules.first, rules.high, rules.low, rules.cost, rules.gain) == (100, 200, 0, 0.05, 1)
    assert (rules.hours, rules.k, rules.slice) == (24, 50, 70)
    assert (Foragers().fewest, Foragers().most) == (2, 16)


@pytest.mark.parametrize("centred", [True, False])
def test_a_rule_says_whether_states_are_centred(centred: bool) -> None:
    """Without it, they are tangents of probabilities, which are not below 0."""
    rules = {"k": 3, "sample": 4, "centred": centred}
    world = World({1: [2], 2: [3], 3: [4]}, 1, mode="RL", lookahead="none", fewest=1, most=1, rules=rules)
    world.texts = {key: article(f"{word} and wine") for key, word in enumerate(("rail", "steel", "moon", "tax"), 1)}
    assert world.visits(4) == [1, 2, 3, 4]
    assert (world.policy.pages.states([1, 2, 3, 4]).min() < 0) == centred


# The weblog (algorithm 1)


def test_a_page_is_worth_what_its_step_and_all_later_ones_earned() -> None:
    """Not discounted; what was known is mixed with 0.3 of that, and the best come first."""
    one = forager({2: 4.0, 9: 20.0}, [(1, 5.0), (2, 0.0), (3, -1.0), (4, 10.0)])
    one.learn_path()
    assert list(one.weblog.items()) == [
        (9, 20.0), (1, 14.0), (4, 10.0), (3, 9.0), (2, pytest.approx(0.7 * 4 + 0.3 * 9)),
    ]  # fmt: skip


def test_a_weblog_has_a_hundred_entries_and_a_starting_list_ten() -> None:
    """The best ones; equals stay in their order. A path begins at any of the ten."""
    one = forager({key: float(200 - key) for key in range(100)}, [(500, 0.0), (501, 150.5), (502, -2.0)])
    one.learn_path()
    assert len(one.weblog) == 100
    assert (one.weblog[500], one.weblog[501]) == (148.5, 148.5)
    assert {98, 99, 502}.isdisjoint(one.weblog)
    many = World({}, *range(1, 31), **alone("WL"))
    starts = Counter(many.visits(400))
    assert starts.keys() == set(range(1, 11))
    assert all(20 < n < 60 for n in starts.values()), "drawn at random (algorithm 11)"


def test_what_a_path_earned_decides_where_the_next_one_begins() -> None:
    """On a path 1, 2, 3, with a look at 4 that earns 100: all are worth 100, but 1 was known with 0."""
    graph = {1: [2], 2: [3], 3: [4]}
    world = World(graph, 1, goal=lambda outcome: float(outcome.pick.key == 4), **alone("WL", steps=2))
    assert world.visits(6) == [1, 2, 2, 3, 3, 4]
    (one,) = world.fleet
    assert one.weblog == {3: 100.0, 2: 100.0, 1: pytest.approx(30.0)}
    assert one.path == []
    assert one.step is not None
    assert one.step.key in (1, 2, 3)


@pytest.mark.parametrize("mode", ["RL", "fixed"])
def test_who_does_not_learn_the_weblog_starts_from_the_first_seeds(mode: str) -> None:
    """Whatever was earned."""
    world = World({1: [2]}, 1, goal=lambda outcome: float(outcome.pick.key == 2), **alone(mode, steps=1))
    assert world.visits(8) == [1, 2, 2, 1, 2, 2, 1, 2]
    assert world.fleet[0].weblog == {1: 0.0}


# Paths (algorithms 10 to 12)


def test_a_path_ends_after_a_hundred_steps() -> None:
    """From the start on: the 102nd page is a start again."""
    chain = {key: [key + 1] for key in range(1, 300)}
    world = World(chain, 1, mode="fixed", lookahead="none", shortest=0, fewest=1, most=1)
    assert world.visits(203) == [*range(1, 102), *range(1, 102), 1]
    assert set(world.fleet[0].urls) == {1}, "of those of earlier paths nothing is remembered"


def test_a_path_ends_where_no_link_is_left() -> None:
    """Those to pages that it visited are none."""
    world = World({1: [2, 1], 2: [1, 2]}, 1, **alone("fixed"))
    visits = [(world.visit(), world.crawl.why["part"]) for _ in range(9)]
    path = [(1, "start"), (2, "look"), (2, "step"), (1, "look")]
    assert visits == [*path, *path, (1, "start")]


def test_no_more_links_are_open_than_have_room() -> None:
    """The first ones that were found on the path, and none twice."""
    one = forager({})
    one.go(3)
    one.discover(range(4000))
    one.discover(range(2000, 8000))
    assert list(one.open) == [key for key in range(5001) if key != 3]


def test_a_link_from_elsewhere_is_open_until_it_is_followed() -> None:
    """In each path, as no page that the forager visits may have it."""
    one = forager({1: 0.0})
    one.offer(7)
    one.offer(8)
    one.begin_path()
    one.go(1)
    one.discover([2])
    assert list(one.open) == [7, 8, 2]
    one.go(7)
    one.begin_path()
    assert list(one.open) == [8]
    for key in range(100, 1200):
        one.offer(key)
    assert list(one.offered) == [*range(200, 1200)]


def test_all_links_of_a_page_are_looked_at() -> None:
    """As published; those to pages of the path, too, but not that to the page itself."""
    world = World({1: [1, 2], 2: [1, 5, 2]}, 1, **alone("fixed"))
    assert world.visits(3) == [1, 2, 2]
    assert sorted(world.visits(2), key=str) == [1, 5]
    assert world.visits(2) == [5, 1]


@pytest.mark.parametrize(("lookahead", "looked"), [("none", 0), (2, 2), ("full", 5)])
def test_so_many_links_are_looked_at(lookahead: Any, looked: int) -> None:
    """Each step is its page and these."""
    graph = {1: [11, 12, 13, 14, 15]}
    world = World(graph, 1, mode="fixed", lookahead=lookahead, shortest=0, fewest=1, most=1)
    whys = []
    for _ in range(1 + looked + 1):
        world.visit()
        whys.append((world.crawl.why["part"], world.crawl.why["step"]))
    assert whys == [("start", 1), *[("look", 1)] * looked, ("step", 2)]


def test_the_links_that_promise_most_are_looked_at_and_followed() -> None:
    """By the state of their pages, times the weights (algorithm 3)."""
    world = World({1: [11, 12, 13, 14], 12: [15]}, 1, mode="fixed", lookahead=2, shortest=0, fewest=1, most=1)
    pages, td = world.policy.pages, world.fleet[0].td
    for key, value in ((11, 0.1), (12, 0.9), (13, -0.5), (14, 0.5)):
        pages.set_state(pages.see(key), np.eye(1, 50, dtype=np.float32)[0] * value)
    td.weights = np.eye(1, 50)[0] * 2.0
    assert world.visits(1) == [1]
    assert set(world.visits(2)) == {12, 14}
    assert world.visits(1) == [12]
    assert world.crawl.why["value"] == pytest.approx(1.8)


def test_a_page_is_spared_that_was_visited_just_before() -> None:
    """Its links are remembered; after so many seconds it is fetched again."""
    graph = {1: [2, 3], 2: [4], 3: [], 4: []}
    world = World(graph, 1, mode="fixed", lookahead="full", shortest=100.0, fewest=1, most=1)
    assert sorted(world.visits(4), key=str) == [1, 2, 3, 4]
    seen: dict[int, float] = {}
    for _ in range(30):
        key = world.next()
        at = world.clock.now
        assert at - seen.get(key, 0.0) >= 100
        seen[key] = at
    assert set(seen) == {1, 2, 3, 4}


# The order of links (algorithm 4)


@pytest.mark.parametrize("normalised", [False, True])
def test_a_step_moves_the_weights_by_its_error(normalised: bool) -> None:
    """The reward of the step, and the value of its page by 0.9, less that of the page before; times 0.1 and the state.

    After a restart there is no earlier page.
    """
    rules = {"k": 3, "sample": 4, "steps": 5, "normalised": normalised}
    chain = {key: [key + 1] for key in range(1, 6)}
    world = World(
        chain, 1, goal=lambda outcome: float(outcome.pick.key % 2), mode="RL", lookahead="none", shortest=0, fewest=1,
        most=1, rules=rules,
    )  # fmt: skip
    words = ["wine and rail", "steel and rail", "the price of steel", "moon and wine", "rail", "tax on wine and steel"]
    world.texts = {key: article(words[key - 1]) for key in range(1, 7)}
    world.visits(12)
    (one,) = world.fleet
    moved = 0
    for _ in range(12):
        weights, before = one.td.weights.copy(), one._before
        key = world.visit()
        assert key is not None
        expected = weights
        if key == 1:
            assert before is None
        else:
            assert before is not None
            error = 100.0 * (key % 2) + 0.9 * weights @ world.policy.pages.state(key) - weights @ before
            length = before @ before if normalised else 1.0
            expected = weights + 0.1 * error * before / length
            moved += bool(np.abs(expected - weights).max() > 1e-3)
        assert one.td.weights == pytest.approx(expected, rel=1e-4)
    assert moved > 5


def test_pages_have_states_when_enough_of_them_were_read_and_links_to_others_have_predicted_ones() -> None:
    """Those that were read before, too; a page that was read keeps its own, whatever links to it say."""
    rules = {"k": 3, "sample": 4}
    world = World(
        {1: [2], 2: [3], 3: [4], 4: [5], 5: [1, 7, 8]}, 1, mode="RL", lookahead="none", shortest=0, fewest=1, most=1,
        rules=rules,
    )  # fmt: skip
    words = ["wine and rail", "steel and rail", "the price of steel", "moon and wine", "wine of steel"]
    world.texts = {key: article(words[key - 1]) for key in range(1, 6)}
    pages = world.policy.pages
    assert world.visits(3) == [1, 2, 3]
    assert not pages.states([1, 2, 3, 4]).any()
    assert world.visits(1) == [4]
    assert pages.states([1, 2, 3, 4]).any(axis=1).all()
    read = pages.states([1, 2, 3, 4])
    assert len({tuple(state.tolist()) for state in read}) == 4
    assert not pages.states([7, 8]).any()
    assert world.visits(1) == [5]
    assert pages.states([7, 8]).any(axis=1).all()
    known = pages.get(1)
    assert known is not None
    world.policy._predict(5, links(1, 9), world.policy._texts)
    assert pages.states([1, 2, 3, 4]).tolist() == read.tolist()
    assert pages.state(9).any()


# What is sent (algorithms 5 and 7)


def test_the_first_who_sends_a_document_earns_and_all_others_pay() -> None:
    """A page that two want is fetched once, and both receive it; the score is independent of the reward."""
    world = World({}, 1, goal=ReinforcingAgent(), fewest=2, most=2, preset=PUBLISHED, mode="WL")
    world.texts[1] = article(changed=BEGIN)
    assert world.visits(1) == [1]
    first, second = world.fleet
    assert [each.weblog for each in world.fleet] == [{1: pytest.approx(30.0)}, {1: pytest.approx(-0.3)}]
    assert [each.score for each in world.fleet] == [pytest.approx(100.95), pytest.approx(99.95)]
    assert (first.requests, second.requests, world.policy.sent, world.policy.earned) == (1, 0, 2, 1)
    assert world.crawl.why["wanted_by"] == [0, 1]
    assert world.visits(1) == [1]
    assert (world.policy.sent, world.policy.earned) == (2, 1), "not twice as it is"
    world.texts[1] = article(TEXT + "more", changed=BEGIN)
    world.visits(1)
    assert (world.policy.sent, world.policy.earned) == (4, 2), "but in another version"
    world.clock.now = BEGIN + 25 * HOUR
    world.texts[1] = article(TEXT + "and more", changed=BEGIN + HOUR / 2)
    world.visits(1)
    assert (world.policy.sent, world.policy.earned) == (4, 2), "if that is no older than a day"
    world.texts[1] = article(TEXT + "and more", changed=BEGIN + 2 * HOUR)
    world.visits(1)
    assert (world.policy.sent, world.policy.earned) == (6, 3)


def test_a_step_brings_what_its_page_and_all_linked_ones_bring() -> None:
    """Three documents: 100 for each to the first who sends them, -1 for each to the other (sections 3.2 and 3.3)."""
    world = World({1: [2, 3]}, 1, goal=ReinforcingAgent(), fewest=2, most=2, preset=PUBLISHED, mode="RL")
    world.texts = {key: article(f"{TEXT} {key}", changed=BEGIN) for key in (1, 2, 3)}
    world.visits(3)
    first, second = world.fleet
    assert (first.path, second.path) == ([(1, 300.0)], [(1, -3.0)])


def test_what_is_sent_was_not_sent_before_and_changed_within_a_day() -> None:
    """Nothing is sent without a known date of change."""
    one = forager({})
    assert one.wants_to_send(1, 7, 0.0, 24 * HOUR)
    assert not one.wants_to_send(1, 7, 0.0, 24 * HOUR + 1)
    assert not one.wants_to_send(1, 7, None, 0.0)
    one.send(1, 7, HOUR, is_new=False)
    assert not one.wants_to_send(1, 7, HOUR, 2 * HOUR)
    assert one.wants_to_send(1, 8, HOUR, 2 * HOUR)
    assert one.wants_to_send(2, 7, HOUR, 2 * HOUR)


def test_what_was_sent_is_remembered_for_a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """And no more than so many."""
    one = forager({})
    for key in range(30):
        one.send(key, 7, key * HOUR, is_new=False)
    assert list(one._had) == [*range(5, 30)]
    monkeypatch.setattr("scrapy_focus.policies.foragers.forager._SENT", 10)
    one.send(30, 7, 30 * HOUR, is_new=False)
    assert list(one._had) == [*range(21, 31)]


def test_a_page_that_came_back_as_it_was_is_known_as_it_was() -> None:
    """Its links are followed, and who had not sent it sends it."""
    world = World({1: [2], 2: [3]}, 1, goal=ReinforcingAgent(), **alone("fixed"))
    world.texts = dict.fromkeys((1, 2, 3), article(changed=BEGIN))
    assert world.visits(5) == [1, 2, 2, 3, 3]
    unchanged = [world.visit(lambda pick: came(pick, status=304, changed=False, size=0)) for _ in range(60)]
    assert set(unchanged) == {1, 2, 3}
    assert world.policy.sent == 3
    late = world.policy._add(-1, {1: 0.0})
    assert late is not None
    world.policy._go_on(late)
    for _ in range(10):
        world.visit(lambda pick: came(pick, status=304, changed=False, size=0))
    assert (late.sent, late.earned) == (3, 0)


# Turns, multiplication and death (algorithms 6, 8 and 9)


def test_foragers_take_turns_of_seventy_requests() -> None:
    """With one on each of three hosts, so that no page is wanted by two."""
    world = World({key: range(key + 3, key + 12, 3) for key in range(3000)}, **by_host(most=3))
    world.hosts = 3
    world.crawl.add(world.links(0, 1, 2))
    served = []
    for _ in range(400):
        world.visit()
        served.append(world.crawl.why["forager"])
    assert [(number, len(list(group))) for number, group in groupby(served)] == [
        (0, 70), (1, 70), (2, 70), (0, 70), (1, 70), (2, 50),
    ]  # fmt: skip


def by_host(**params: Any) -> dict[str, Any]:
    """Return parameters of foragers that each keep to a host, and learn nothing."""
    return {"mode": "fixed", "territory": "host", "lookahead": "none", "shortest": 0, "fewest": 1, **params}


def test_whose_host_is_busy_is_passed_over() -> None:
    """With a forager on each of two hosts."""
    world = World({}, **by_host(most=4))
    world.crawl.add([link(1, host="a"), link(2, host="b")])
    assert [each.home for each in world.fleet] == [0, 1]
    assert world.visits(3) == [1, 1, 1]
    assert [world.visit(busy={"a"}) for _ in range(3)] == [2, 2, 2]
    assert world.visit(busy={"a", "b"}) is None
    assert world.visits(1) == [1]


def test_the_last_one_on_a_host_stays() -> None:
    """However little it earned."""
    world = World({}, **by_host(fewest=1, most=4, rules={"slice": 1}))
    world.crawl.add([link(1, host="a"), link(2, host="b")])
    for each in world.fleet:
        each.score = -10.0
    world.visits(20)
    assert [each.number for each in world.fleet] == [0, 1]


def test_foragers_settle_on_each_host_that_has_none() -> None:
    """While there is room; links to it from elsewhere are given to the existing one."""
    world = World({}, **by_host(fewest=1, most=3, rules={"slice": 3}))
    world.hosts = 5
    world.graph = {0: [1, 2, 3], 1: [], 2: [0, 7], 3: []}
    world.crawl.add(world.links(0))
    visited = world.visits(40)
    assert [each.home for each in world.fleet] == [0, 1, 2]
    assert {0, 1, 2, 7} == set(visited), "3 is on a host for which there is no room"
    for each in world.fleet:
        assert {key % 5 for key in [*each.weblog, *each.visited, *each.open]} == {each.home}


def at_the_end_of_a_turn(score: float, *, most: int = 16, **rest: Any) -> World:
    """Return a world where the first of two foragers has had a turn, with this score before it."""
    graph = {key: [200] for key in range(1, 101)}
    world = World(graph, *range(1, 101), **{"fewest": 2, "most": most, "preset": PUBLISHED, "mode": "WL", **rest})
    one, other = world.fleet
    one.weblog = {key: float(1000 - key) for key in range(1, 101)}
    one.score = score
    other.score = 50.0
    while one.used or not one.requests:
        world.visit()
    return world


def test_who_earned_enough_has_a_child_with_half_of_its_weblog() -> None:
    """From a score of 200 on; both have 100 then."""
    world = at_the_end_of_a_turn(200.0, rules={"slice": 1})
    one, _, child = world.fleet
    assert (one.score, child.score, one.children) == (100.0, 100.0, 1)
    assert (len(one.weblog), len(child.weblog)) == (50, 50)
    assert set(one.weblog) | set(child.weblog) == set(range(1, 101))
    assert all(value == pytest.approx(1000 - key) for key, value in child.weblog.items())
    assert child.urls[next(iter(child.weblog))].startswith("http://h/")
    assert not np.array_equal(one.td.weights, child.td.weights)
    assert len(at_the_end_of_a_turn(199.9, rules={"slice": 1}).fleet) == 2
    assert len(at_the_end_of_a_turn(900.0, most=2, rules={"slice": 1}).fleet) == 2
    heir = at_the_end_of_a_turn(200.0, mode="WLRL", rules={"slice": 1}).fleet
    assert np.array_equal(heir[0].td.weights, heir[2].td.weights)
    assert heir[0].td is not heir[2].td


def test_half_of_a_short_weblog_is_moved_and_one_entry_stays() -> None:
    """A child with nothing starts from the seeds."""
    one = forager({1: 3.0, 2: 2.0, 3: 1.0})
    child = one.halve(np.random.default_rng(0))
    assert len(child) == 1
    assert sorted([*one.weblog, *child]) == [1, 2, 3]
    assert forager({1: 3.0}).halve(np.random.default_rng(0)) == {}
    full = forager(dict.fromkeys(range(100), 0.0))
    moved = full.halve(np.random.default_rng(0))
    assert len(moved) == 50
    assert 15 < sum(key < 50 for key in moved) < 35, "at random: some of the best, and some of the others"


def test_who_earned_nothing_dies_but_never_the_last_ones() -> None:
    """At a score of 0, if there are more than two."""
    world = at_the_end_of_a_turn(0.0, rules={"slice": 1})
    assert (len(world.fleet), world.policy.born) == (2, 2)
    graph = {key: [key % 50 + 1, key * 7 % 50 + 1, key * 3 % 50 + 1] for key in range(1, 51)}
    three = World(graph, *range(1, 11), fewest=3, most=3, preset=PUBLISHED, mode="fixed", rules={"slice": 2})
    three.policy.fewest = 2
    dying = three.fleet[1]
    dying.score = 0.0
    numbers = [each.number for each in three.fleet]
    for _ in range(40):
        three.visit()
    assert [each.number for each in three.fleet] == [number for number in numbers if number != dying.number]
    assert (len(three.fleet), three.policy.born) == (2, 3)
    assert three.visit() is not None


# Everyone continues in any case


def check_waiting(policy: Foragers) -> None:
    """A forager waits only for a page that will arrive, and continues if it can."""
    wanted = policy._wanted
    for (key, numbers), state in zip(wanted.items(), policy.frontier.states(list(wanted)), strict=True):
        assert state in (State.WAITING, State.FLYING), key
        assert numbers
        assert len(set(numbers)) == len(numbers)
        for number in numbers:
            step = policy.fleet[number].step
            assert step is not None
            assert key in step.waits
    for each in policy.fleet.values():
        if each.step is None:
            assert not policy._starts_of(each), "it has where to go"
        else:
            assert each.step.waits, "it waits for nothing"
            assert all(each.number in wanted[key] for key in each.step.waits)
    waiting = [(arm, link.key) for arm in range(len(policy.frontier.waiting)) for link, _ in policy.frontier.scan(arm)]
    for arm, key in waiting:
        assert (arm - 1 in {policy.fleet[number].seat for number in wanted[key]}) if arm else key not in wanted
    assert len(policy._found) <= len(policy.frontier.flying)


def answer_of(pick: Pick, now: float, chance: random.Random) -> Outcome:
    """Return a page of a site with many failures."""
    key, hours = pick.key, int((now - BEGIN) / HOUR)
    if key % 17 == 0:
        return failure(pick, 410 if hours % 3 == 2 else 503)._replace(once=hours % 3 == 2)
    if key % 19 == 0:
        return failure(pick, 404 if hours % 2 else None)
    if key % 23 == 0:
        return came(pick, also=(10_000 + key,))
    if key % 29 == 0:
        return failure(pick, 200)._replace(error="redirect_seen", also=(key // 2,))
    if key % 13 == 0:
        return came(pick, mime="application/pdf")
    return came(pick, changed=chance.choice([None, None, True, False]))


@pytest.mark.parametrize(
    ("params", "in_flight", "most_waiting"),
    [({}, 16, 40), ({"mode": "WLRL", "preset": PUBLISHED}, 16, 30), ({"mode": "WL", "territory": "host"}, 2, None)],
    ids=["learned", "as published", "by host"],
)
def test_all_go_on_whatever_comes(params: dict[str, Any], in_flight: int, most_waiting: int | None) -> None:
    """Failures, moves, pages that are gone, unchanged, or given up; and late seeds."""
    chance = random.Random(1)
    graph = {key: [chance.randrange(1, 300) for _ in range(chance.randrange(12))] for key in range(1, 300)}
    rules = {"slice": 10, "high": 101.0, "low": 99.5, "k": 4, "sample": 20, "steps": 12, "weblog": 10}
    goal = lambda outcome: float(outcome.pick.key % 7 == 0)  # noqa: E731
    world = World(graph, 17, 17, goal=goal, crawl={"most_waiting": most_waiting}, rules=rules, **params)
    out: list[Pick] = []
    served: Counter[int] = Counter()
    for n in range(350):
        world.clock.now += 200 * chance.random()
        if n == 20:
            world.crawl.add(links(*range(40, 60), 17))
        pick = world.crawl.next() if len(out) < in_flight else None
        if pick is not None and n % 11 == 0:
            world.crawl.release(pick.id)
        elif pick is not None:
            world.crawl.sent(pick.id)
            out.append(pick)
        elif out:
            pick = out.pop(chance.randrange(len(out)))
            served.update(world.policy._wanted.get(pick.key, ()))
            world.report(pick, answer_of(pick, world.clock.now, chance))
        else:
            world.sleep()
        check_waiting(world.policy)
    assert world.policy.born > 2
    assert world.crawl.counts["select/none"] == 0
    assert all(served[each.number] for each in world.fleet if each.born < BEGIN + HOUR)


@pytest.mark.parametrize("mode", ["learned", "WL"])
def test_nobody_waits_for_a_page_that_failed_and_is_gone(mode: str) -> None:
    """They start from later seeds."""
    world = World({2: [3]}, 1, mode=mode, shortest=0)
    assert world.visit(lambda pick: failure(pick, 503)) == 1
    assert world.next(lambda pick: failure(pick, 410)._replace(once=True)) == 1
    check_waiting(world.policy)
    assert world.visit() is None
    world.crawl.add(links(2))
    assert set(world.visits(6)) == {2, 3}


def test_a_seed_that_fails_is_asked_for_again_and_another_page_that_is_not_there_is_not() -> None:
    """After an hour, and twice as long each time."""
    world = World({1: [2]}, 1, mode="WL", shortest=0, fewest=1, most=1)
    times = []
    for _ in range(4):
        assert world.next(failure) == 1
        times.append(world.clock.now)
    assert np.diff(times) == pytest.approx([HOUR, 2 * HOUR, 4 * HOUR], abs=3)
    assert [world.next(), world.next(failure)] == [1, 2]
    assert [world.next() for _ in range(5)] == [1] * 5
    world.next(failure)
    failed = world.clock.now
    assert world.next() == 1
    assert world.clock.now - failed == pytest.approx(HOUR, abs=3), "an hour again, as it came meanwhile"


def test_a_page_that_fails_does_not_stop_who_can_go_elsewhere() -> None:
    """For a day, and then it is visited again."""
    world = World({1: [3], 2: [3, 1]}, 1, 2, mode="WLRL", shortest=600.0)
    fails = [world.next(lambda pick: failure(pick, 503) if pick.key == 1 else came(pick)) for _ in range(200)]
    counts = Counter(fails)
    assert counts[2] > 50
    assert counts[1] < 12
    world.clock.now += 48 * HOUR
    assert 1 in [world.next() for _ in range(30)]


def test_what_nobody_wants_is_given_up_first() -> None:
    """And of that what was found last and never fetched."""
    world = World({1: range(2, 22)}, 1, crawl={"most_waiting": 10}, fewest=1, most=1, mode="fixed", lookahead=3)
    world.visit()
    wanted = list(world.policy._wanted)
    assert len(wanted) == 3
    first = [key for key in range(2, 22) if key not in wanted][:5]
    waiting = [key for key in range(1, 22) if world.crawl.knows([key]) == [State.WAITING]]
    assert waiting == sorted([1, *wanted, *first]), "1 was fetched already"


def test_nobody_waits_for_pages_that_were_given_up() -> None:
    """Of twenty pages to look at, unwanted ones are given up first, and then others; the path continues."""
    graph = {1: range(2, 22), **{key: [1] for key in range(2, 22)}}
    world = World(graph, 1, crawl={"most_waiting": 5}, **alone("fixed"))
    world.visit()
    assert len(world.crawl.frontier) <= 5
    check_waiting(world.policy)
    looked = world.visits(5)
    assert world.crawl.why["part"] == "look"
    assert world.visit() in looked
    assert world.crawl.why["part"] == "step"
    check_waiting(world.policy)


def test_who_knows_a_page_by_a_key_that_leads_elsewhere_goes_there() -> None:
    """In any number of redirects: 6 leads to 1, that to 2, which is known by 3."""
    world = World({4: [3, 1, 6], 3: [5]}, 4, mode="fixed", lookahead="full", shortest=0, fewest=1, most=1)
    leads = {6: 1, 1: 2}

    def answer(pick: Pick) -> Outcome:
        if pick.key in leads:
            return failure(pick, 200)._replace(error="redirect_seen", also=(leads[pick.key],))
        return came(pick, also=(2,)) if pick.key == 3 else came(pick)

    for _ in range(10):
        world.visit(answer)
    world.graph[4] = [6]
    visited = [world.visit(answer) for _ in range(12)]
    assert {3, 4, 5} == set(visited)
    check_waiting(world.policy)


def test_a_start_that_leads_to_a_page_that_is_gone_is_forgotten() -> None:
    """It would be waited for for ever."""
    world = World({}, 1, 2, mode="WL", shortest=0, fewest=1, most=1)

    def answer(pick: Pick) -> Outcome:
        if pick.key == 1:
            return failure(pick, 200)._replace(error="redirect_seen", also=(2,))
        return failure(pick, 410)._replace(once=True)

    while world.visit(answer) is not None:
        check_waiting(world.policy)
    assert not world.policy._wanted
    world.crawl.add(links(3))
    assert world.visit() == 3


def test_pages_from_which_nobody_goes_on_are_fetched_in_turn() -> None:
    """Where all starting points are gone."""
    graph = {1: [2, 3, 4]}
    world = World(graph, 1, mode="fixed", lookahead="full", shortest=0, fewest=1, most=1)
    world.visit()

    def file(pick: Pick) -> Outcome:
        return failure(pick, 410)._replace(once=True) if pick.key == 1 else came(pick, mime="application/pdf")

    visited = [world.visit(file) for _ in range(20)]
    assert visited.index(1) < 10
    counts = Counter(visited[10:])
    assert set(counts) == {2, 3, 4}
    assert max(counts.values()) <= 4
    assert world.visit() in (2, 3, 4)
    check_waiting(world.policy)
    assert world.fleet[0].step is not None, "a page came from which one can go on"


def test_a_page_that_nobody_wanted_and_somebody_wants_when_it_is_released_is_fetched_for_him() -> None:
    """It waits for its own turn."""
    world = World({1: [2, 3]}, 1, mode="fixed", lookahead="none", shortest=0, fewest=1, most=1)
    world.visit()
    (one,) = world.fleet
    assert one.step is not None
    pick = world.policy.frontier.take(5 - one.step.key)
    assert pick is not None
    assert pick.arm == 0
    world.policy._want(one, one.step, [pick.key])
    world.policy.frontier.release(pick)
    world.policy.release(pick)
    check_waiting(world.policy)
    assert set(world.visits(2)) == {2, 3}


def test_a_page_of_ten_thousand_links_is_like_any_other() -> None:
    """So many are remembered of it, and so many open, as there is room for."""
    world = World({1: range(1, 10_001), 2: [1, 2]}, 1, 2, goal=lambda outcome: 0.0, **alone("WLRL"))
    for _ in range(700):
        assert world.visit() is not None
    (one,) = world.fleet
    assert len(one.open) <= 5000
    known = world.policy.pages.get(1)
    assert known is not None
    assert len(known.links) == 300 - 1
    check_waiting(world.policy)


def test_no_more_pages_are_remembered_than_have_room() -> None:
    """Those that were seen last, each with its own state."""
    pages = Pages(2, most=3)
    for key in (1, 2, 3, 1, 4, 5):
        pages.set_state(pages.see(key), np.array([key, 0], np.float32))
    assert len(pages) == 3
    assert pages.states([1, 2, 3, 4, 5])[:, 0].tolist() == [1, 0, 0, 4, 5]
    assert pages.slots.used <= 4, "new ones have the places of those that are forgotten"
    copy = pickle.loads(pickle.dumps(pages))
    for each in (pages, copy):
        each.see(6)
        each.set_state(each.see(7), np.array([7, 0], np.float32))
        each.see(7).links = np.array([1, 2])
    assert copy.states(range(8)).tolist() == pages.states(range(8)).tolist()
    assert copy.slots.used == pages.slots.used <= 4
    again = pickle.loads(pickle.dumps(copy))
    assert [again.get(key).links.tolist() for key in (5, 6, 7)] == [[], [], [1, 2]]


@pytest.mark.parametrize(
    "params",
    [
        {"roam": 1.5}, {"roam": "often"}, {"explore": 0.9}, {"fewest": 3, "most": 2}, {"lookahead": 0},
        {"lookahead": True}, {"lookahead": "full"}, {"order": "random"}, {"mode": "learned", "preset": PUBLISHED},
        {"rules": {"beta": 0.0}}, {"rules": {"first": 200.0}}, {"rules": {"betta": 0.3}}, {"rules": {"alpha": 1.0}},
    ],
)  # fmt: skip
def test_parameters_that_cannot_be_are_refused(params: dict[str, Any]) -> None:
    """With a name that says which."""
    with pytest.raises(ConfigError, match=next(iter(params)) if "rules" not in params else "rules"):
        Foragers(**params)


SMALL = {"slice": 10, "k": 4, "sample": 20, "weblog": 20}


@pytest.mark.parametrize("mode", ["WL", "RL", "WLRL", "fixed"])
@pytest.mark.parametrize("territory", ["any", "host"])
@pytest.mark.parametrize(
    "rest", [{}, {"lookahead": "full"}, {"lookahead": 3, "order": "random"}, {"preset": PUBLISHED}]
)
@pytest.mark.slow
def test_those_of_the_paper_keep_their_promises(
    mode: Any, territory: Any, rest: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In all modes; those that change nothing of the published rules need up to forty requests for each page."""
    if rest.get("preset") == PUBLISHED:
        monkeypatch.setattr(policy_checks, "_VISITS", 40)
    check_policy(lambda: Foragers(mode=mode, territory=territory, rules=SMALL, **rest))


@pytest.mark.parametrize("territory", ["any", "host"])
@pytest.mark.slow
def test_those_beyond_it_keep_their_promises(territory: Any) -> None:
    """Without custom rules."""
    check_policy(lambda: Foragers(territory=territory))


@pytest.mark.slow
@pytest.mark.parametrize("params", [{}, {"mode": "WLRL", "lookahead": 2}, {"mode": "WL", "territory": "host"}])
def test_some_keep_their_promises(params: dict[str, Any]) -> None:
    """On a smaller site."""
    check_policy(lambda: Foragers(rules=SMALL, **params), pages=15)
