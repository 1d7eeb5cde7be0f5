"""Features plug into the way of a request, and a crawl does without any of them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from crawls import BREADTH_FIRST, Follower, crawl
from scrapy.exceptions import CloseSpider

import scrapy_focus
from scrapy_focus import ConfigError, Feature, Shown
from scrapy_focus.core.placer import PART
from scrapy_focus.core.setting import Setting, whole
from scrapy_focus.engine.progress import progress
from tests.made import HANG

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mocksite import MockSite
    from scrapy import Request
    from scrapy.http import Response

    from scrapy_focus import Outcome
    from scrapy_focus.engine.host import Host
    from scrapy_focus.engine.inflight import Entry

PACKAGE = Path(scrapy_focus.__file__).parent
#: Features whose folders may go without anything else.
DELETABLE = [
    name
    for name in ("answers", "near_copies", "redirects", "signals", "structured", "traps")
    if (PACKAGE / "features" / name).is_dir()
]
#: Imports everything that is left, and crawls.
CRAWL = """
import importlib, pkgutil, sys
from scrapy.crawler import CrawlerProcess
import scrapy_focus
for each in pkgutil.walk_packages(scrapy_focus.__path__, "scrapy_focus."):
    if not each.name.endswith("__main__"):
        importlib.import_module(each.name)
from scrapy import Spider
class Following(Spider):
    name = "following"
    start_urls = [sys.argv[1]]
    def parse(self, response):
        yield {"url": response.url}
        yield from response.follow_all(css="a")
