"""Rules of APIs as they are kept for other crawls: in the file of what was learned, those in use, and bounded."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from scrapy.http import HtmlResponse

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.types import Pick
from scrapy_focus.engine.inflight import Entry
from scrapy_focus.features.rendering import keptrules
from scrapy_focus.features.rendering.apis import Apis
from scrapy_focus.features.rendering.keptrules import Kept, add_rules, read_rules
from scrapy_focus.learn.modelfile import add_text, write_model
from scrapy_focus.policies.branching.saved import LEARNED
from scrapy_focus.web.apis.answers import Call
from scrapy_focus.web.apis.rules import ApiRules
from tests.made import link

if TYPE_CHECKING:
    from collections.abc import Sequence
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


MENU = ["http://a.test/about", "http://a.test/help"]


def show(crawl: Apis, n: int, *, besides: Sequence[str] = (), prefix: str = "") -> None:
    """Let a browser show a page of the section, with the files that its API lists, and with further links."""
    links = [f"http://a.test/files/{prefix}{n}-{x}.csv" for x in "ab"]
    pick = Pick(n, n, f"http://a.test/set/{n}", "a.test", 1, 0, 0.0, None, -1, "RENDER", b"")
    entry = Entry(pick, 0.0)
    body = "".join(f'<a href="{url}">x</a>' for url in [*besides, *links])
    entry.response = HtmlResponse(pick.url, body=body.encode(), encoding="utf-8")
    entry.links = [link(100 * n + i, url=url) for i, url in enumerate([*besides, *links])]
    data = {"files": [{"name": f"{n}-a"}, {"name": f"{n}-b"}]}
    crawl.rendered(entry, [(f"http://a.test/api/set/{n}", json.dumps(data).encode())])


def begun(path: Path | None = None) -> Apis:
    """Return the APIs of a crawl that begins with the rules of one section."""
    return Apis(Counter().update, path, kept("set"))


def test_one_rendering_proves_them(tmp_path: Path) -> None:
    """If it shows what they predict, and nothing else; a run that resumes knows that."""
    crawl = begun(tmp_path / "apis.json")
    killed = Apis(Counter().update, tmp_path / "apis.json")
    assert "a.test/set/#" in killed.rules
    assert killed.rules_for("http://a.test/set/9") is None
    show(crawl, 9)
    assert crawl.rules_for("http://a.test/set/10") is not None
    assert Apis(Counter().update, tmp_path / "apis.json").rules_for("http://a.test/set/10") is not None


def test_what_stands_on_every_page_does_not_disprove_them() -> None:
    """The first pages of a crawl have a menu that is new; later ones have it no more."""
    crawl = begun()
    show(crawl, 9, besides=MENU)
    assert crawl.rules_for("http://a.test/set/10") is None
    show(crawl, 10)
    assert crawl.rules_for("http://a.test/set/11") is not None


def test_pages_that_always_show_more_disprove_them() -> None:
    """After three, others are learned."""
    crawl = begun()
    for n in (9, 10, 11):
        assert crawl.rules["a.test/set/#"].pages == 2
        show(crawl, n, besides=[f"http://a.test/more/{n}?x={7 * n}"])
    assert crawl.rules["a.test/set/#"].pages == 1
    assert crawl.rules_for("http://a.test/set/12") is None


def test_a_link_that_is_not_there_disproves_them() -> None:
    """At once; and two pages later there are rules again, that predict what is there now."""
    crawl = begun()
    show(crawl, 9, prefix="new-")
    assert crawl.rules["a.test/set/#"].pages == 1
    assert crawl.rules["a.test/set/#"].withdrawn == 0
    for n in (10, 11):
        show(crawl, n, prefix="new-")
    rules = crawl.rules_for("http://a.test/set/12")
    assert rules is not None
    call = Call("http://a.test/api/set/12", {"files": [{"name": "12-a"}]})
    assert [url for url, _ in rules.links_of("http://a.test/set/12", [call])] == ["http://a.test/files/new-12-a.csv"]


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
