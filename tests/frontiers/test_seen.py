"""Sets and maps of keys: right for any key, small, and quick to fill."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scrapy_focus.frontiers import keys as seen
from scrapy_focus.frontiers.keys import KeyMap, KeySet

KEYS = st.one_of(st.integers(-5, 20), st.integers(-(2**63), 2**63 - 1), st.integers(0, 9).map(lambda i: i * 4093))
VALUES = st.one_of(st.integers(-(2**31), 2**31 - 1), st.integers(-3, 5))


@pytest.fixture(params=[1, 3, 4093])
def shards(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let many keys share a shard, or few."""
    monkeypatch.setattr(seen, "_SHARDS", request.param)


@pytest.mark.usefixtures("shards")
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.sampled_from(["add", "discard", "update", "late", "difference"]), st.lists(KEYS, max_size=5)))
)
def test_a_key_set_is_a_set(steps: list[tuple[str, list[int]]]) -> None:
    """Whatever is put in and taken out, one by one or many at once, it holds what a set holds."""
    keys, model = KeySet(), set()
    for step, some in steps:
        if step == "add":
            assert [keys.add(key) for key in some] == [key not in model and not model.add(key) for key in some]
        elif step == "discard":
            assert [keys.discard(key) for key in some] == [key in model and not model.remove(key) for key in some]
        elif step == "update":
            keys.update_many(np.array(some, np.int64))
            model |= set(some)
        elif step == "late":
            keys.update_late(np.array(sorted(set(some) - model), np.int64))
            model |= set(some)
        else:
            other = KeySet()
            other.update_many(np.array(some, np.int64))
            keys.difference_update(other)
            model -= set(some)
        assert len(keys) == len(model)
        assert sorted(keys.array().tolist()) == sorted(model)
        assert all((key in keys) == (key in model) for key in [*some, 0, -1])


@pytest.mark.usefixtures("shards")
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["set", "setdefault", "pop", "update", "pop_where"]),
            st.lists(st.tuples(KEYS, VALUES), max_size=5),
        )
    )
)
def test_a_key_map_is_a_dictionary(steps: list[tuple[str, list[tuple[int, int]]]]) -> None:
    """Whatever is put in and taken out, one by one or many at once, it holds what a dictionary holds."""
    keys, model = KeyMap(), {}
    for step, some in steps:
        if step == "set":
            for key, value in some:
                keys.set(key, value)
                model[key] = value
        elif step == "setdefault":
            for key, value in some:
                assert keys.setdefault(key, value, -7) == model.get(key, -7)
                model.setdefault(key, value)
        elif step == "pop":
            assert [keys.pop(key, -7) for key, _ in some] == [model.pop(key, -7) for key, _ in some]
        elif step == "pop_where":
            chosen = np.array([key % 2 == 0 for key, _ in some] + [True], np.bool_)
            gone = {key for key, value in model.items() if 0 <= value < len(chosen) and chosen[value]}
            assert set(keys.pop_where(chosen).tolist()) == gone
            model = {key: value for key, value in model.items() if key not in gone}
        else:
            keys.update_many(np.array([key for key, _ in some], np.int64), np.array([v for _, v in some], np.int32))
            model.update(some)
        assert len(keys) == len(model)
        assert dict(keys.items()) == model
        asked = [*(key for key, _ in some), 0, -1]
        assert all(keys.get(key, -7) == model.get(key, -7) for key in asked)
        assert keys.get_many(asked, -7) == [model.get(key, -7) for key in asked]


def test_a_set_loses_what_a_map_has() -> None:
    """Keys of a map can be taken out of a set."""
    keys, known = KeySet(), KeyMap()
    keys.update_many(np.arange(10))
    for key in (3, 4, 99):
        known.set(key, 0)
    keys.difference_update(known)
    assert sorted(keys.array().tolist()) == [0, 1, 2, 5, 6, 7, 8, 9]
    assert len(keys) == 8


@pytest.mark.slow
@pytest.mark.parametrize(("made", "least", "most"), [(KeySet, 8, 9), (KeyMap, 12, 15)])
def test_a_key_takes_few_bytes(made: type, least: int, most: int) -> None:
    """A million keys take 8 bytes each in a set and 12 in a map, and the overhead of 16381 shards."""
    rng = np.random.default_rng(0)
    tracemalloc.start()
    try:
        keys = made()
        for _ in range(4):
            some = rng.integers(0, 2**62, 250_000)
            keys.update_many(*[some] if made is KeySet else [some, np.ones(len(some), np.int32)])
        for key in range(20_000):
            keys.add(key) if made is KeySet else keys.set(key, 1)
        del some
        size = tracemalloc.get_traced_memory()[0] - 16381 * 220
    finally:
        tracemalloc.stop()
    assert len(keys) == 1_020_000
    assert least - 1 < size / len(keys) < most
