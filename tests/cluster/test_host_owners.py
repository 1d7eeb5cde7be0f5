"""A host belongs to the worker that had it last, until it was left alone for long enough."""

from __future__ import annotations

from scrapy_focus.cluster.hosts import Hosts


def hosts() -> Hosts:
    return Hosts(linger=60.0, per_host=2)


def test_a_host_stays_with_who_had_it_last() -> None:
    """While it has leases, and so long after the last of them; then anybody may have it."""
    some = hosts()
    some.take("h", "a", 0.0)
    some.forget(1000.0)
    assert some.owner("h") == "a"
    some.leave("h", 1000.0)
    some.forget(1060.0)
    assert (some.owner("h"), some.of("a"), len(some)) == ("a", {"h"}, 1)
    some.forget(1060.1)
    assert (some.owner("h"), some.of("a"), len(some)) == ("", set(), 0)


def test_another_version_is_another_owner() -> None:
    """Whoever remembers which hosts are whose knows when to look again."""
    some, seen = hosts(), [0]
    for change in (
        lambda: some.take("h", "a", 0.0),
        lambda: some.gone("a", 1.0),
        lambda: some.keep("h", "a", 2.0),
        lambda: (some.leave("h", 3.0), some.forget(100.0)),
    ):
        change()
        seen.append(some.version)
    assert sorted(set(seen)) == seen
    some.take("h", "a", 200.0)
    before = some.version
    some.take("h", "a", 200.0)
    some.leave("h", 200.0)
    assert some.version == before


def test_a_host_is_full_with_so_many_leases() -> None:
    """As many as may be, and no longer than they are out."""
    some = hosts()
    some.take("h", "a", 0.0)
    assert not some.full
    some.take("h", "a", 0.0)
    assert some.full == {"h"}
    some.leave("h", 1.0)
    assert not some.full


def test_hosts_of_who_went_rest() -> None:
    """Nobody has them for so long after it went, and after its last lease ended."""
    some = hosts()
    some.take("h", "a", 0.0)
    some.take("idle", "a", 0.0)
    some.leave("idle", 1.0)
    some.take("other", "b", 0.0)
    some.gone("a", 50.0)
    assert (some.owner("h"), some.resting, some.of("a")) == ("", {"h", "idle"}, set())
    some.forget(110.1)
    assert some.resting == {"h"}
    some.leave("h", 200.0)
    some.forget(260.0)
    assert some.resting == {"h"}
    some.forget(260.1)
    assert (some.resting, len(some)) == (set(), 1)
    some.gone("nobody", 300.0)
    assert some.owner("other") == "b"


def test_who_comes_back_has_its_hosts_unless_another_does() -> None:
    """What rests is again that of its last owner, and of nobody else; what nobody knows is of who names it first."""
    some = hosts()
    some.take("h", "a", 0.0)
    some.gone("a", 1.0)
    some.keep("h", "b", 2.0)
    assert (some.owner("h"), some.resting) == ("", {"h"})
    some.keep("h", "a", 3.0)
    assert (some.owner("h"), some.resting) == ("a", set())
    some.keep("h", "b", 3.0)
    assert some.owner("h") == "a"
    some.keep("new", "b", 3.0)
    assert (some.owner("new"), some.of("b")) == ("b", {"new"})
    some.forget(63.0)
    assert some.owner("new") == "b"
    some.forget(63.1)
    assert (some.owner("new"), some.owner("h")) == ("", "a")


def test_who_has_too_much_hands_on_its_share() -> None:
    """Of the hosts of which it has leases, those with the fewest: nobody has them until they rested after the last."""
    some = hosts()
    for name in ("a", "b", "c", "d", "c", "idle"):
        some.take(name, "w", 0.0)
    some.leave("idle", 0.0)
    some.take("e", "other", 0.0)
    assert some.hand_on("w", 2, 10.0) == 2
    assert (some.resting, some.of("w")) == ({"a", "b"}, {"c", "d", "idle"})
    assert (some.owner("a"), some.owner("e")) == ("", "other")
    some.leave("a", 50.0)
    some.forget(110.0)
    assert some.resting == {"a", "b"}
    some.forget(110.1)
    assert some.resting == {"b"}
    some.take("a", "other", 111.0)
    assert some.owner("a") == "other"
    assert some.hand_on("nobody", 2, 10.0) == 0
