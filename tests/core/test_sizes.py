"""Sizes are read in one way, wherever they are given."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy.exceptions import UsageError
from scrapy.settings import Settings

from scrapy_focus import ConfigError
from scrapy_focus.config import Config
from scrapy_focus.core.sizes import Size
from scrapy_focus.finders.kit.arguments.argument import Called
from scrapy_focus.finders.kit.arguments.readers import read_size


@pytest.mark.parametrize(
    ("text", "said", "n_bytes"),
    [
        ("2GB", "2 GB", 2_000_000_000),
        ("2 gb", "2 GB", 2_000_000_000),
        ("1.5MB", "1.5 MB", 1_500_000),
        ("500kB", "500 kB", 500_000),
        ("1TB", "1 TB", 10**12),
        ("64KiB", "64 KiB", 65_536),
        ("0.5MiB", "0.5 MiB", 524_288),
        ("1GiB", "1 GiB", 2**30),
        ("1TiB", "1 TiB", 2**40),
        ("100 bytes", "100 B", 100),
    ],
)
def test_a_size_is_read(text: str, said: str, n_bytes: int) -> None:
    """With its unit, decimal or binary, by option and setting; it prints itself in that unit."""
    size = Size.of(text)
    assert (str(size), size.bytes) == (said, n_bytes)
    assert read_size(text, Called("size")) == size
    assert Config.budget_bytes.of(Settings({"FOCUS_BUDGET_BYTES": text})) == n_bytes


@pytest.mark.parametrize("text", ["", "2", "2G", "0MB", "0.1B", "-1GB", "1e3MB", "MB", "9" * 18 + "TB", None, True, 7])
def test_what_is_no_size_is_named(text: Any) -> None:
    """In a short message that says what to give."""
    with pytest.raises(ConfigError, match=r"^size is .*; it takes a size with its unit, such as 500kB, 2GB") as raised:
        Size.of(text)
    assert len(str(raised.value)) < 300


def test_a_setting_also_takes_a_plain_number_of_bytes() -> None:
    """As before; an option needs the unit."""
    for value in (5000, "5000"):
        assert Config.budget_bytes.of(Settings({"FOCUS_BUDGET_BYTES": value})) == 5000
    assert Config.budget_bytes.of(Settings({"FOCUS_BUDGET_BYTES": 0})) is None
    with pytest.raises(UsageError, match=r"such as -a size=500MB, -a size=2GB"):
        read_size("5000", Called("size"))
    for wrong in ("-1", "many", "2 G", [1]):
        with pytest.raises(ConfigError, match=r"^FOCUS_BUDGET_BYTES is .*; it takes a (whole number|size)"):
            Config.budget_bytes.of(Settings({"FOCUS_BUDGET_BYTES": wrong}))
