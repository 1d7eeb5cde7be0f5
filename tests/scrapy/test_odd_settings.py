"""Whatever a setting or a parameter of a policy is set to: it works, or a short error names it."""

from __future__ import annotations

import array
import inspect
import math
from collections import OrderedDict, UserDict, deque
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scrapy.settings import Settings

from scrapy_focus import ConfigError, memory_frontier
from scrapy_focus.config import SETTINGS, Config
from scrapy_focus.core.crawl import Crawl
from scrapy_focus.core.policy import Policy
from scrapy_focus.features import rows_of
from scrapy_focus.lab.compare.specs import PolicySpec, known_policies
from scrapy_focus.policies.branching.policy import BranchingBandit

LONGEST = 500  # characters of a message
MILLION = "a" * 1_000_000


class Awkward:
    """Raises whatever it is asked."""

    def __bool__(self) -> bool:
        raise ZeroDivisionError("no truth in me")

    def __repr__(self) -> str:
        raise ZeroDivisionError("no words for me")

    def __eq__(self, other: object) -> bool:
        raise ZeroDivisionError("like nothing else")

    def __hash__(self) -> int:
        raise ZeroDivisionError("no number for me")

    def __len__(self) -> int:
        raise ZeroDivisionError("endless")


class Loud:
    """Is a million characters long when it is shown, with a command for a terminal in front."""

    def __repr__(self) -> str:
        return "\x1b]0;mine\x07" + MILLION


def raising(*_: Any, **__: Any) -> None:
    raise ZeroDivisionError("as asked")


class Unmade:
    def __init__(self) -> None:
        raise ZeroDivisionError("as asked")


VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 5, 10**18, 10**400, -(10**400), 0.0, -0.0, 0.5, 1.5, -2.5, 1e308, math.inf, -math.inf, math.nan,
    1j, Decimal(5), Decimal("nan"), Fraction(1, 3), np.int64(5), np.float32(0.5), np.float64("nan"), np.bool_(True),
    np.zeros(0), np.zeros(3), np.array(["a", "b"]), array.array("i", [1]),
    "", " ", "0", "1", "5", "-1", "abc", "inf", "nan", "1e400", "9" * 5000, "True", "None", "a.b", "os.path", "builtins.len",
    "builtins.object", "no.such.module", ".", "..", "a,b", ",", "csv", "\0", "a\0b", "\x1b]0;mine\x07", "a\nb", "\ud800", "[" * 100_000,
    "{}", '{"a": 1}', "[1]", "/", "/proc/none/file", MILLION, "b" * 300,
    b"", b"5", b"\xff", bytearray(b"x"), [], [1], [None], ["csv"], ["no such type"], [MILLION], [[]], (), ("a",), {}, {"a": 1}, {1: 2},
    {"window": "x"}, {"window": math.nan}, {"patience": 10**400}, set(), {"a"}, frozenset({1}), deque([1]), OrderedDict(a=1), UserDict(a=1),
    range(3), iter([1]), object(), object, int, len, raising, Unmade, lambda: None, Awkward(), Loud(), [Loud()], Path("x"), Path("/"), Ellipsis,
    timedelta(1), ValueError("x"), Policy, BranchingBandit, BranchingBandit(), slice(1),
]  # fmt: skip
POLICIES = [name for name, preset in known_policies().items() if not PolicySpec.parse(name).is_informed()]

DEFAULT = next(name for name in POLICIES if PolicySpec.parse(name).load() is BranchingBandit)
ROWS = rows_of({})  # of features
NAMES = [*SETTINGS, *(row.name for row in ROWS)]
PARAMS = ["FOCUS_POLICY_PARAMS"]  # everything about a policy


def check_message(error: ConfigError, *named: str) -> None:
    """Fail unless an error is short, printable, and names what it is about."""
    said = str(error)
    assert len(said) <= LONGEST, f"{len(said)} characters: {said[:1000]}"
    assert said.isprintable(), said
    for name in named:
        assert name in said


def read(settings: Settings, policy: type[Policy], folder: Path) -> None:
    """Do everything that happens with settings before a crawl starts."""
    config = Config.from_settings(settings, policy, ROWS)
    config.make_policy()
    config.make_budget()
    config.mission()
    if config.learned_to and Path(config.learned_to).resolve().is_relative_to(folder):
        config.try_files()
    if config.log and Path(config.log).resolve().is_relative_to(folder) and (log := config.make_log()):
        log.close()


@pytest.mark.few(20)
@pytest.mark.parametrize(
    ("name", "policy"), [(name, policy) for policy in POLICIES for name in (NAMES if policy == DEFAULT else PARAMS)]
)
def test_any_value_of_a_setting(name: str, policy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read, or an error of at most 500 characters names the setting, and repeats no long value."""
    monkeypatch.chdir(tmp_path)
    found, worked = PolicySpec.parse(policy).load(), 0
    settings = Settings()  # once, as it takes longer to create than everything else
    for value in VALUES:
        settings.set(name, value)
        try:
            read(settings, found, tmp_path)
            worked += 1
        except ConfigError as error:
            check_message(error, name)
    assert worked, "None is no setting at all"
    assert not list(tmp_path.glob("*/*")), "folders are made for files only"


PARAMETERS = [
    (policy, name) for policy in POLICIES for name in inspect.signature(PolicySpec.parse(policy).load()).parameters
]


@pytest.mark.few(12)
@pytest.mark.parametrize(("policy", "name"), PARAMETERS)
def test_any_value_of_a_parameter(policy: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A policy that can be made opens; else an error of at most 500 characters names the policy and the parameter."""
    monkeypatch.chdir(tmp_path)
    found = PolicySpec.parse(policy).load()
    settings = Settings()
    for value in VALUES:
        settings.set("FOCUS_POLICY_PARAMS", {name: value})
        try:
            made = Config.from_settings(settings, found).make_policy()
        except ConfigError as error:
            check_message(error, policy, name)
            continue
        if not isinstance(value, int) or value < 10**6:  # as many rows are made when a crawl begins
            Crawl(made, frontier=memory_frontier).close()


@pytest.mark.parametrize("value", ["csv", 5, 0.5, None], ids=repr)
def test_parameters_are_checked_where_they_enter(value: Any) -> None:
    """Constructing a policy without settings raises the same."""
    if isinstance(value, float):
        BranchingBandit(theta=value)
        return
    with pytest.raises(ConfigError, match=r"BranchingBandit\(theta="):
        BranchingBandit(theta=2 if value == 5 else value)
