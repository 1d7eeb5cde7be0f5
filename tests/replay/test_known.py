"""What becomes of links whose URLs are known: redirects, keys, "not now", and links that were given up."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import pytest
from handmade import HOST, Watching, course, failing, file, moved, page, site_of

from scrapy_focus import NOT_NOW, Crawl, FilesGoal, Placement, State, memory_frontier
from scrapy_focus.lab.replay.simulate import simulate
from tests.made import Recording, fetch, link, links
from tests.made import page as came

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from scrapy_focus import Link, Outcome


def path_of(url: str) -> str:
    """Return the path of a URL."""
    return url.removeprefix(HOST)


# Redirects


class Moving(Watching):
    """Also receives links to queued and fetched URLs; records each with its state."""

    wants_known: ClassVar[frozenset[State]] = frozenset({State.WAITING, State.FETCHED})

    def __init__(self) -> None:
        super().__init__()
        self.met: list[tuple[str, str]] = []

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        self.met += [(path_of(each.url), each.state.name) for each in links]
        placements = super().place(links, source)
        return [place if each.state == State.NEW else None for place, each in zip(placements, links, strict=True)]


def test_where_a_redirect_led_is_known(tmp_path: Path) -> None:
    """The outcome names the URLs on its way, and links to them are links to URLs that were fetched, asked for no more."""
    site = site_of(
        tmp_path,
        {"/": page("/a", "/x", "/c"), "/a": moved("/b"), "/b": moved("/d"), "/d": page(), "/x": moved("/y"),
         "/y": failing(), "/c": page("/b", "/d", "/y", "/e"), "/e": page()},
    )  # fmt: skip
    policy = Moving()
    harvest = simulate(policy, FilesGoal(), site, retries=0)
    also = {path_of(each.pick.url): [path_of(site.urls[key]) for key in each.also] for each in policy.learnt}
    assert also == {"/": [], "/a": ["/b", "/d"], "/x": ["/y"], "/c": [], "/e": []}
    assert policy.met[4:] == [("/b", "FETCHED"), ("/d", "FETCHED"), ("/y", "FETCHED"), ("/e", "NEW")]
    assert course(harvest, site) == ["/", "/a", "/b", "/d", "/x", "/y", "/c", "/e"]


def test_a_head_that_is_redirected_fetches_nothing(tmp_path: Path) -> None:
    """Where it led is not known for that; the GET after it is another matter."""
    site = site_of(tmp_path, {"/": page("/a"), "/a": moved("/b"), "/b": page()})
    policy = Watching(heads=("/a",))
    simulate(policy, FilesGoal(), site)
    assert [(each.pick.method, [path_of(site.urls[key]) for key in each.also]) for each in policy.learnt] == [
        ("GET", []), ("HEAD", []), ("GET", ["/b"]),
    ]  # fmt: skip


# Keys


class Knowing(Watching):
    """Writes down the keys that it gets, and when."""

    def __init__(self) -> None:
        super().__init__()
        self.known: list[tuple[str, list[int]]] = []

    def know(self, keys: Sequence[int], source: Outcome) -> None:
        self.seen.append(("know", path_of(source.pick.url)))
        self.known.append((path_of(source.pick.url), list(keys)))


def test_known_links_come_as_keys(tmp_path: Path) -> None:
    """In document order, between ``place`` and ``learn``, for queued and fetched links, and redirect targets."""
    site = site_of(
        tmp_path,
        {"/": page("/a", "/b", "/a"), "/a": page("/c", "/b", "/", "/d"), "/b": moved("/e"), "/e": page(),
         "/c": page("/e", "/b", "/c"), "/d": page("/f.csv"), "/f.csv": file()},
    )  # fmt: skip
    policy = Knowing()
    simulate(policy, FilesGoal(), site)
    named = [(source, [path_of(site.urls[key]) for key in keys]) for source, keys in policy.known]
    assert named == [("/a", ["/b", "/"]), ("/c", ["/e", "/b", "/c"])]
    assert [path_of(each.url) for each in policy.placed] == ["/", "/a", "/b", "/c", "/d", "/f.csv"]
    at = policy.seen.index(("know", "/a"))
    assert policy.seen[at - 1 : at + 2] == [("select", "/a"), ("know", "/a"), ("learn", "/a")]


def test_keys_change_nothing_else(tmp_path: Path) -> None:
    """A policy that gets keys asks for the same as one that does not, and gets the same links."""
    answers = {f"/{i}": page(*(f"/{j}" for j in ((2 * i) % 17, (3 * i + 1) % 17, i, (i + 5) % 17))) for i in range(17)}
    site = site_of(tmp_path, {"/": page("/1", "/2"), **answers})
    knowing, blind = Knowing(), Watching()
    one, other = (simulate(policy, FilesGoal(), site) for policy in (knowing, blind))
    assert one.asked == other.asked
    assert knowing.placed == blind.placed
    assert len(knowing.known) > 10


def test_keys_are_not_links_that_are_wanted() -> None:
    """A policy that wants queued links gets those as links, and the keys of the others; seeds have no keys."""

    class Both(Recording):
        wants_known: ClassVar[frozenset[State]] = frozenset({State.WAITING})

        def know(self, keys: Sequence[int], source: Outcome) -> None:
            self.calls.append(("know", list(keys), source.pick.key, source.reward))

    policy = Both()
    crawl = Crawl(policy, frontier=memory_frontier, strict=True)
    crawl.add(links(1, 2))
    pick = crawl.next()
    assert pick is not None
    assert pick.key == 1
    crawl.add(links(1))
    crawl.report(came(pick, items=2.0), links(1, 2, 3), known=[9, 8])
    assert policy.called("place")[-1] == ([2, 3], 2.0)
    assert policy.called("know") == [([9, 8, 1], 1, 2.0)]
    assert [call[0] for call in policy.calls[-3:]] == ["place", "know", "learn"]


# Not now


def test_not_now_leaves_a_link_new() -> None:
    """It is neither stored nor counted as given up, and offered again; a queued link stays in its place."""
    later = {2: True, 3: True}

    class Moody(Recording):
        wants_known: ClassVar[frozenset[State]] = frozenset({State.WAITING})

    policy = Moody(answer=lambda each, source: NOT_NOW if later.get(each.key) else Placement(1, -float(each.key)))
    crawl = Crawl(policy, frontier=memory_frontier, strict=True)
    assert crawl.add(links(1, 2, 3, 4)) == 2
    assert crawl.knows([1, 2, 3, 4]) == [State.WAITING, State.NEW, State.NEW, State.WAITING]
    assert crawl.counts["link/given_up"] == 0
    later |= {2: False, 4: True}
    assert fetch(crawl, *links(2, 3, 4)).key == 1
    assert policy.called("place")[-1][0] == [2, 3, 4], "offered again"
    assert crawl.knows([2, 3, 4]) == [State.WAITING, State.NEW, State.WAITING]
    assert [fetch(crawl).key for _ in range(2)] == [2, 4]
    assert crawl.next() is None
    assert crawl.counts["link/given_up"] == 0
    crawl.frontier.check()


def test_none_gives_up_what_not_now_leaves() -> None:
    """Of a page with both, only the one without a placement is given up, and it is offered no more."""
    policy = Recording(answer=lambda each, source: [Placement(1, 0.0), None, NOT_NOW][each.key % 3])
    crawl = Crawl(policy, frontier=memory_frontier, strict=True)
    crawl.add(links(0, 1, 2))
    assert crawl.knows([0, 1, 2]) == [State.WAITING, State.GIVEN_UP, State.NEW]
    fetch(crawl, *links(0, 1, 2))
    assert policy.called("place")[-1][0] == [2]
    assert crawl.counts["link/given_up"] == 1


class Second(Watching):
    """Takes a link when it meets it on a second page, and ``/now`` at once."""

    def __init__(self) -> None:
        super().__init__()
        self.met: list[str] = []

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        placements = super().place(links, source)
        before = set(self.met)
        self.met += [path_of(each.url) for each in links]
        return [
            place if source is None or path_of(each.url) in before | {"/now"} else NOT_NOW
            for place, each in zip(placements, links, strict=True)
        ]


def test_not_now_in_a_simulation(tmp_path: Path) -> None:
    """A link that was left is offered again by the next page that has it, and never where no other has."""

    class Asking(Second):
        wants_known: ClassVar[frozenset[State]] = frozenset({State.FETCHED})

    site = site_of(
        tmp_path, {"/": page("/a", "/b"), "/s": page("/b", "/c"), "/b": page("/a"), "/a": page(), "/c": page()},
        roots=("/", "/s"),
    )  # fmt: skip
    for policy in (Second(), Asking()):
        harvest = simulate(policy, FilesGoal(), site)
        assert course(harvest, site) == ["/", "/s", "/b", "/a"], type(policy).__name__
        assert policy.met == ["/", "/s", "/a", "/b", "/b", "/c", "/a"]
        assert harvest.counts["link/given_up"] == 0


# Given up


class Forgiving(Recording):
    """Gives up what it does not like, and gets links again that it gave up."""

    wants_known: ClassVar[frozenset[State]] = frozenset({State.GIVEN_UP})


def test_a_link_that_was_given_up_is_placed_after_all() -> None:
    """Its state says so; it is given up once, leaves once, and a policy that wants no such links never gets it back."""
    for base, comes_back in ((Forgiving, True), (Recording, False)):
        liked = {1, 4}
        policy = base(answer=lambda each, source, liked=liked: Placement(1, 0.0) if each.key in liked else None)
        crawl = Crawl(policy, frontier=memory_frontier, strict=True)
        crawl.add(links(1, 2, 3, 4))
        assert crawl.knows([1, 2, 3, 4]) == [State.WAITING, State.GIVEN_UP, State.GIVEN_UP, State.WAITING]
        assert crawl.counts["link/given_up"] == 2
        liked.add(2)
        fetch(crawl, *links(2, 3, 1, 5))
        assert policy.called("place")[-1][0] == ([2, 3, 5] if comes_back else [5])
        assert crawl.knows([1, 2, 3, 5]) == [
            State.FETCHED, State.WAITING if comes_back else State.GIVEN_UP, State.GIVEN_UP, State.GIVEN_UP,
        ]  # fmt: skip
        assert crawl.counts["link/given_up"] == 3, "2, 3 and 5; what stays given up does not count again"
        left = []
        while len(crawl.frontier):
            left.append(fetch(crawl).key)
        assert crawl.next() is None
        assert left == ([4, 2] if comes_back else [4])
        crawl.frontier.check()


class Hopeful(Watching):
    """Gives up the links of a page whose URL has a query, until one without links to them."""

    wants_known: ClassVar[frozenset[State]] = frozenset({State.GIVEN_UP})

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        doubtful = source is not None and "?" in source.pick.url
        return [None if doubtful else place for place in super().place(links, source)]


@pytest.mark.parametrize("wants", [True, False])
def test_given_up_in_a_simulation(tmp_path: Path, wants: bool) -> None:
    """A simulation offers a link that was given up to who asks for such, and to nobody else."""
    site = site_of(
        tmp_path, {"/": page("/?q", "/list"), "/?q": page("/a", "/b"), "/list": page("/b", "/a?x"), "/a?x": page("/b"),
                   "/a": page(), "/b": page("/list")},
    )  # fmt: skip

    class Sure(Hopeful):
        wants_known: ClassVar[frozenset[State]] = frozenset({State.GIVEN_UP} if wants else ())

    policy = Sure()
    harvest = simulate(policy, FilesGoal(), site)
    assert course(harvest, site) == ["/", "/?q", "/list", *(["/b"] if wants else []), "/a?x"]
    assert harvest.counts["link/given_up"] == 2
    offered = [(path_of(each.url), each.state.name) for each in policy.placed]
    assert (("/b", "GIVEN_UP") in offered) is wants


def test_a_link_that_is_placed_again_begins_anew() -> None:
    """It is found on the page whose links it came with then, so many clicks from a seed."""
    policy = Forgiving(answer=lambda each, source: Placement(1, 0.0) if source or each.key == 1 else None)
    crawl = Crawl(policy, frontier=memory_frontier, strict=True)
    crawl.add(links(1, 2))
    fetch(crawl, link(2, depth=5))
    pick = crawl.next()
    assert pick is not None
    assert (pick.key, pick.depth, pick.origin) == (2, 5, 1)


def test_not_now_of_links_whose_page_is_judged_late(tmp_path: Path) -> None:
    """Links are placed when the reward of their page is known; one that was deferred then is offered again, too."""
    site = site_of(tmp_path, {"/": page("/a", "/b", "/now"), "/now": page("/b"), "/b": page(), "/a": page()})
    policy = Second()
    harvest = simulate(policy, lambda outcome: None, site)
    assert course(harvest, site) == ["/", "/now", "/b"]
    assert policy.met == ["/", "/a", "/b", "/now", "/b"]
    assert harvest.counts["reward/late"] == 3