process = CrawlerProcess({"ADDONS": {"scrapy_focus.Addon": 500}, "JOBDIR": sys.argv[2], "LOG_LEVEL": "WARNING"})
crawler = process.create_crawler(Following)
process.crawl(crawler)
process.start()
print(crawler.stats.get_value("item_scraped_count"), crawler.stats.get_value("finish_reason"))
"""


class Noting(Feature):
    """Notes each call of each hook."""

    name: ClassVar[str] = "noting"
    made: ClassVar[list[Noting]] = []

    def __init__(self, host: Host) -> None:
        self.host = host
        self.calls: list[tuple[str, str]] = []
        Noting.made.append(self)

    def refuse(self, request: Request, page: Entry | None) -> bool:
        self.calls.append(("refuse", request.url))
        return request.url.endswith("refused")

    def refuse_new(self, request: Request, page: Entry | None) -> bool:
        self.calls.append(("refuse_new", request.url))
        return request.url.endswith("copy")

    def hand_out(self, entry: Entry, request: Request) -> bool:
        self.calls.append(("hand_out", request.url))
        if request.url.endswith("skipped"):
            entry.verdict = "skipped"
            return True
        request.headers["X-Feature"] = "noting"
        return False

    def outcome(self, entry: Entry, outcome: Outcome) -> Outcome | None:
        self.calls.append(("outcome", outcome.pick.url))
        return outcome._replace(items=7.0) if outcome.pick.url.endswith("dear") else None

    def read_page(self, entry: Entry, outcome: Outcome) -> Iterator[None]:
        for _ in range(3):
            self.calls.append(("read_page", outcome.pick.url))
            yield

    def settled(self, entry: Entry, outcome: Outcome, earned: float) -> None:
        self.calls.append((f"settled {earned:g}", outcome.pick.url))

    def shown(self) -> Shown:
        return Shown(lines=[f"{len(self.calls)} calls"])

    def close(self) -> None:
        self.calls.append(("close", ""))


@pytest.fixture(autouse=True)
def _none_made() -> None:
    Noting.made.clear()


def test_each_hook_is_called_in_order(site: MockSite) -> None:
    """Refused links are no part of the crawl, passed over picks are not asked for, and outcomes are as they return."""
    hrefs = "".join(f'<a href="/ok?{name}">{name}</a>' for name in ("plain", "refused", "copy", "skipped", "dear"))
    site.pages["/"] = hrefs
    settings = {"FOCUS_FEATURES": [Noting], "FOCUS_POLICY": BREADTH_FIRST, "FOCUS_MAX_INFLIGHT": 1}
    result = crawl(Follower, settings, seeds=[site.url("/")])
    [feature] = Noting.made
    assert [path for path in site.paths if path != "/robots.txt"] == ["/", "/ok?plain", "/ok?dear"]
    assert result.outcomes == {"ok": 3, "skipped": 1}
    assert result.stats["focus/reward"] == 1 + 1 + 7

    def hooks(path: str) -> list[str]:
        return [hook for hook, url in feature.calls if url == site.url(path)]

    page = ["refuse", "refuse_new", "hand_out", "outcome", "read_page", "read_page", "read_page", "settled 1"]
    assert hooks("/") == hooks("/ok?plain") == page
    assert hooks("/ok?refused") == ["refuse"]
    assert hooks("/ok?copy") == ["refuse", "refuse_new"]
    assert hooks("/ok?dear") == [*page[:-1], "settled 7"]
    assert feature.calls[-1] == ("close", "")
    assert f"{len(feature.calls)} calls" in progress(result.scheduler.focus_host)


@pytest.mark.few(3)
@pytest.mark.parametrize("hook", ["refuse", "refuse_new", "hand_out", "outcome", "read_page", "settled", "close"])
def test_a_feature_that_fails_costs_nothing(site: MockSite, hook: str) -> None:
    """Its errors are counted under its name (``error/feature/noting``), and the crawl is as without it."""

    def fail(*_: Any) -> Any:
        raise ValueError("mine")

    failing = type("Failing", (Noting,), {hook: fail})
    result = crawl(Follower, {"FOCUS_FEATURES": [failing]}, seeds=[site.url("/page/0/20")])
    assert len(result.items) == 20
    assert result.reason == "finished"
    assert set(result.errors) == {"noting"}


class GivesBack(Feature):
    """Refuses each link once, and returns it when its page is done."""

    name: ClassVar[str] = "gives_back"

    def __init__(self, host: Host) -> None:
        self.host = host
        self.urls: set[str] = set()
        self.refused: list[Request] = []

    def refuse(self, request: Request, page: Entry | None) -> bool:
        if page is None or request.url in self.urls:
            return False
        self.urls.add(request.url)
        self.refused.append(request)
        return True

    def settled(self, entry: Entry, outcome: Outcome, earned: float) -> None:
        refused, self.refused = self.refused, []
        self.host.take_back(iter(refused))


def test_what_was_refused_can_be_given_back(site: MockSite) -> None:
    """No page is lost, and the crawl ends."""
    result = crawl(Follower, {"FOCUS_FEATURES": [GivesBack]}, seeds=[site.url("/page/0/20")])
    assert len({item["url"] for item in result.items}) == 20
    assert result.reason == "finished"
    assert result.errors == {}


class Released(Noting):
    """Notes what is queued again, too."""

    def give_back(self, entry: Entry) -> None:
        self.calls.append(("give_back", entry.pick.url))


class More(Follower):
    """Reads the pages that it finds with a custom method."""

    def parse(self, response: Response) -> Iterator[Any]:
        yield from response.follow_all(css="a", callback=self.more)

    def more(self, response: Response) -> None:
        """Read nothing."""


def test_a_pick_that_was_never_sent_is_given_back(site: MockSite, tmp_path: Path) -> None:
    """Here as the spider that resumes the crawl lacks the method that is to read the page."""
    settings = {"FOCUS_FEATURES": [Released], "JOBDIR": str(tmp_path)}
    crawl(More, settings | {"FOCUS_BUDGET_REQUESTS": 2}, seeds=[site.url("/page/0/40")])
    Noting.made.clear()
    result = crawl(Follower, settings, seeds=[site.url("/page/0/40")])
    [feature] = Noting.made
    assert result.reason == "focus_storage"
    assert [hook for hook, _ in feature.calls if hook != "refuse"] == ["give_back", "close"]


def nothing(host: Host) -> None:
    """Say that a crawl does without."""


def test_a_function_may_say_that_a_crawl_does_without(site: MockSite) -> None:
    result = crawl(Follower, {"FOCUS_FEATURES": [nothing]}, seeds=[site.url("/ok")])
    assert len(result.items) == 1


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (["nowhere.Feature"], "FOCUS_FEATURES has 'nowhere.Feature', which cannot be imported"),
        (["scrapy_focus.__version__"], "FOCUS_FEATURES has .*it takes subclasses of scrapy_focus.Feature"),
        ([dict], "FOCUS_FEATURES has .*dict.*, which raised an error: .Host. object is not iterable"),
        ([str], "it takes subclasses of scrapy_focus.Feature"),
    ],
)
def test_what_is_no_feature_is_refused(site: MockSite, value: list[Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        crawl(Follower, {"FOCUS_FEATURES": value}, seeds=[site.url("/ok")])


PAGES = Setting("FOCUS_SEEN_PAGES", whole(least=1), default=5, unit="pages")


class Sees(Feature):
    """Declares a setting."""

    own_settings = (PAGES,)

    def __init__(self, host: Host) -> None:
        host.count("seen", PAGES.of(host.crawler.settings))


@pytest.mark.parametrize("addon", [False, True], ids=["scheduler", "addon"])
@pytest.mark.parametrize(("given", "seen"), [({}, 5), ({"FOCUS_SEEN_PAGES": "7"}, 7)])
def test_a_feature_may_have_settings(site: MockSite, given: dict[str, str], seen: int, addon: bool) -> None:
    result = crawl(Follower, {"FOCUS_FEATURES": [Sees], **given}, addon=addon, seeds=[site.url("/ok")])
    assert result.stats["focus/seen"] == seen


class Told(Sees):
    """Declares the name of a setting alone."""

    own_settings = ["FOCUS_SEEN_PAGES"]  # type: ignore[assignment]


class Seeds(Sees):
    """Declares an existing setting."""

    own_settings = (Setting("FOCUS_SEED", whole(), default=5),)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"FOCUS_FEATURES": [Sees], "FOCUS_SEEN_PAGES": 0}, r"FOCUS_SEEN_PAGES is 0; it takes .*from 1 \(pages\)"),
        ({"FOCUS_FEATURES": [Sees], "FOCUS_SEEN_PAGE": 7}, r"FOCUS_SEEN_PAGE; did you mean FOCUS_SEEN_PAGES\?"),
        ({"FOCUS_SEEN_PAGES": 7}, "unknown setting FOCUS_SEEN_PAGES"),
        ({"FOCUS_FEATURES": [Sees, Sees]}, "whose setting 'FOCUS_SEEN_PAGES' already exists"),
        (
            {"FOCUS_FEATURES": [Told]},
            r"Told.*whose own_settings are \['FOCUS_SEEN_PAGES'\]; it takes a list of Setting",
        ),
        ({"FOCUS_FEATURES": [Seeds]}, "Seeds.*whose setting 'FOCUS_SEED' already exists"),
    ],
)
@pytest.mark.parametrize("addon", [False, True], ids=["scheduler", "addon"])
def test_settings_of_features_are_checked(site: MockSite, settings: dict[str, Any], said: str, addon: bool) -> None:
    with pytest.raises(ConfigError, match=said):
        crawl(Follower, settings, addon=addon, seeds=[site.url("/ok")])


class Misspelled(Feature):
    """Has a hook that would never be called."""

    def outcomes(self, entry: Entry, outcome: Outcome) -> None:
        """Note an outcome."""


class Careless(Noting):
    """Returns something other than an outcome."""

    def outcome(self, entry: Entry, outcome: Outcome) -> Any:
        return {"items": 2}


def test_a_misspelled_hook_is_refused(site: MockSite) -> None:
    """Otherwise it would silently do nothing."""
    with pytest.raises(ConfigError, match="Misspelled has a method outcomes; did you mean outcome"):
        crawl(Follower, {"FOCUS_FEATURES": [lambda host: Misspelled()]}, seeds=[site.url("/ok")])


def test_what_is_no_outcome_changes_nothing(site: MockSite) -> None:
    """The error is that of the feature."""
    result = crawl(Follower, {"FOCUS_FEATURES": [Careless]}, seeds=[site.url("/page/0/20")])
    assert len(result.items) == 20
    assert result.errors == {"noting": 20}
    assert result.logged("it takes an Outcome of the same pick, or None")


def without(folder: Path, names: list[str]) -> Path:
    """Return a copy of the package without some features."""
    shutil.copytree(PACKAGE, folder / "scrapy_focus", ignore=shutil.ignore_patterns("__pycache__"))
    for name in names:
        shutil.rmtree(folder / "scrapy_focus" / "features" / name)
    return folder


@pytest.mark.parametrize(
    "names", [DELETABLE, *(pytest.param([name], marks=pytest.mark.slow, id=name) for name in DELETABLE)]
)
def test_features_can_be_deleted_with_their_folders(site: MockSite, tmp_path: Path, names: list[str]) -> None:
    """Everything that is left can be imported, and crawls."""
    copy = without(tmp_path / "copy", names)
    arguments = [sys.executable, "-P", "-c", CRAWL, site.url("/page/0/20"), str(tmp_path / "job")]
    done = subprocess.run(
        arguments, capture_output=True, text=True, check=False, timeout=HANG, env={"PYTHONPATH": str(copy)}
    )
    assert done.stdout.strip() == "21 finished", done.stderr  # a start request is not a link


class Enough(Follower):
    """Gives all links of its first page, and then closes the crawl."""

    def parse(self, response: Response) -> Iterator[Any]:
        yield from super().parse(response)
        raise CloseSpider("enough")


def test_a_long_page_is_reported_when_the_crawl_is_closed(site: MockSite, tmp_path: Path) -> None:
    """Work that takes turns of the event loop is done at once at the end: the next run does not ask for the page."""
    site.pages["/"] = "".join(f'<a href="/ok?{i}">{i}</a>' for i in range(2 * PART))
    settings = {"JOBDIR": str(tmp_path), "FOCUS_MAX_INFLIGHT": 1}
    result = crawl(Enough, settings, seeds=[site.url("/")])
    assert result.reason == "enough"
    assert result.scheduler.crawl.counts["outcomes"] == 1
    crawl(Follower, {**settings, "FOCUS_BUDGET_REQUESTS": 3}, seeds=[site.url("/")])
    assert site.paths.count("/") == 1
