"""A host belongs to its last worker until it has rested long enough."""

from __future__ import annotations

from scrapy_focus.cluster.hosts import Hosts


def hosts() -> Hosts:
    return Hosts(linger=60.0, per_host=2)


def test_a_host_stays_with_who_had_it_last() -> None:
    """It has the host while it has leases, and for some time after the last of them; then the host is free."""
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
    """The version tells when to look at the owners of hosts again."""
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
    """It is full with as many leases as allowed, while they are in flight."""
    some = hosts()
    some.take("h", "a", 0.0)
    assert not some.full
    some.take("h", "a", 0.0)
    assert some.full == {"h"}
    some.leave("h", 1.0)
    assert not some.full


def test_hosts_of_who_went_rest() -> None:
    """They are free only some time after the worker left, and after its last lease ended."""
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


def test_a_returning_worker_gets_its_hosts_unless_another_has_them() -> None:
    """Resting hosts return to their last owner only; unknown ones go to the first worker that names them."""
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
    """It gives up those with the fewest of its leases: they are free once they have rested after the last one."""
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
