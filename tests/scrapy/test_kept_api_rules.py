"""Rules of APIs as they are kept for other crawls: in the file of what was learned, those in use, and bounded."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.engine import keptrules
from scrapy_focus.engine.apis import Apis
from scrapy_focus.engine.keptrules import Kept, add_rules, read_rules
from scrapy_focus.learn.modelfile import add_text, write_model
from scrapy_focus.policies.branching.saved import LEARNED
from scrapy_focus.web.apis.answers import Call
from scrapy_focus.web.apis.rules import ApiRules

if TYPE_CHECKING:
    from pathlib import Path


def rules_of(section: str, pages: int = 2) -> ApiRules:
    """Return rules that were learned from some pages of a section."""
    rules = ApiRules()
    for n in range(7, 7 + pages):
        answer = Call(f"http://a.test/api/{section}/{n}", {"files": [{"name": f"{n}-a"}, {"name": f"{n}-b"}]})
        rules.learn(f"http://a.test/{section}/{n}", [answer], [f"http://a.test/files/{n}-{x}.csv" for x in "ab"])
    return rules


def kept(*sections: str, with_items: tuple[str, ...] = ()) -> Kept:
    """Return rules of some sections."""
    found = [rules_of(section) for section in sections]
    return Kept({rules.template: rules for rules in found}, with_items)


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A file of what a policy learned."""
    write_model(tmp_path / "learned.npz", {}, {}, LEARNED)
    return str(tmp_path / "learned.npz")


def test_they_are_read_as_they_were(path: str) -> None:
    """By template, with those templates whose pages give items."""
    assert read_rules(path) is None
    add_rules(path, kept("set", "list", with_items=("a.test/list/#", "b.test/other")))
    back = read_rules(path)
    assert back is not None
    assert [*back.rules] == ["a.test/set/#", "a.test/list/#"]
    assert back.with_items == {"a.test/list/#"}
    assert back.rules["a.test/set/#"].calls_of("http://a.test/set/9") == ["http://a.test/api/set/9"]


def test_those_in_use_are_kept(path: str) -> None:
    """Not those that are still being learned; and a crawl that has none leaves the file as it is."""
    crawl = Apis(Counter().update, None, Kept({"a.test/set/#": rules_of("set"), "a.test/list/#": rules_of("list", 1)}))
    add_rules(path, crawl.kept())
    back = read_rules(path)
    assert back is not None
    assert [*back.rules] == ["a.test/set/#"]
    add_rules(path, Apis(Counter().update, None).kept())
    assert read_rules(path) is not None


def test_there_is_room_for_so_many(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that were used last stay."""
    monkeypatch.setattr(keptrules, "_LONGEST", 4_000)
    monkeypatch.setattr(keptrules, "TEMPLATES", 3)
    add_rules(path, kept(*(f"set{x}" for x in "abcdefgh")))
    back = read_rules(path)
    assert back is not None
    assert 1 <= len(back.rules) <= 3
    assert [*back.rules][-1] == "a.test/seth/#"


def test_no_page_is_read_by_them_before_a_rendering_showed_that_they_hold() -> None:
    """Whatever they predict."""
    assert Apis(Counter().update, None, kept("set")).rules_for("http://a.test/set/9") is None


@pytest.mark.parametrize(
    "text",
    ["[]", "{", '{"rules": [{}], "with_items": []}', "[" * 100_000, '{"rules": {}}', '{"rules": [], "with_items": 3}'],
    ids=["a list", "half", "no rule", "deep", "a table", "a number"],
)
def test_damaged_ones_are_named(path: str, text: str) -> None:
    """In one line, with the file."""
    add_text(path, "apis", text)
    with pytest.raises(
        ConfigError, match=r"learned\.npz is damaged \(rules of APIs: .*\); let a crawl write one"
    ) as raised:
        read_rules(path)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 400
