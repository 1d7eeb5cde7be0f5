"""Each setting is declared in one row, which determines what a crawl does."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from scrapy.settings import Settings

from scrapy_focus import ConfigError
from scrapy_focus.config import ROWS, SETTINGS, Config
from scrapy_focus.core.setting import Setting, whole
from scrapy_focus.features import existing, rows_of
from scrapy_focus.policies.branching.policy import BranchingBandit

if TYPE_CHECKING:
    from pathlib import Path

VALUES: dict[str, Any] = {
    "FOCUS_ABOUT": "seven dwarfs",
    # none of them is a default
    "FOCUS_BLOCKED_MIMES": "font/*",
    "FOCUS_BROWSER_OFFSITE": "image",
    "FOCUS_BUDGET_BYTES": "7",
    "FOCUS_BUDGET_RATE": "7/day",
    "FOCUS_BUDGET_REQUESTS": "7",
    "FOCUS_BUDGET_SECONDS": "7min",
    "FOCUS_CHECKPOINT_EVERY": "7",
    "FOCUS_CLUSTER": "auto",
    "FOCUS_CLUSTER_ENGINE": "some.Engine",
    "FOCUS_CLUSTER_LEASE": "7",
    "FOCUS_CLUSTER_MOST_OUT": "7",
    "FOCUS_CLUSTER_NAME": "seven",
    "FOCUS_COST_UNIT": "bytes",
    "FOCUS_COST_LIMIT": "7",
    "FOCUS_EMBEDDING": "tests.topicwords.Count",
    "FOCUS_EXIT_STATUS": "True",
    "FOCUS_EXPLAIN": "True",
    "FOCUS_FEATURES": ["scrapy_focus.Feature"],
    "FOCUS_FRONTIER": "scrapy_focus.memory_frontier",
    "FOCUS_GOAL": "scrapy_focus.FilesGoal",
    "FOCUS_ITEM_ID": "seven",
    "FOCUS_KEYWORDS": "seven",
    "FOCUS_LEARNED_FROM": "seven",
    "FOCUS_LEARNED_TO": "seven",
    "FOCUS_LOG": "seven",
    "FOCUS_LONGEST_WAIT": "7",
    "FOCUS_MAX_INFLATION": "7",
    "FOCUS_MAX_INFLIGHT": "7",
    "FOCUS_MAX_INFLIGHT_PER_SLOT": "7",
    "FOCUS_MOST_OUT": "7",
    "FOCUS_MOST_WAITING": "777",
    "FOCUS_OBEY": "nofollow",
    "FOCUS_POLICY": "scrapy_focus.policies.tagpath.TagPath",
    "FOCUS_POLICY_PARAMS": '{"theta": 0.7}',
    "FOCUS_POOR_LAST": "False",
    "FOCUS_PROGRESS": "off",
    "FOCUS_PUBLIC_ONLY": "True",
    "FOCUS_RENDER": "never",
    "FOCUS_RENDER_COST": "7",
    "FOCUS_REQUEST_PRIORITY": "True",
    "FOCUS_SEED": "7",
    "FOCUS_STOP": "scrapy_focus.Plateau",
    "FOCUS_STORED_CLASSES": "some.Model",
    "FOCUS_STRUCTURED": "Recipe",
    "FOCUS_TARGETS": "csv",
    "FOCUS_TOPIC": '{"keywords": ["seven"]}',
    "FOCUS_WARC": "seven",
}


#: Settings of features that take neither a number nor a flag: a text, its value, a wrong one, and its error.
OF_FEATURES: dict[str, tuple[str, Any, str, str]] = {
    "FOCUS_EXCLUDE": ("a{1,2},b", ("a{1,2}", "b"), "a,(", r" has '\(', which is not a regular expression: missing \)"),
    "FOCUS_INCLUDE": ("a", ("a",), "a,,b", " has '', which is not a regular expression: it is empty"),
    "FOCUS_METRICS_FILE": ("some/file", "some/file", "\0", r" is '\\x00'; it takes "),
    "FOCUS_SCOPE": ("host", "host", "x", " is 'x'; it takes 'page', 'prefix', 'host', 'domain' or 'any'"),
    "FOCUS_STATS_FILE": ("some/file", "some/file", "\0", r" is '\\x00'; it takes "),
}


def read(settings: dict[str, Any]) -> Config:
    return Config.from_settings(Settings(settings), BranchingBandit)


def test_without_settings_each_field_is_the_default_of_its_row() -> None:
    """Defaults of settings are defined in one place only."""
    config = read({})
    for field, row in ROWS.items():
        assert getattr(config, field) == row.default, row.name
        assert getattr(Config, field) is row


@pytest.mark.parametrize("name", SETTINGS)
def test_each_setting_changes_its_field(name: str, tmp_path: Path) -> None:
    """And no other one, except that the words of a topic are keywords as well."""
    also = {"JOBDIR": str(tmp_path)} if name == "FOCUS_CLUSTER" else {}
    if name == "FOCUS_EMBEDDING":  # it is for a sentence
        also = {"FOCUS_ABOUT": VALUES["FOCUS_ABOUT"]}
    config = read({name: VALUES[name], **also})
    changed = {row.name for field, row in ROWS.items() if getattr(config, field) != row.default}
    follows = {"FOCUS_TOPIC": {"FOCUS_KEYWORDS"}, "FOCUS_EMBEDDING": {"FOCUS_ABOUT"}}
    assert changed - follows.get(name, set()) == {name}


@pytest.mark.parametrize("row", rows_of({}), ids=lambda row: row.name)
def test_each_setting_of_a_feature_is_read_by_its_row(row: Setting[Any]) -> None:
    """A value that cannot be used is an error before anything is crawled."""
    assert row.of(Settings()) == row.default
    text, value, wrong, said = OF_FEATURES.get(row.name) or ("7", 7, "x", " is 'x'; it takes ")
    if row.name not in OF_FEATURES and not row.unit:
        text, value = str(not row.default), not row.default
    assert row.of(Settings({row.name: text})) == value != row.default
    with pytest.raises(ConfigError, match=f"^{row.name}{said}"):
        Config.from_settings(Settings({row.name: wrong}), BranchingBandit, rows_of({}))
    assert existing({row.name: 7, "FOCUS_GONE": 8}) == {row.name: 7}


def test_the_setting_of_a_deleted_feature_is_unknown() -> None:
    """The error names one that is like it."""
    with pytest.raises(ConfigError, match=r"^unknown setting FOCUS_MOST_SEEN; did you mean FOCUS_MOST_OUT\?"):
        read({"FOCUS_MOST_SEEN": 1})
    seen = Setting("FOCUS_MOST_SEEN", whole(), default=0)
    Config.from_settings(Settings({"FOCUS_MOST_SEEN": 1}), BranchingBandit, [seen])
    with pytest.raises(ConfigError, match=r"^unknown setting FOCUS_MOST_SEE; did you mean FOCUS_MOST_SEEN\?"):
        Config.from_settings(Settings({"FOCUS_MOST_SEE": 1}), BranchingBandit, [seen])


@pytest.mark.parametrize(("value", "fails"), [("1", True), ("0", False), (False, False)])
def test_what_works_on_one_machine_only_is_refused_in_a_cluster(value: Any, fails: bool, tmp_path: Path) -> None:
    """As each row says."""
    rows = [Setting("FOCUS_MOST_SEEN", whole(), default=0, in_cluster=False)]
    settings = Settings({"FOCUS_CLUSTER": "auto", "JOBDIR": str(tmp_path), "FOCUS_MOST_SEEN": value})
    if not fails:
        Config.from_settings(settings, BranchingBandit, rows)
        return
    with pytest.raises(ConfigError, match=r"which does not yet support FOCUS_MOST_SEEN; remove one of them$"):
        Config.from_settings(settings, BranchingBandit, rows)


def test_a_default_is_changed_in_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """A crawl uses the value of the row."""
    for field, default in {
        "checkpoint_every": 77,
        "longest_wait": 7.0,
        "obey": frozenset[str](),
        "render": "never",
    }.items():
        monkeypatch.setitem(ROWS, field, replace(ROWS[field], default=default))
        assert getattr(read({}), field) == default


def test_an_error_names_the_unit() -> None:
    """Where a number has one."""
    pages = Setting("FOCUS_PAGES", whole(least=1), default=5, unit="pages")
    assert pages.of(Settings({"FOCUS_PAGES": ""})) == 5
    with pytest.raises(ConfigError, match=r"^FOCUS_PAGES is 0; it takes a whole number from 1 \(pages\)$"):
        pages.of(Settings({"FOCUS_PAGES": 0}))
