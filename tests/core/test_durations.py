"""Times are read in one way, wherever they are given."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy.exceptions import UsageError
from scrapy.settings import Settings

from scrapy_focus import ConfigError
from scrapy_focus.config import Config
from scrapy_focus.core.budget import Rate
from scrapy_focus.core.durations import UNITS, Duration, unit_of
from scrapy_focus.finders.kit.arguments.argument import Called
from scrapy_focus.finders.kit.arguments.readers import read_duration, read_hours
from scrapy_focus.policies.branching.policy import BranchingBandit


@pytest.mark.parametrize(
    ("text", "said", "seconds"),
    [
        ("90s", "90 seconds", 90.0),
        ("90 sec", "90 seconds", 90.0),
        ("30min", "30 minutes", 1800.0),
        ("30 Minutes", "30 minutes", 1800.0),
        ("24h", "24 hours", 86_400.0),
        ("1.5 hrs", "1.5 hours", 5400.0),
        ("1d", "1 day", 86_400.0),
        ("2w", "2 weeks", 1_209_600.0),
    ],
)
def test_a_time_is_read(text: str, said: str, seconds: float) -> None:
    """With its unit, by option, argument and setting; it prints itself in the unit that the user wrote."""
    lasts = Duration.of(text)
    assert (str(lasts), lasts.seconds) == (said, seconds)
    assert read_duration(text, Called("time")) == lasts
    assert read_hours(text, Called("hours")) == seconds / 3600
    for row in (Config.budget_seconds, Config.longest_wait, Config.cluster_lease):
        assert row.of(Settings({row.name: text})) == seconds


@pytest.mark.parametrize(
    "text", ["", "7m", "0d", "-1h", "1e3h", "nan", "d", "1 month", "9" * 9 + "w", True, None, "x" * 999]
)
def test_what_is_no_time_is_named(text: Any) -> None:
    """In a short message that says what to give."""
    with pytest.raises(ConfigError, match=r"^wait is .*; it takes a time with its unit, such as 90s, 30min") as raised:
        Duration.of(text, "wait")
    assert len(str(raised.value)) < 300


def test_a_number_has_the_unit_of_its_setting() -> None:
    """Seconds in settings, hours of the age of news; the time to watch needs its unit."""
    assert Config.budget_seconds.of(Settings({"FOCUS_BUDGET_SECONDS": "1.5"})) == 1.5
    assert Config.longest_wait.of(Settings({"FOCUS_LONGEST_WAIT": 0})) == 0
    assert read_hours("36", Called("hours")) == 36
    with pytest.raises(UsageError, match="it takes a time with its unit"):
        read_duration("7", Called("time"))
    for wrong in ("24x", "inf", "nan", "-3", [1]):
        with pytest.raises(ConfigError, match=r"^FOCUS_BUDGET_SECONDS is .*; it takes a number"):
            Config.budget_seconds.of(Settings({"FOCUS_BUDGET_SECONDS": wrong}))
    with pytest.raises(ConfigError, match=r"it takes a number from 1"):
        Config.cluster_lease.of(Settings({"FOCUS_CLUSTER_LEASE": "0.5s"}))


def test_rates_and_times_have_the_same_units() -> None:
    """Each unit is that of a rate, too, by each of its names."""
    for word in ("s", "sec", "second", "min", "mins", "h", "hr", "hours", "d", "day", "w", "weeks"):
        assert Duration.of(f"1 {word}").seconds == Rate.of(f"1/{word}").interval == UNITS[unit_of(word)]


def test_a_budget_of_time_is_written_as_a_time() -> None:
    """The crawl has it in seconds."""
    assert Config.from_settings(Settings({"FOCUS_BUDGET_SECONDS": "2h"}), BranchingBandit).budget_seconds == 7200
