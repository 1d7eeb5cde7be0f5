"""The reference describes each feature."""

from __future__ import annotations

from importlib import import_module

import pytest

from tests.docs.reference import PACKAGE, stats_in
from tests.features.documented import Documented, documented_features

EXIST = [each for each in documented_features() if (PACKAGE / "features" / each.name).is_dir()]


@pytest.mark.parametrize("feature", EXIST, ids=lambda feature: feature.name)
def test_settings_and_stats_are_those_of_the_feature(feature: Documented) -> None:
    """The names in ``documented.py`` are exactly the settings, and all stats that are not of a family."""
    rows = getattr(import_module(f"scrapy_focus.features.{feature.name}"), "SETTINGS", ())
    assert tuple(row.name for row in rows) == feature.settings
    names, families = stats_in((PACKAGE / "features" / feature.name).glob("*.py"))
    assert names <= feature.stats
    of_families = tuple(f"focus/{family}" for family in families)
    assert {name for name in feature.stats - names if not name.startswith(of_families)} == set()
