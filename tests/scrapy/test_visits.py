"""Live crawls whose policy revisits pages, and how they detect changes."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from crawls import Follower, crawl
from scrapy import Request
from versionsite import PROSE, VersionSite

from scrapy_focus import FilesGoal, Placement
from scrapy_focus.features.revisits.feature import Visits
from scrapy_focus.features.revisits.lastvisit import Visit
from scrapy_focus.finders.files.spider import DatasetsSpider
from tests.made import EachAgain

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from mocksite import MockSite
    from scrapy.http import Response
    from versionsite import Validators

    from scrapy_focus import Outcome

EVERY = 0.01  # seconds


class Noting(EachAgain):
    """An :class:`EachAgain` that revisits failures, too, and notes what it learns."""

    def __init__(self, *, every: float = EVERY, times: int = 1_000_000) -> None:
        super().__init__(every=every, times=times)
        self.came: list[tuple[str, Outcome]] = []
        self.read: list[bool] = []  # whether there was a page

    def learn(self, outcome: Outcome) -> None:
        super().learn(outcome)
        path = "/" + outcome.pick.url.split("/", 3)[3]
        self.read.append(outcome.page is not None)
        self.came.append((path, outcome._replace(page=None, payload=None)))

    def again(self, outcome: Outcome) -> Placement | None:
        visits = self.visits[outcome.pick.key]
        return None if visits > self.times else Placement(0, -1e9 * visits, after=self.now + self.every)

    def of(self, path: str) -> list[Outcome]:
        """Return the outcomes of a path."""
        return [outcome for where, outcome in self.came if where == path]

    def changed(self, path: str = "/") -> list[bool | None]:
        """Return what was learned about a path at each visit."""
        return [outcome.changed for outcome in self.of(path)]


class Reader(Follower):
    """Yields what it reads of each page."""

    name = "reader"

    def parse(self, response: Response) -> Any:
        yield {"text": response.css("p::text").getall()[-1:], "flags": response.flags, "status": response.status}
        yield from super().parse(response)


def again(requests: int, **more: Any) -> dict[str, Any]:
    """Return the settings of a crawl that fetches each page again and again, one at a time."""
    return {
        "FOCUS_POLICY": Noting, "FOCUS_BUDGET_REQUESTS": requests, "ROBOTSTXT_OBEY": False, "FOCUS_MAX_INFLIGHT": 1,
        **more,
    }  # fmt: skip


def read(result: Any) -> list[str]:
    """Return what the spider read of pages, in order."""
    return [item["text"][0] for item in result.items if item.get("text")]


@pytest.mark.reactor
@pytest.mark.parametrize("addon", [False, True], ids=["scheduler", "addon"])
@pytest.mark.parametrize("validators", ["right", "weak", "dated"])
def test_an_unchanged_page_costs_no_body_and_no_callback(addon: bool, validators: Validators) -> None:
    """Its outcome has no error and no reward; Scrapy counts no error either, and calls no errback."""
    with VersionSite(lambda path, n: 0, validators, links=("/a", "/b")) as site:
        result = crawl(Reader, again(15), addon=addon, seeds=[site.url("/")])
    assert read(result) == ["Version 0"] * 3
    assert result.outcomes == {"ok": 3, "unchanged": 12}
    assert result.stats["focus/reward"] == len(result.items)
    assert result.errors == {}
    assert not [name for name in result.stats if name.startswith("httperror/")]
    assert not [record for record in result.records if record.levelname == "ERROR"]
    assert not result.logged("Ignoring response")
    told = [size for _, status, size in site.sizes if status == 304]
    assert result.policy.read == [status == 200 for _, status, _ in site.sizes]
    assert len(told) >= 6
    assert sum(told) == 0
    assert result.stats["focus/visit/not_modified"] == len(told)
    for outcome in [each for _, each in result.policy.came][3:]:
        assert (outcome.changed, outcome.error, outcome.reward, outcome.mime) == (False, "", 0.0, "text/html")
        assert (outcome.status, outcome.size) == (304, 0) or (outcome.status == 200 and outcome.size > 1000)


@pytest.mark.parametrize("validators", ["right", "weak", "dated", "none"])
def test_a_change_is_found_by_all_that_servers_say(validators: Validators) -> None:
    """Even without validators: then the text decides. It reaches the callback, and earns its reward."""
    with VersionSite(lambda path, n: n // 4, validators) as site:
        result = crawl(Reader, again(12), seeds=[site.url("/")])
    assert read(result) == [f"Version {n}" for n in range(4)]
    assert result.policy.changed() == [None, *[False] * 2, True, *[False] * 3, True, *[False] * 3, True]
    assert result.stats["focus/visit/changed"] == 3
    rewards = [2.0 * (changed is not False) for changed in result.policy.changed()]
    assert [outcome.reward for outcome in result.policy.of("/")] == rewards, "two items"
    assert (validators == "none") == (set(site.asks("/")) == {""})


@pytest.mark.parametrize("validators", ["fixed", "deaf"])
def test_a_server_that_is_wrong_hides_no_change_for_long(validators: Validators) -> None:
    """It is detected, and its pages are fetched in full from then on: only the first change is late."""
    with VersionSite(lambda path, n: n // 10, validators, links=("/a",)) as site:
        result = crawl(Reader, again(64), seeds=[site.url("/")])
    assert set(read(result)) == {f"Version {n}" for n in range(4)}
    assert result.stats["focus/visit/doubted"] == 1
    assert len(result.logged("from now on its pages are fetched in full")) == 1
    assert result.stats["focus/visit/wrong"] >= 1
    found_out = next(
        n for n, (_, outcome) in enumerate(result.policy.came)
        if (outcome.changed if validators == "fixed" else outcome.error == "http_error")
    )  # fmt: skip
    assert [n for n, seen in enumerate(site.log) if "if-none-match" in seen.headers][-1] <= found_out
    assert sum("if-none-match" in seen.headers for seen in site.log) > 10
    assert result.outcomes.get("http_error", 0) == (validators == "deaf"), "the same ETag says enough"
    for path in ("/", "/a"):
        changes = [n for n, changed in enumerate(result.policy.changed(path), 1) if changed]
        assert len(changes) == 3
        assert changes[1:] == [20, 30]
        assert 10 <= changes[0] < 20


def test_a_server_that_is_right_is_asked_ever_more() -> None:
    """Whole pages, to see whether it is, are fetched less and less: at first one in two, in the end one in twenty."""
    with VersionSite(lambda path, n: 0) as site:
        result = crawl(Reader, again(140), seeds=[site.url("/")])
    whole = [n for n, condition in enumerate(site.asks("/"), 1) if not condition]
    assert whole[:2] in ([1, 3], [1, 4])
    assert 8 <= len(whole) <= 20
    assert len([n for n in whole if n > 100]) <= 3
    assert set(result.policy.changed()[1:]) == {False}
    assert "focus/visit/wrong" not in result.stats


def test_a_304_to_no_question_is_an_error() -> None:
    """It is named once, counted, and believed nowhere: nothing is known of the page then."""
    with VersionSite(lambda path, n: 0, "unasked") as site:
        result = crawl(Reader, again(6), seeds=[site.url("/")])
    first, asked, *others = result.policy.of("/")
    assert (first.changed, asked.changed, asked.error) == (None, False, "")
    assert {(other.changed, other.error, other.status) for other in others} <= {
        (None, "http_error", 304), (False, "", 304),
    }  # fmt: skip
    assert others[-1].error == "http_error"
    assert result.stats["focus/visit/unasked"] >= 1
    assert len(result.logged("answered 304 to a request without conditions")) == 1
    assert read(result) == ["Version 0"]


def test_what_changes_at_each_visit_is_no_change() -> None:
    """Times, counters, tokens; a page whose text itself differs each time is counted once."""
    with VersionSite(lambda path, n: None) as site:
        site.answers["/"] = lambda n: (
            200, {"Content-Type": "text/html"},
            f"<html><body><script>nonce = '{n * 7919}'</script><p>{PROSE}</p><p>12:{n:02}:17</p><i>{n} minutes ago</i>"
            f"<b>{n} views</b><form><input type='hidden' value='{n}'></form><a href='/new?sid={n:032x}'>n</a>"
            f"</body></html>".encode(),
        )  # fmt: skip
        site.answers["/new"] = lambda n: (200, {"Content-Type": "text/html"}, f"<p>{PROSE}{n} {n * 31}</p>".encode())
        result = crawl(Reader, again(16), seeds=[site.url("/"), site.url("/new")])
    assert result.policy.changed("/")[1:4] == [False] * 3
    assert set(result.policy.changed("/new")[1:]) == {True}
    assert result.stats["focus/visit/restless"] == 1


class Conditional(Reader):
    """Asks whether its pages have changed by itself."""

    name = "conditional"

    async def start(self) -> AsyncIterator[Any]:
        for seed in self.seeds:
            yield Request(seed, headers={"If-None-Match": '"/0"'})


@pytest.mark.few(1)
@pytest.mark.parametrize("changes", [False, True])
def test_conditions_of_the_spider_stay(changes: bool) -> None:
    """What they are answered is the business of the spider, but no error."""
    with VersionSite(lambda path, n: int(changes and n % 2)) as site:
        result = crawl(Conditional, again(5), seeds=[site.url("/")])
    assert site.asks("/") == ['"/0"'] * 5
    if changes:
        assert result.policy.changed() == [None, False, False, False, False]
        assert {outcome.error for outcome in result.policy.of("/")} == {""}
    else:
        assert result.outcomes == {"http_error": 5}, "nothing was seen that could have changed"
    assert "focus/visit/doubted" not in result.stats


class Stumbling(Reader):
    """Fails on the first pages."""

    name = "stumbling"
    left = 2

    def parse(self, response: Response) -> Any:
        self.left -= 1
        if self.left >= 0:
            raise ValueError("not today")
        return super().parse(response)


def test_a_page_is_seen_when_its_callback_has_read_it() -> None:
    """Until then no conditions are sent, so that no 304 hides an unread page."""
    with VersionSite(lambda path, n: 0) as site:
        result = crawl(Stumbling, again(5), seeds=[site.url("/")])
    assert site.asks("/")[:3] == ["", "", ""]
    assert site.asks("/")[3] == '"/0"'
    assert result.policy.changed() == [None, None, None, False, False]
    assert result.outcomes == {"spider_error": 2, "ok": 1, "unchanged": 2}
    assert read(result) == ["Version 0"]


def test_what_is_gone_is_not_fetched_again() -> None:
    """After 410, or 404 three times in a row, whatever the policy says; a page that reappears in between is watched."""

    def answer(path: str, n: int) -> int | None:
        if path == "/two" and n in (2, 3, 5):
            return None
        return None if path in ("/three", "/gone") and n > 1 else 0

    with VersionSite(answer, links=("/two", "/three", "/gone")) as site:
        site.answers["/gone"] = lambda n: (410, {"Content-Type": "text/html"}, b"gone")
        result = crawl(Reader, again(24), seeds=[site.url("/")])
    visits = Counter(site.paths)
    assert (visits["/three"], visits["/gone"]) == (1 + 3, 1 + 1)
    assert result.stats["focus/visit/gone"] == 2
    assert visits["/two"] >= 7
    assert [outcome.once for outcome in result.policy.of("/three")] == [False, False, False, True]
    assert result.policy.changed("/two")[:6] == [None, None, None, False, None, False], "it is what it was"


def test_with_an_http_cache_the_cache_asks(tmp_path: Path) -> None:
    """What it answers is compared like any other."""
    cache = {
        "HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path),
        "HTTPCACHE_POLICY": "scrapy.extensions.httpcache.RFC2616Policy",
    }  # fmt: skip
    with VersionSite(lambda path, n: n // 4) as site:
        site.more = {"Cache-Control": "max-age=0"}
        settings = again(8, FOCUS_POLICY_PARAMS={"every": EVERY, "times": 7}, **cache)
        result = crawl(Reader, settings, seeds=[site.url("/")])
    assert site.asks("/")[1] == '"/0"'
    assert read(result) == ["Version 0", "Version 1", "Version 2"]
    assert result.policy.changed() == [None, False, False, True, False, False, False, True]
    assert "focus/visit/not_modified" not in result.stats, "the cache turned it into the page"


def test_a_cache_that_never_asks_is_left_alone(tmp_path: Path) -> None:
    """It would keep a 304 in the place of the page."""
    cache = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path), "HTTPCACHE_EXPIRATION_SECS": 1}
    with VersionSite(lambda path, n: 0) as site:
        settings = again(3, FOCUS_POLICY_PARAMS={"every": 1.2, "times": 2}, **cache)
        result = crawl(Reader, settings, seeds=[site.url("/")])
    assert site.asks("/") == [""] * 3
    assert result.policy.changed() == [None, False, False]


def test_validators_are_sent_where_they_belong() -> None:
    """A redirect is asked for without those of its page, and the page with them."""
    with VersionSite(lambda path, n: None if path == "/gone" else 0) as site:
        result = crawl(Reader, again(8), seeds=[site.url("/redirect?to=/page")])
    assert set(site.asks("/redirect?to=/page")) == {""}
    assert site.asks("/page")[:2] == ["", '"/page0"']
    assert result.policy.changed("/redirect?to=/page") == [None, False, False, False]


@pytest.mark.parametrize(
    "headers",
    [
        {"ETag": '"' + "x" * 6_000 + '"'},
        {"ETag": '"a"\r\nETag: "b"'},
        {"Last-Modified": "yesterday, or so"},
        {"Last-Modified": "Mon, 99 Feb 20260 99:99:99 GMT" * 50},
        {"Cache-Control": "max-age=soon", "Age": "soon"},
    ],
    ids=["long", "twice", "no date", "long date", "no number"],
)
def test_odd_headers_are_not_sent_back(headers: dict[str, str]) -> None:
    """The page is compared then."""
    with VersionSite(lambda path, n: 0, "none") as site:
        site.more = headers
        result = crawl(Reader, again(4), seeds=[site.url("/")])
    assert site.asks("/") == [""] * 4
    assert result.policy.changed() == [None, False, False, False]
    assert result.errors == {}
    assert {outcome.max_age for outcome in result.policy.of("/")} == {None}


def test_the_policy_knows_for_how_long_a_page_is_fresh() -> None:
    """By its headers for all caches, also with a 304; a page without such headers has none."""
    with VersionSite(lambda path, n: 0) as site:
        site.more = {"Cache-Control": "public, s-maxage=5, max-age=600", "Age": "100"}
        result = crawl(Reader, again(3), seeds=[site.url("/")])
    assert [(outcome.status, outcome.max_age) for outcome in result.policy.of("/")][:2] == [(200, 500.0), (304, 500.0)]


def test_a_spider_may_be_given_unchanged_pages() -> None:
    """Their flags say so; a page that the server did not send again is an answer 304 without a body."""
    with VersionSite(lambda path, n: 0, links=("/a",)) as site:
        result = crawl(Reader, again(12, FOCUS_UNCHANGED=True), seeds=[site.url("/")])
    told = [item for item in result.items if item.get("status") == 304]
    whole = [item for item in result.items if item.get("status") == 200]
    assert len(told) == sum(status == 304 for _, status, _ in site.sizes) > 3
    assert {tuple(item["flags"]) for item in told} == {("unchanged",)}
    assert [item["flags"] for item in whole[:3]] == [[], [], ["unchanged"]]
    assert result.outcomes == {"ok": 2, "unchanged": 10}
    assert result.stats["focus/reward"] == 4, "two items of each page"


def test_what_is_known_of_pages_survives_the_process(tmp_path: Path) -> None:
    """The next run sends the validators of the last one, and treats no unchanged page as new."""
    with VersionSite(lambda path, n: 0, links=("/a",)) as site:
        settings = again(20, JOBDIR=str(tmp_path), CLOSESPIDER_PAGECOUNT=2)
        crawl(Reader, settings, seeds=[site.url("/")])
        before = len(site.paths)
        second = crawl(Reader, settings, seeds=[site.url("/")])
    assert before < len(site.paths)
    assert [seen.headers.get("if-none-match", "") != "" for seen in site.log[before:]][:1] == [True]
    assert read(second) == []
    assert second.outcomes.keys() == {"ok", "unchanged"}


class Heads(Noting):
    """Looks at each page first."""

    def place(self, links: Any, source: Any) -> Any:
        method = "GET" if source is not None and source.pick.method == "HEAD" else "HEAD"
        return [place._replace(method=method) for place in super().place(links, source)]


def test_a_head_says_nothing_of_changes() -> None:
    """It has no conditions, and its outcome no answer."""
    with VersionSite(lambda path, n: 0) as site:
        result = crawl(Reader, again(4, FOCUS_POLICY=Heads), addon=True, seeds=[site.url("/")])
    heads = [outcome for outcome in result.policy.of("/") if outcome.pick.method == "HEAD"]
    assert [outcome.changed for outcome in heads] == [None]
    assert [seen.headers.get("if-none-match") for seen in site.log if seen.method == "HEAD"] == [None]
    assert result.policy.changed()[-2:] == [False, False]


def test_files_are_stored_when_they_change(tmp_path: Path) -> None:
    """Each version earns once, and the older ones stay."""
    with VersionSite(lambda path, n: 0, links=("/f.csv",)) as site:
        site.answers["/f.csv"] = lambda n: (200, {"Content-Type": "text/csv"}, f"a,b\n1,{n // 3}\n".encode())
        version = site.version
        site.version = lambda path, n: None if path == "/f.csv" else version(path, n)
        settings = again(16, FOCUS_POLICY_PARAMS={"every": EVERY}, CONCURRENT_REQUESTS=1)
        result = crawl(DatasetsSpider, settings, addon=True, root=site.url("/"), out=str(tmp_path), sitemaps="no")
    versions = site.paths.count("/f.csv") // 3 + 1
    assert versions >= 3
    contents = sorted(file.read_text() for file in (tmp_path / "files").rglob("*.csv"))
    assert contents == [f"a,b\n1,{n}\n" for n in range(versions)]
    assert result.stats["focus/reward"] == versions
    assert (result.stats["file/new"], result.stats["file/changed"]) == (1, versions - 1)
    lines = [line for line in (tmp_path / "manifest.jsonl").read_text().splitlines() if line]
    assert len(lines) == versions
    goal = result.scheduler.crawl.goal
    assert isinstance(goal, FilesGoal)


def test_a_record_that_is_none_knows_nothing() -> None:
    """A value that a spider puts there is not a record."""
    known = Visit(digest=5, etag='"a"', visits=3, is_stale=True)
    assert Visit.unpack(known.pack()) == known
    for stored in (True, None, b"", b"\x80", "text", (1, 2), known.pack()[:-1]):
        assert Visit.unpack(stored) == Visit()


def test_crawls_without_revisits_send_no_conditions(site: MockSite) -> None:
    """And their outcomes have no changes."""
    site.answers["/"] = lambda n: (200, {"ETag": '"1"', "Content-Type": "text/html"}, b"home")
    result = crawl(Follower, {"FOCUS_POLICY": "scrapy_focus.policies.orderings.BreadthFirst"}, seeds=[site.url("/")])
    assert not [name for name in result.stats if name.startswith("focus/visit/")]
    assert result.scheduler.focus_host.features.find(Visits) is None


class Known(Reader):
    """Is given a request that cannot be stored, and keeps it."""

    name = "known"
    given: Request

    async def start(self) -> AsyncIterator[Any]:
        for seed in self.seeds:
            self.given = Request(seed, callback=partial(self.parse))
            yield self.given


def test_a_request_stays_what_the_spider_made_it() -> None:
    """Whatever was put on it for a visit is taken off again."""
    with VersionSite(lambda path, n: 0) as site:
        result = crawl(Known, again(6), seeds=[site.url("/")])
    given = result.spider.given
    assert read(result) == ["Version 0"]
    assert site.asks("/")[1] == '"/0"'
    assert "If-None-Match" not in given.headers
    assert "handle_httpstatus_list" not in given.meta
    assert isinstance(given.callback, partial)
