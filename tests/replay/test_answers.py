"""What becomes of each pick of a simulated crawl: HEADs, redirects, retries, and all that goes wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from handmade import (
    BUSY,
    CSV,
    FORBIDDEN,
    GONE,
    HOST,
    Curious,
    Fields,
    Reading,
    Watching,
    course,
    failing,
    file,
    moved,
    page,
    refresh,
    site_of,
    size_of,
)

from scrapy_focus import FilesGoal, ItemsGoal
from scrapy_focus.core.types import State
from scrapy_focus.lab.replay.simulate import simulate

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy_focus import Outcome
    from scrapy_focus.lab.replay.harvest import Harvest

SMALL = 64 * 1024 - 1
PNG = "image/png"


def crawl(
    folder: Path, answers: dict[str, Fields], policy: Watching | None = None, **options: Any
) -> tuple[Watching, Harvest, list[str]]:
    """Crawl a site; return the policy, the harvest, and the path of each request."""
    policy = policy or Watching()
    site = site_of(folder, answers)
    harvest = simulate(policy, FilesGoal(), site, **options)
    assert harvest.counts["selected"] == harvest.counts["outcomes"] + harvest.counts["released"]
    assert sum(count for name, count in harvest.counts.items() if name.startswith("outcome/")) == len(policy.learnt)
    return policy, harvest, course(harvest, site)


def ends(folder: Path, answers: dict[str, Fields], policy: Watching | None = None, **options: Any) -> Any:
    """Crawl a site; return the path of each request, and how those picks ended that did not end well."""
    policy, _, paths = crawl(folder, answers, policy, **options)
    return paths, policy.errors


def test_a_head_costs_a_request_and_its_headers(tmp_path: Path) -> None:
    """Then the same link is fetched; its headers are received twice, its body once."""
    front, data = page("/f.csv"), file(1000)
    policy, harvest, paths = crawl(tmp_path, {"/": front, "/f.csv": data}, Watching(heads=["/f.csv"]))
    header, body = size_of(data)
    root = sum(size_of(front))
    assert paths == ["/", "HEAD /f.csv", "/f.csv"]
    assert harvest.other_bytes.tolist() == [0, root, root + header, root + header]
    assert harvest.target_bytes.tolist() == [0, 0, 0, header + body]
    assert harvest.found.tolist() == [0, 0, 0, 1]
    _, head, got = policy.learnt
    assert (head.pick.method, head.status, head.mime, head.size, head.error, head.reward) == (
        "HEAD", 200, CSV, 1000, "", 1.0
    )  # fmt: skip
    assert (got.pick.method, got.pick.key, got.items, got.reward) == ("GET", head.pick.key, 1.0, 1.0)
    assert head.items == 0


def test_redirects_are_followed_within_a_pick(tmp_path: Path) -> None:
    """Each hop is a request; links and reward are those of the last URL, the pick is that of the first."""
    policy, harvest, paths = crawl(
        tmp_path,
        {"/": page("/a"), "/a": moved("/b"), "/b": moved("/c", status=301), "/c": page("/d.csv"), "/d.csv": file()},
    )
    assert paths == ["/", "/a", "/b", "/c", "/d.csv"]
    assert harvest.asked == [HOST + path for path in ("/", "/a", "/d.csv")]
    through = policy.learnt[1]
    assert (through.pick.url, through.status, through.page.url) == (f"{HOST}/a", 200, f"{HOST}/c")
    assert policy.placed[-1].depth == 2


def test_a_redirect_to_what_was_had_is_not_followed(tmp_path: Path) -> None:
    """Whether it was fetched, is queued, or is the URL itself; also one that another redirect led to before."""
    home, wait, self_, new = moved("/"), moved("/z"), moved("/self"), moved("/new")
    site = {
        "/": page("/home", "/wait", "/self", "/new1", "/new2", "/z"), "/home": home, "/wait": wait, "/self": self_, "/new1": new,
        "/new2": new, "/new": page(), "/z": page(),
    }  # fmt: skip
    paths, errors = ends(tmp_path, site)
    assert paths == ["/", "/home", "/wait", "/self", "/new1", "/new", "/new2", "/z"]
    assert errors == dict.fromkeys(["/home", "/wait", "/self", "/new2"], "redirect_seen")


def test_what_a_redirect_led_to_is_no_new_link(tmp_path: Path) -> None:
    """It was had; a policy that wants known links gets it again all the same, as live."""
    site = {"/": page("/a", "/c"), "/a": moved("/b"), "/b": page(), "/c": page("/b")}
    paths, _ = ends(tmp_path, site)
    assert paths == ["/", "/a", "/b", "/c"]
    policy = Curious()
    (tmp_path / "known").mkdir()
    crawl(tmp_path / "known", site, policy)
    assert [link.url.removeprefix(HOST) for link in policy.placed] == ["/", "/a", "/c", "/b"]


@pytest.mark.parametrize(("hops", "error"), [(20, None), (21, "ignored")])
@pytest.mark.parametrize("heads", [(), ("/0",)])
def test_twenty_redirects_are_followed(tmp_path: Path, hops: int, error: str | None, heads: tuple[str, ...]) -> None:
    """And not one more, as REDIRECT_MAX_TIMES says, for a HEAD neither."""
    chain = {f"/{i}": moved(f"/{i + 1}") for i in range(hops)} | {f"/{hops}": page()}
    paths, errors = ends(tmp_path, {"/": page("/0"), **chain}, Watching(heads=heads))
    followed = [f"/{i}" for i in range(21)]
    assert paths == ["/", *(f"HEAD {path}" for path in followed if heads), *followed]
    assert errors.get("/0") == error


@pytest.mark.parametrize(
    ("location", "get", "head"),
    [
        ("http://b.example/", "filtered", "ignored"),
        ("//b.example/x", "filtered", "ignored"),
        ("ftp://a.example/x", "http_error", ""),
    ],
)
def test_redirects_off_the_site_end_there(tmp_path: Path, location: str, get: str, head: str) -> None:
    """A link to another site is filtered; a target that is not a web link stays a redirect."""
    site = {"/": page("/off"), "/off": moved(location)}
    policy, _, paths = crawl(tmp_path, site, Watching(heads=["/off"]))
    assert paths == ["/", "HEAD /off", "/off"]
    assert [(each.pick.method, each.error) for each in policy.learnt[1:]] == [("HEAD", head), ("GET", get)]
    assert policy.learnt[2].status == (302 if get == "http_error" else None)


def test_a_redirect_without_a_location_is_an_error(tmp_path: Path) -> None:
    """It has a status, and nobody follows it."""
    policy, _, paths = crawl(tmp_path, {"/": page("/r"), "/r": file("", status=302)})
    assert paths == ["/", "/r"]
    assert (policy.learnt[1].status, policy.learnt[1].error) == (302, "http_error")


def test_a_refresh_is_followed_by_a_get(tmp_path: Path) -> None:
    """A HEAD has no body to find it in."""
    site = {"/": page("/r"), "/r": refresh("/s"), "/s": file()}
    policy, harvest, paths = crawl(tmp_path, site, Watching(heads=["/r"]))
    assert paths == ["/", "HEAD /r", "/r", "/s"]
    assert [each.mime for each in policy.learnt] == ["text/html", "text/html", CSV]
    assert harvest.rewards.tolist() == [0, 0, 0, 0, 1]


def test_a_head_follows_redirects_and_leaves_no_trace(tmp_path: Path) -> None:
    """Its pick ends with the answer of the last URL; the GET takes the same path, and a known URL does not stop it."""
    site = {"/": page("/a", "/h"), "/a": moved("/b"), "/b": file(), "/h": moved("/")}
    policy, harvest, paths = crawl(tmp_path, site, Watching(heads=["/a", "/h"]))
    assert paths == ["/", "HEAD /a", "HEAD /b", "/a", "/b", "HEAD /h", "HEAD /", "/h"]
    head = policy.learnt[1]
    assert (head.pick.url, head.page.url, head.mime, head.status) == (f"{HOST}/a", f"{HOST}/b", CSV, 200)
    assert harvest.found[-1] == 1
    assert policy.errors == {"/h": "redirect_seen"}


@pytest.mark.parametrize("status", [500, 502, 503, 504, 522, 524, 408, 429])
@pytest.mark.parametrize("retries", [0, 2, 3])
def test_busy_servers_are_asked_again(tmp_path: Path, status: int, retries: int) -> None:
    """The last answer counts, as an error; the same for a HEAD, and its status is not a separate error."""
    site = {"/": page("/b"), "/b": page("/never", status=status)}
    policy, _, paths = crawl(tmp_path, site, Watching(heads=["/b"]), retries=retries)
    assert paths == ["/", *["HEAD /b"] * (1 + retries), *["/b"] * (1 + retries)]
    assert [(each.status, each.error) for each in policy.learnt[1:]] == [(status, ""), (status, "http_error")]


def test_failures_are_tried_again(tmp_path: Path) -> None:
    """They bring no bytes; the outcome says which failure it was."""
    policy, harvest, paths = crawl(tmp_path, {"/": page("/f"), "/f": failing()})
    assert paths == ["/", "/f", "/f", "/f"]
    assert (policy.learnt[1].status, policy.learnt[1].error, policy.learnt[1].page) == (
        None, "failure: DownloadTimeoutError", None
    )  # fmt: skip
    assert harvest.other_bytes[1] == harvest.other_bytes[-1]
    assert harvest.counts["outcome/failure"] == 1


@pytest.mark.parametrize(
    ("error", "times"),
    [
        ("failure: ConnectionResetError", 3),
        ("failure: unknown", 3),
        ("failure: DownloadCancelledError", 1),  # larger than DOWNLOAD_MAXSIZE
        ("failure: BadGzipFile", 1),
        ("failure: UnicodeEncodeError", 1),
        ("failure: CannotResolveHostError", 0),
        ("failure: DownloadConnectionRefusedError", 0),
    ],
)
def test_some_failures_are_not_tried_again_and_some_are_no_requests(tmp_path: Path, error: str, times: int) -> None:
    """Scrapy tries again what the network did; what never left the machine is not counted, as in a live crawl."""
    site = {"/": page("/f", "/g"), "/f": failing(error), "/g": GONE}
    policy, harvest, paths = crawl(tmp_path, site, latency=1.0)
    assert paths == ["/", *["/f"] * times, "/g"]
    assert policy.errors == {"/f": error, "/g": "http_error"}
    assert harvest.seconds[-1] == 2 + (times or 3), "it takes its time all the same"


def test_a_refresh_goes_before_a_retry_and_tries_are_kept(tmp_path: Path) -> None:
    """As in Scrapy, where the redirect middlewares come first, and a redirect keeps the count of retries."""
    site = {"/": page("/r"), "/r": refresh("/b", status=503), "/b": BUSY}
    paths, errors = ends(tmp_path, site)
    assert paths == ["/", "/r", "/b", "/b", "/b"]
    assert errors == {"/r": "http_error"}


def test_what_robots_txt_forbids_costs_nothing(tmp_path: Path) -> None:
    """Linked, looked at, or behind a redirect; it is counted as asked for, as the policy chose it."""
    site = {
        "/": page("/no", "/look", "/r"),
        "/no": FORBIDDEN,
        "/look": FORBIDDEN,
        "/r": moved("/hidden"),
        "/hidden": FORBIDDEN,
    }
    policy, harvest, paths = crawl(tmp_path, site, Watching(heads=["/look"]))
    assert paths == ["/", "/r"]
    assert policy.errors == {"/no": "ignored", "/look": "ignored", "/r": "ignored"}
    assert len(harvest.asked) == 5, "the policy fetched after the HEAD was refused"


def test_what_was_never_recorded_costs_a_request_and_is_missed(tmp_path: Path) -> None:
    """Linked or behind a redirect; a HEAD that finds nothing is a separate pick."""
    policy, harvest, paths = crawl(tmp_path, {"/": page("/x", "/r", "/y"), "/r": moved("/z")}, Watching(heads=["/y"]))
    assert paths == ["/", "/x", "/r", "/z", "HEAD /y", "/y"]
    assert policy.errors == dict.fromkeys(["/x", "/r", "/y"], "unrecorded")
    assert (harvest.missed, len(harvest.asked)) == (4, 5)
    assert harvest.coverage == pytest.approx(1 / 5)


@pytest.mark.parametrize(
    ("size", "received"), [(SMALL, SMALL + size_of(file(1, PNG))[0]), (SMALL + 1, 0)], ids=["small", "large"]
)
def test_bodies_that_nobody_wants_are_stopped(tmp_path: Path, size: int, received: int) -> None:
    """Small ones arrive; of a large one nothing is counted, as in a live crawl."""
    policy, harvest, paths = crawl(tmp_path, {"/": page("/i"), "/i": file(size, PNG)}, Watching(heads=["/i"]))
    assert paths == ["/", "HEAD /i", "/i"]
    assert policy.errors == {"/i": "mime_stop"}
    assert policy.learnt[1].error == "", "a HEAD has no body to be stopped"
    assert harvest.other_bytes[3] - harvest.other_bytes[2] == received


def test_what_the_goal_wants_is_not_stopped(tmp_path: Path) -> None:
    """Nor anything where nothing is blocked."""
    site = site_of(tmp_path, {"/": page("/i"), "/i": file(SMALL + 1, PNG)})
    assert simulate(Watching(), FilesGoal(types=["image/*"]), site).found[-1] == 1
    policy = Watching()
    simulate(policy, FilesGoal(), site, blocked_mimes=())
    assert policy.errors == {}


def test_redirects_and_retries_go_before_small_bodies_that_are_stopped(tmp_path: Path) -> None:
    """A large one is stopped when its headers come, whatever they say."""
    site = {
        "/": page("/moved", "/busy", "/large/moved", "/large/busy", "/gone"), "/moved": moved("/p", mime=PNG), "/p": page(),
        "/busy": file(9, PNG, status=503), "/large/moved": moved("/q", mime=PNG, size=10**6), "/q": page(),
        "/large/busy": file(SMALL + 1, PNG, status=503), "/gone": file(9, PNG, status=404),
    }  # fmt: skip
    paths, errors = ends(tmp_path, site)
    assert paths == ["/", "/moved", "/p", "/busy", "/busy", "/busy", "/large/moved", "/large/busy", "/gone"]
    assert errors == dict.fromkeys(["/busy", "/large/moved", "/large/busy", "/gone"], "mime_stop")


def test_ignored_extensions_are_not_asked_for_unless_a_redirect_leads_there(tmp_path: Path) -> None:
    """It is the spider that ignores links; by default those of images, unless the goal wants them."""
    site = {"/": page("/a.png", "/r", "/b.PNG?x=1"), "/r": moved("/c.png"), "/c.png": page("/d"), "/d": page()}
    assert ends(tmp_path, site)[0] == ["/", "/r", "/c.png", "/d"]
    recorded = site_of(tmp_path / "again", site)
    wants = simulate(Watching(), FilesGoal(types=["image/png"]), recorded)
    assert course(wants, recorded) == ["/", "/a.png", "/r", "/c.png", "/b.PNG?x=1", "/d"]
    assert course(simulate(Watching(), FilesGoal(), recorded, ignored=()), recorded) == course(wants, recorded)


def test_a_root_is_asked_for_whatever_its_extension(tmp_path: Path) -> None:
    """It is not a link that a spider could ignore."""
    recorded = site_of(tmp_path, {"/a.png": page("/b"), "/b": page()}, roots=["/a.png"])
    assert course(simulate(Watching(), ItemsGoal(), recorded), recorded) == ["/a.png", "/b"]


def test_only_good_pages_have_links_and_items(tmp_path: Path) -> None:
    """As Scrapy calls no callback for the others."""
    site = {"/": page("/e", "/n.csv"), "/e": page("/never", status=500), "/n.csv": file(status=404)}
    policy, harvest, _ = crawl(tmp_path, site)
    assert [link.url for link in policy.placed] == [HOST + path for path in ("/", "/e", "/n.csv")]
    assert {each.items for each in policy.learnt} == {0.0}
    assert harvest.found[-1] == 0


def test_a_link_is_offered_once(tmp_path: Path) -> None:
    """In document order; but to a policy that wants known ones, each time, with their state."""
    site = {"/": page("/a", "/b"), "/a": page("/b", "/a", "/c", "/"), "/b": page("/c"), "/c": page()}
    policy, _, paths = crawl(tmp_path, site)
    assert paths == ["/", "/a", "/b", "/c"]
    assert [link.url.removeprefix(HOST) for link in policy.placed] == paths
    (tmp_path / "known").mkdir()
    curious, _, same = crawl(tmp_path / "known", site, Curious())
    assert same == paths
    assert [(link.url.removeprefix(HOST), link.state) for link in curious.placed[3:]] == [
        ("/b", State.WAITING), ("/a", State.FETCHED), ("/c", State.NEW), ("/", State.FETCHED), ("/c", State.WAITING),
    ]  # fmt: skip


def test_a_policy_that_reads_pages_is_told_where_links_stand(tmp_path: Path) -> None:
    """Even if only some links of a page are new; a policy that does not listen receives nothing."""
    site = {"/": page("/a", "/b"), "/a": page("/b", "/c"), "/b": page(), "/c": page()}
    policy, _, _ = crawl(tmp_path, site, Reading())
    last = policy.placed[-1]
    assert (last.url, last.depth, last.host) == (f"{HOST}/c", 2, "a.example")
    assert (last.anchor, last.tag_path) == ("to /c", "html/body/p.x/a")
    (tmp_path / "blind").mkdir()
    blind, _, _ = crawl(tmp_path / "blind", site)
    assert {(link.anchor, link.tag_path, link.context) for link in blind.placed} == {("", "", "")}


def test_an_outcome_has_its_page_and_its_time(tmp_path: Path) -> None:
    """All requests of a pick together, and what the last URL answered."""
    seen: list[Outcome] = []
    recorded = site_of(tmp_path, {"/": page("/a"), "/a": moved("/b"), "/b": page(text="hello")}, bodies=True)
    simulate(Watching(), lambda outcome: seen.append(outcome) or 0.0, recorded, latency=0.5)
    at = [outcome for outcome in seen if outcome.seconds]
    assert [(outcome.pick.url, outcome.seconds) for outcome in at] == [(f"{HOST}/", 0.5), (f"{HOST}/a", 1.0)]
    assert (at[1].page.status, at[1].page.headers["Content-Type"], at[1].page.text) == (200, "text/html", "hello")
