"""The synthetic scripted site: what is on it, what is behind scripts, what its APIs answer; all without a browser."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from typing import Any

import pytest

from scrapy_focus.lab.sites.scripted.__main__ import main
from scrapy_focus.lab.sites.scripted.plan import KINDS, MAKES, MIXES, SHAPES, Api, Mix
from scrapy_focus.lab.sites.scripted.site import ScriptedSite
from scrapy_focus.lab.sites.server import SiteServer
from tests.made import HANG

SMALL = Mix(lists=3, app_lists=6, per_app_list=4, collections=3, news=20, exports=6)
EVERY = [Api(make, shape) for make, shape in zip(MAKES, SHAPES, strict=True)]


def small(*apis: Api, seed: int = 0, **rest: Any) -> ScriptedSite:
    """Return a small site, with all makes of APIs by default."""
    return ScriptedSite(mix=SMALL, seed=seed, apis=apis or EVERY, **rest)


def reached(site: ScriptedSite, *, rendered: bool) -> set[str]:
    """Return all paths that links lead to from the first page."""
    found, queue = {"/"}, ["/"]
    for path in queue:
        for link in site.rendered_links(path) if rendered else site.plain_links(path):
            if link not in found:
                found.add(link)
                queue.append(link)
    return found


class Client:
    """Asks a server for JSON, as scripts do."""

    def __init__(self, server: SiteServer, site: ScriptedSite) -> None:
        self.url = server.url.rstrip("/")
        self.site = site

    def __call__(self, path: str) -> Any:
        with urllib.request.urlopen(self.url + path) as answer:
            assert answer.headers["Content-Type"] == "application/json"
            return json.load(answer)

    def status(self, path: str, body: bytes | None = None) -> int:
        try:
            with urllib.request.urlopen(self.url + path, body) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            error.close()
            return error.code


def walk(ask: Client, make: str, base: str) -> list[list[dict[str, Any]]]:
    """Return all lists of an API, from its first to the last that it names itself."""
    answers = [ask(f"{base}/datasets?page=1")]
    if make == "next":
        while answers[-1]["next"]:
            answers.append(ask(answers[-1]["next"]))
        assert all(answer["count"] == 12 for answer in answers)
    else:
        while answers[-1]["page"] < answers[-1]["pages"]:
            answers.append(ask(f"{base}/datasets?page={answers[-1]['page'] + 1}"))
    return [answer["results"] for answer in answers]


def test_it_is_a_function_of_the_seed() -> None:
    """To the byte, pages, files, scripts and API; another seed is another site of the same size."""
    one, two, other = small(), small(), small(seed=1)
    paths = [*one.html_paths(), *one.targets(), "/assets/bundle.js", "/assets/0.png", "/api/climate/datasets?page=1"]
    assert [one.fetch(path).body for path in paths] == [two.fetch(path).body for path in paths]
    assert [one.rendered_links(path) for path in paths] == [two.rendered_links(path) for path in paths]
    assert (one.n_pages, one.n_targets, one.n_blobs) == (other.n_pages, other.n_targets, other.n_blobs)
    assert set(one.targets("app")).isdisjoint(other.targets("app"))
    assert one.fetch("/news/1").body != other.fetch("/news/1").body
    assert one.fetch("/files/lists-1-1.csv").body != other.fetch("/files/lists-1-1.csv").body


@pytest.mark.parametrize(
    "site", [small(), *(ScriptedSite(mix=mix) for mix in MIXES.values())], ids=["small", *map(str, MIXES)]
)
def test_everything_is_reached_by_rendered_links(site: ScriptedSite) -> None:
    """From the first page to every page and every file, and to nothing else; without scripts, only to plain parts."""
    pages, targets = list(site.html_paths()), list(site.targets())
    assert (len(pages), len(targets)) == (site.n_pages, site.n_targets)
    assert reached(site, rendered=True) == {*pages, *targets}
    plain = reached(site, rendered=False)
    assert set(targets) - plain == site.hidden
    assert all(site.fetch(path).status == 200 for path in (*pages, *targets))
    assert all(site.is_target(path) for path in targets)
    assert not any(site.is_target(path) for path in pages)
    assert {site.fetch(path).mime for path in targets} == {"text/csv"}


@pytest.mark.parametrize(
    ("percent", "pages", "targets", "blobs"),
    [(5, 301, 1120, 1), (30, 262, 737, 5), (72, 258, 618, 10), (80, 249, 546, 10)],
)
def test_shares_of_the_mixes(percent: int, pages: int, targets: int, blobs: int) -> None:
    """Each mix has about the share of its files behind scripts that it is named by."""
    site = ScriptedSite(mix=MIXES[percent])
    assert site.share == pytest.approx(percent / 100, abs=0.011)
    assert (site.n_pages, site.n_targets, site.n_blobs) == (pages, targets, blobs)
    assert sum(len(list(site.targets(kind))) for kind in KINDS) == targets


def test_a_browser_is_needed_where_it_shows_more() -> None:
    """On each page of the app, of collections and of exports, and on no other."""
    site = small()
    for path in site.html_paths():
        more = set(site.rendered_links(path)) - set(site.plain_links(path))
        assert bool(more or site.blob(path)) == site.needs_browser(path)
        assert set(site.plain_links(path)) <= set(site.rendered_links(path))
        assert site.needs_browser(path) == (site.kind_of(path) in ("app", "collections", "exports"))
        before = site.rendered_links(path, acted=False)
        assert before == (site.rendered_links(path) if site.kind_of(path) == "app" else site.plain_links(path))
    assert sum(map(site.needs_browser, site.html_paths())) == 6 + 24 + 3 + 6
    assert not site.needs_browser("/nowhere")
    assert site.rendered_links("/nowhere") == site.plain_links("/files/lists-1-1.csv") == []


def test_scripts_are_where_they_should_be() -> None:
    """All pages of the app are the same shell; lists have no scripts at all; the others have the same bundle."""
    site = small()
    assert len({site.fetch(path).body for path in site.html_paths("app")}) == 1
    for kind in KINDS:
        for path in site.html_paths(kind):
            html = site.fetch(path).body.decode()
            assert re.findall('<script src="([^"]+)"', html) == ([] if kind == "lists" else ["/assets/bundle.js"])
    ways = {
        (b'id="more"' in html, b'id="end"' in html)
        for html in (site.fetch(path).body for path in site.html_paths("collections"))
    }
    assert ways == {(True, False), (False, True)}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("make", MAKES)
def test_each_api_can_be_walked(make: str, shape: str) -> None:
    """By its own answers to its last list, and to each dataset and file; these are what the pages show."""
    site = ScriptedSite(mix=Mix(app_lists=3, per_app_list=4), apis=[Api(make, shape)])  # type: ignore[arg-type]
    base = "/api/climate"
    found = []
    with SiteServer(site) as server:
        ask = Client(server, site)
        for page, items in zip(list(site.html_paths("app"))[:3], walk(ask, make, base), strict=True):
            links = []
            for each in items:
                path = each["url"] if shape == "urls" else f"/app/climate/dataset/{each['id']}"
                links.append(path)
                number = path.rpartition("/")[2]
                files = [each["url"] for each in ask(f"{base}/datasets/{number}")["resources"]]
                assert set(files) == set(site.rendered_links(path)) - set(site.plain_links("/"))
                found += files
            shown = [link for link in site.rendered_links(page) if "/dataset/" in link]
            assert shown == links
    assert found == list(site.targets("app"))


def test_apis_end() -> None:
    """A page beyond the last is empty or missing, as are datasets of other numbers; no page of the app exists there."""
    site = small()
    names = {section.make: name for name, section in site.sections.items()}
    with SiteServer(site) as server:
        ask = Client(server, site)
        assert ask(f"/api/{names['pages']}/datasets?page=4&size=4")["results"] == []
        assert ask.status(f"/api/{names['next']}/datasets?page=4") == 404
        for path in (f"/api/{names['pages']}/datasets?page=0", f"/api/{names['pages']}/datasets?page=x",
                     f"/api/{names['pages']}/datasets?page=1&size=5000", "/api/more?offset=4"):  # fmt: skip
            assert ask.status(path) == 400, path
        for path in (f"/api/{names['pages']}/datasets/0000-12", "/api/nothing/datasets", f"/api/{names['pages']}/x", "/api/more?collection=4&offset=4",
                     f"/app/{names['pages']}?page=4", "/app/x", "/app/x/dataset/1",
                     "/lists/4", "/lists/01", "/files/lists-4-0.csv", "/files/lists-1-9.csv", "/export?id=7", "/export?id=x"):  # fmt: skip
            assert ask.status(path) == 404, path


def test_only_the_beacon_takes_post() -> None:
    site = small()
    with SiteServer(site) as server:
        ask = Client(server, site)
        assert ask.status("/api/climate/datasets?page=1", b"{}") == 405
        assert ask.status("/lists/1", b"x") == 405
        assert (ask.status("/beacon", b"/"), ask.status("/beacon")) == (202, 405)


def test_collections_and_exports() -> None:
    """The rest of a collection comes eight at a time, and rows make the file of an export that has no URL."""
    site = small()
    with SiteServer(site) as server:
        ask = Client(server, site)
        for page in (1, 2, 3):
            links = [link for link in site.plain_links(f"/collections/{page}") if link.startswith("/files/")]
            while True:
                data = ask(f"/api/more?collection={page}&offset={len(links)}")
                links += [each["href"] for each in data["items"]]
                if data["done"]:
                    break
            assert links == [link for link in site.rendered_links(f"/collections/{page}") if link.startswith("/files/")]
            assert len(links) == 20
        made = [path for path in site.html_paths("exports") if site.blob(path) is not None]
        assert len(made) == site.n_blobs == 3
        for path in site.html_paths("exports"):
            number = path.rpartition("/")[2]
            assert ask.status(f"/export?id={number}") == (404 if path in made else 200)
            if path in made:
                rows = ask(f"/api/rows?id={number}")
                assert "".join(f"{name},{k},{value}\n" for name, k, value in rows).encode() == site.blob(path)
            else:
                assert ask.status(f"/api/rows?id={number}") == 404
                assert site.rendered_links(path)[-1] == f"/export?id={number}"
                with urllib.request.urlopen(f"{ask.url}/export?id={number}") as answer:
                    assert "attachment" in answer.headers["Content-Disposition"]
    assert site.blob("/lists/1") is None


def test_assets_may_be_kept_for_a_day() -> None:
    """All assets of pages exist, with a lifetime, and are of the usual size; nothing else has a lifetime."""
    site = small()
    with SiteServer(site, validators=True) as server:
        html = site.fetch("/news/1").body.decode()
        paths = re.findall(r'(?:src|href)="(/assets/[^"]+)"', html) + re.findall(
            r"url\(([^)]+)\)", site.fetch("/assets/site.css").body.decode()
        )
        assert len(paths) == 6
        sizes = {}
        for path in paths:
            with urllib.request.urlopen(server.url + path[1:]) as answer:
                assert answer.headers["Cache-Control"] == "max-age=86400"
                sizes[path], tag = len(answer.read()), answer.headers["ETag"]
            asked = urllib.request.Request(server.url + path[1:], headers={"If-None-Match": tag})
            with pytest.raises(urllib.error.HTTPError) as error:
                urllib.request.urlopen(asked)
            error.value.close()
            assert error.value.code == 304
        assert 200_000 <= sizes["/assets/bundle.js"] < 201_000
        assert sum(sizes.values()) > 320_000
    assert all(
        "Cache-Control" not in site.fetch(path).headers
        for path in ("/", "/news/1", "/files/lists-1-1.csv", "/api/more?collection=1&offset=4")
    )


def test_robots_txt_forbids_what_it_is_told_to() -> None:
    """Nothing by default; paths of the API, if they are given."""
    assert small().fetch("/robots.txt").body == b"User-agent: *\nDisallow:\n"
    site = small(forbidden=["/api/health/", "/api/more"])
    assert site.fetch("/robots.txt").body == b"User-agent: *\nDisallow: /api/health/\nDisallow: /api/more\n"
    for path in ("api", "/a b", "/a\nAllow: /"):
        with pytest.raises(ValueError, match="begins with a slash"):
            small(forbidden=[path])


@pytest.mark.parametrize("kind", ["lists", "app_lists", "collections", "news", "exports", "nothing"])
def test_a_site_may_have_one_kind_only(kind: str) -> None:
    """Or none; what there is can be reached."""
    none = dict.fromkeys(("lists", "app_lists", "collections", "news", "exports"), 0)
    site = ScriptedSite(mix=Mix(**{**none, **({kind: 4} if kind in none else {})}))
    assert reached(site, rendered=True) == {*site.html_paths(), *site.targets()}
    assert site.share == (1.0 if kind in ("app_lists", "exports") else 0.8 if kind == "collections" else 0.0)


def test_wrong_parameters_are_named() -> None:
    """With the given value, and the valid ones."""
    with pytest.raises(ValueError, match="news=-1 was given"):
        Mix(news=-1)
    with pytest.raises(ValueError, match="per_app_list=0 leaves"):
        Mix(per_app_list=0)
    with pytest.raises(ValueError, match=r"\('graphql', 'ids'\) is unknown; its make is one of next, pages"):
        small(Api("graphql"))  # type: ignore[arg-type]
    for apis in ([], [Api()] * 5):
        with pytest.raises(ValueError, match="4 lists of the app cannot be shared among"):
            ScriptedSite(mix=MIXES[5], apis=apis)


@pytest.mark.skipif(os.name == "nt", reason="needs Ctrl-C as a POSIX signal")
def test_a_command_serves_it(capsys: pytest.CaptureFixture[str]) -> None:
    """It prints the address and the size first, serves, and ends quietly on Ctrl-C; wrong options are usage errors."""
    command = [
        sys.executable,
        "-m",
        "scrapy_focus.lab.sites.scripted",
        "--mix",
        "5",
        "--seed",
        "3",
        "--api",
        "next",
        "--port",
        "0",
        "--forbid",
        "/api/",
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        found = re.fullmatch(r"(http://127\.0\.0\.1:\d+/) 301 pages 1120 targets 1 blobs\n", process.stdout.readline())
        assert found is not None
        site = ScriptedSite(mix=MIXES[5], seed=3, apis=[Api("next")], forbidden=["/api/"])
        for path in ("robots.txt", "news/1", "assets/bundle.js"):
            assert urllib.request.urlopen(found[1] + path).read() == site.fetch(f"/{path}").body
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=HANG) == ("", "")
        assert process.returncode == 0
    finally:
        process.kill()
        process.communicate()
    with pytest.raises(SystemExit):
        main(["--mix", "5", *["--api", "next"] * 5])
    assert "4 lists of the app cannot be shared among 5 APIs" in capsys.readouterr().err
