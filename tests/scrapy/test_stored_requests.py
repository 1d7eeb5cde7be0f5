"""Requests stored in a JOBDIR: what they may carry, and how forged ones are treated."""

from __future__ import annotations

import os
import pickle
import sys
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Element

import pytest
from forked import run as run_forked
from scrapy import FormRequest, Item, Request, Spider
from scrapy.http import Headers

from scrapy_focus import ConfigError
from scrapy_focus.engine.requests import MissingCallback, classes_for, decode, encode, encode_deeply
from tests.made import HANG

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

    from mocksite import MockSite


@dataclass
class Row:
    """Something of the project that a request carries."""

    name: str


class Thing(Item):
    """An item of the project."""


class Owner(Spider):
    """The spider whose requests they are."""

    name = "owner"

    def parse(self, response: Any) -> None:
        pass


class Bomb:
    """Makes a file where it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.path}",)


URL = "https://example.org/"


@pytest.mark.parametrize(
    "value", [[1, {"a": {2}}], Row("a"), Thing(), Fraction(1, 3), Headers({"A": "b"}), {"nested": (Row("b"), None)}]
)
def test_objects_of_a_project_are_restored(value: Any) -> None:
    """Values of the standard library, of Scrapy and of the project."""
    spider = Owner()
    request = Request(URL, callback=spider.parse, meta={"value": value})
    assert encode(request, spider) is None
    assert decode(URL, encode_deeply(request, spider), spider).meta["value"] == value


def test_kinds_of_requests_are_restored() -> None:
    """As what they were."""
    spider = Owner()
    request = FormRequest(URL, formdata={"a": "b"}, callback=spider.parse)
    back = decode(URL, encode_deeply(request, spider), spider)
    assert (type(back), back.body, back.method) == (FormRequest, b"a=b", "POST")


def test_what_another_library_makes_is_stored_where_it_is_named() -> None:
    """Otherwise it cannot be stored, and is kept in memory; the reason names the setting."""
    spider = Owner()
    request = Request(URL, callback=spider.parse, meta={"value": Element("a")})
    with pytest.raises(ValueError, match=r"'xml.etree.ElementTree.Element'.*FOCUS_STORED_CLASSES"):
        encode_deeply(request, spider)
    classes = classes_for(spider, ["xml.etree"])
    record = encode_deeply(request, spider, classes)
    assert decode(URL, record, spider, classes).meta["value"].tag == "a"
    with pytest.raises(MissingCallback, match=r"cannot be read: it names 'xml"):
        decode(URL, record, spider)


@pytest.mark.parametrize(
    "cls", ["os.system", "subprocess.Popen", "nowhere.Request", "scrapy.Spider", "antigravity.Request"]
)
def test_a_record_that_somebody_put_there_runs_nothing(cls: str, tmp_path: Path) -> None:
    """Neither by its values, nor by the class that it claims to be of."""
    touched = tmp_path / "touched"
    for record in (
        {"meta": {"x": Bomb(touched)}},
        Bomb(touched),
        {"url": URL, "_class": cls, "args": ["touch", touched.as_posix()]},
    ):
        with pytest.raises(MissingCallback, match=r"cannot be read: it names"):
            decode(URL, pickle.dumps(record), Owner())
    assert not touched.exists()
    assert "antigravity" not in sys.modules


SPIDER = """
import scrapy

class Follow(scrapy.Spider):
    name = "follow"
    custom_settings = {"TELNETCONSOLE_ENABLED": False, "REMOTE_CONTROL_ENABLED": False, "FOCUS_PROGRESS": "off"}

    async def start(self):
        for n in range(9):
            yield scrapy.Request(self.root + str(n), meta={"many": [n]})

    def parse(self, response):
        pass
"""


def crawl(folder: Path, site: MockSite, *more: str) -> subprocess.CompletedProcess[str]:
    (folder / "follow.py").write_text(SPIDER)
    given = ["SCHEDULER=scrapy_focus.FocusScheduler", "JOBDIR=job", *more]
    words = [part for setting in given for part in ("-s", setting)]
    return run_forked(
        [sys.executable, "-m", "scrapy", "runspider", "follow.py", "-a", f"root={site.url('/ok?')}", *words],
        cwd=folder, capture_output=True, text=True, check=False, timeout=HANG,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("statement", "said", "status"),
    [
        (
            "UPDATE notes SET value = ? WHERE name = 'policy'",
            "the policy in job/focus cannot be read: it names 'posix.system'",
            2,
        ),
        ("UPDATE links SET payload = ?, sum = NULL", "cannot be read: it names 'posix.system'", 1),
    ],
)  # fmt: skip
def test_a_crawl_refuses_a_hostile_folder_in_one_line(
    statement: str, said: str, status: int, site: MockSite, tmp_path: Path
) -> None:
    """With status 2 if the crawl cannot start, else 1, and none of its code runs."""
    from tests.jobs.test_hostile_folder import write

    first = crawl(tmp_path, site, "FOCUS_BUDGET_REQUESTS=3")
    assert "'finish_reason': 'focus_budget_requests'" in first.stderr, first.stderr[-2000:]
    touched = tmp_path / "touched"
    write(tmp_path / "job", statement, pickle.dumps(Bomb(touched)))
    second = crawl(tmp_path, site, "FOCUS_EXIT_STATUS=1")
    assert second.returncode == status, second.stderr[-2000:]
    lines = [line for line in second.stderr.splitlines() if "ERROR: scrapy_focus" in line]
    assert len(lines) == 1
    assert said in lines[0]
    assert not touched.exists()


def test_the_setting_takes_import_paths(tmp_path: Path) -> None:
    """In a list, or separated by commas; anything else is an error that names it."""
    from scrapy.settings import Settings

    from scrapy_focus.config import Config
    from scrapy_focus.policies.orderings import BreadthFirst

    for value in (["a.b", "c"], "a.b, c"):
        config = Config.from_settings(Settings({"FOCUS_STORED_CLASSES": value}), BreadthFirst)
        assert config.stored_classes == ("a.b", "c")
    for wrong in ([1], 5, "a b", ["a..b"], [None]):
        with pytest.raises(ConfigError, match=r"^FOCUS_STORED_CLASSES (is|has) .*; it takes .*import paths"):
            Config.from_settings(Settings({"FOCUS_STORED_CLASSES": wrong}), BreadthFirst)
