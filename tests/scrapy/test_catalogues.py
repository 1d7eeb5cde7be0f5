"""The spider ``datasets`` reads catalogues, JSON-LD, headers and directory listings, and asks for what they list."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from crawls import crawl
from mocksite import MockSite

from scrapy_focus.engine.ending import SENTENCE
from scrapy_focus.finders.files.spider import DatasetsSpider
from scrapy_focus.finders.kit.page.folder import PAGE

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


HELP = "https://a.test/api/3/action/help_show?name=package_search"
SEARCH = "/api/3/action/package_search?rows=200&start="
CKAN = '<meta name="generator" content="ckan 2.10.4">'
SOURCES = ("CKAN", "DCAT", "JSON-LD")


def say(site: MockSite, path: str, mime: str, body: str | bytes, **headers: str) -> None:
    """Set the answer of a path."""
    answer = 200, {"Content-Type": mime, **headers}, body.encode() if isinstance(body, str) else body
    site.answers[path] = lambda times: answer


def page(site: MockSite, path: str, body: str, head: str = "") -> None:
    """Set a page."""
    site.pages[path] = f"<html><head>{head}</head><body>{body}</body></html>"


def tables(site: MockSite, *paths: str) -> None:
    """Serve a different table at each path."""
    for path in paths:
        say(site, path, "text/csv", f"{path}\n1\n")


def dcat(urls: Iterable[Any], **more: Any) -> str:
    """Return a catalogue with a data set for each file."""
    datasets = [{"title": "Rain", "distribution": [{"downloadURL": url, "format": "CSV"}]} for url in urls]
    return json.dumps({"@type": "dcat:Catalog", "dataset": datasets, **more})


def ckan(urls: Iterable[Any], count: Any) -> str:
    """Return an answer of CKAN with a data set for each file."""
    results = [{"title": "Rain", "resources": [{"url": url, "format": "CSV"}]} for url in urls]
    return json.dumps({"help": HELP, "success": True, "result": {"count": count, "results": results}})


def urlset(site: MockSite, *paths: str) -> str:
    """Return a sitemap."""
    return f"<urlset>{''.join(f'<url><loc>{site.url(path)}</loc></url>' for path in paths)}</urlset>"


def json_ld(url: str) -> str:
    """Return the description of a data set with one file."""
    file = {"@type": "DataDownload", "contentUrl": url, "encodingFormat": "text/csv"}
    described = {"@context": "https://schema.org/", "@type": "Dataset", "name": "Rain", "distribution": [file]}
    return f'<script type="application/ld+json">{json.dumps(described)}</script>'


def found(site: MockSite, folder: Path, settings: Any = (), **args: Any) -> tuple[list[str], Any]:
    """Return the paths of all files that a crawl found, and the crawl."""
    given = {"ROBOTSTXT_OBEY": True, "LOG_LEVEL": "DEBUG", "FOCUS_MAX_INFLIGHT": 1, **dict(settings)}
    result = crawl(DatasetsSpider, given, addon=True, root=site.url("/start"), out=str(folder), **args)
    assert not result.errors
    assert not [record for record in result.records if record.levelname == "ERROR"]
    return sorted(item.url.removeprefix(site.url("")) for item in result.items), result


def test_ckan_is_asked_for_its_files_page_by_page(site: MockSite, tmp_path: Path) -> None:
    """It is recognized by its generator. Its answers are no files, and what it declares as CSV is predicted to be."""
    page(site, "/start", "nothing here", CKAN)
    paths = [f"/export?table={n}" for n in range(5)]
    tables(site, *paths)
    for start, some in ((0, paths[:3]), (3, paths[3:])):
        say(site, f"{SEARCH}{start}", "application/json", ckan(map(site.url, some), count=5))
    names, result = found(site, tmp_path)
    assert names == paths
    assert sorted(site.paths) == sorted(["/start", f"{SEARCH}0", f"{SEARCH}3", *paths])
    assert {"(ckan)/catalogue", "(ckan)/file"} <= set(result.policy.paths)
    assert {item.anchor for item in result.items} == {"Rain (csv)"}
    assert result.stats["focus/declared/files"] == result.stats["focus/declared/datasets"] == 5
    assert "list 5 data sets" in (tmp_path / PAGE).read_text()


@pytest.mark.parametrize("sign", ["named", "linked", "software", "described"])
def test_dcat_is_found_by_what_names_it(site: MockSite, tmp_path: Path, sign: str) -> None:
    """By the head of a page, a link, or, at its usual address, by the headers of Socrata or a description of the site."""
    catalog = '<script type="application/ld+json">{"@type": "DataCatalog"}</script>'
    head = {"named": '<link rel="alternate" type="application/json" href="/data.json">', "described": catalog}
    body = f"<html><head>{head.get(sign, '')}</head><body>{'<a href=/data.json>all</a>' * (sign == 'linked')}</body></html>"
    say(site, "/start", "text/html", body, **({"X-Socrata-Region": "aws"} if sign == "software" else {}))
    tables(site, "/rows?id=1")
    say(site, "/data.json", "application/json", dcat([site.url("/rows?id=1")]))
    names, result = found(site, tmp_path)
    assert names == ["/rows?id=1"]
    assert site.paths == ["/start", "/data.json", "/rows?id=1"]
    assert "(catalogue)/file" in result.policy.paths


@pytest.mark.parametrize("way", ["header", "name", "full page"])
def test_pages_of_a_catalogue_follow_each_other(site: MockSite, tmp_path: Path, way: str) -> None:
    """By a ``Link`` header, by a name in the catalogue, or, as ckanext-dcat names none, because a page is full."""
    page(site, "/start", '<a href="/data.json">all</a>')
    tables(site, "/r?id=1", "/r?id=2")
    first = [site.url("/r?id=1")] * (100 if way == "full page" else 1)
    more = {"hydra:view": {"hydra:next": "/data.json?page=2"}} if way == "name" else {}
    headers = {"Link": '</data.json?page=2>; rel="next", </data.json>; rel=self'} if way == "header" else {}
    say(site, "/data.json", "application/json", dcat(first, **more), **headers)
    say(site, "/data.json?page=2", "application/json", dcat([site.url("/r?id=2")]))
    names, _ = found(site, tmp_path)
    assert names == ["/r?id=1", "/r?id=2"]
    assert len(site.paths) == 5


def test_json_ld_and_headers_declare_files(site: MockSite, tmp_path: Path) -> None:
    """Files that no link of a page leads to; a linked one is of the declared kind, as its type is known."""
    body = f'<html><head>{json_ld("/get?id=1")}</head><body><a href="/get?id=1">get</a></body></html>'
    links = '</get?id=2>; rel="item"; type="text/csv", </license>; rel="license"'
    say(site, "/start", "text/html", body, Link=links)
    tables(site, "/get?id=1", "/get?id=2")
    names, result = found(site, tmp_path)
    assert names == ["/get?id=1", "/get?id=2"]
    assert site.paths[1:] in (names, names[::-1])
    assert {"(json-ld)/file", "(header)/file"} <= set(result.policy.paths)


def test_sorted_copies_of_a_directory_are_never_asked_for(site: MockSite, tmp_path: Path) -> None:
    """Nor is the folder above it; folders and files in it are."""
    sorts = "".join(f'<a href="?C={key};O=D">{key}</a>' for key in "NMSD")
    title = "<title>Index of /pub/rain</title>"
    page(site, "/start", '<a href="/pub/rain/">data</a>')
    page(
        site,
        "/pub/rain/",
        f'{sorts}<a href="/pub/">Parent Directory</a><a href="old/">old/</a><a href="a.csv">a.csv</a>',
        title,
    )
    page(site, "/pub/rain/old/", f'{sorts}<a href="../">../</a><a href="b.csv">b.csv</a>', title)
    tables(site, "/pub/rain/a.csv", "/pub/rain/old/b.csv")
    names, _ = found(site, tmp_path)
    assert names == ["/pub/rain/a.csv", "/pub/rain/old/b.csv"]
    assert sorted(site.paths) == sorted(["/start", "/pub/rain/", "/pub/rain/old/", *names])


def test_files_of_a_sitemap_come_before_its_pages(site: MockSite, tmp_path: Path) -> None:
    """It is read for files, and again for pages when nothing else is left."""
    page(site, "/start", '<a href="/other">other</a>')
    page(site, "/other", "nothing here")
    tables(site, "/a.csv")
    say(site, "/robots.txt", "text/plain", "User-agent: *\nSitemap: /s.xml\n")
    pages = [f"/about/{n}" for n in range(11)]
    for path in pages:
        page(site, path, "nothing either")
    say(site, "/b.dat", "application/octet-stream", b"\1\2")
    say(site, "/s.xml", "text/xml", urlset(site, *pages, "/a.csv", "/b.dat"))
    names, result = found(site, tmp_path)
    assert names == ["/a.csv", "/b.dat"]
    assert sorted(site.paths[:5]) == ["/a.csv", "/b.dat", "/other", "/s.xml", "/start"]
    assert site.paths[5] == "/s.xml"
    assert sorted(site.paths[6:]) == sorted(pages)
    assert {"(sitemap)/url", "(sitemap)/file", "(sitemap)/other", "(sitemap)/rest"} <= set(result.policy.paths)


def test_pages_of_a_sitemap_wait_for_a_hundred_pages(site: MockSite, tmp_path: Path) -> None:
    """Then the crawl knows what links of the site say, and the sitemap is read again, once, while links are left."""
    links = "".join(f'<p><a href="/n/{n}">{n}</a></p>' for n in range(140))
    page(site, "/start", links)
    for n in range(140):
        page(site, f"/n/{n}", "nothing here")
    hidden = [f"/hidden/{n}" for n in range(11)]
    for path in hidden:
        page(site, path, '<a href="/a.csv">a</a>')
    tables(site, "/a.csv")
    say(site, "/robots.txt", "text/plain", "User-agent: *\nSitemap: /s.xml\n")
    say(site, "/s.xml", "text/xml", urlset(site, *hidden))
    names, _ = found(site, tmp_path, {"CLOSESPIDER_ITEMCOUNT": 1})
    assert names == ["/a.csv"]
    again = len(site.paths) - 1 - site.paths[::-1].index("/s.xml")
    assert 100 <= again < len(site.paths) < 140
    site.log.clear()
    names, _ = found(site, tmp_path / "whole")
    assert names == ["/a.csv"]
    assert site.paths.count("/s.xml") == 2
    assert set(hidden) < set(site.paths)


def test_files_on_other_hosts_are_counted_and_never_asked_for(site: MockSite, tmp_path: Path) -> None:
    """Each once; the last line and the page say how many, and on which hosts."""
    page(site, "/start", '<a href="/data.json">all</a>')
    tables(site, "/a.csv")
    with MockSite("127.0.0.2") as other:
        away = [other.url(f"/{n}.csv") for n in range(3)]
        say(site, "/data.json", "application/json", dcat([site.url("/a.csv"), *away, *away]))
        names, result = found(site, tmp_path)
        assert names == ["/a.csv"]
        assert not other.log
        assert result.stats["focus/declared/files"] == 4
        assert result.stats["focus/declared/elsewhere"] == 3
        host = other.url("").partition("//")[2]
        hint = f"3 files that the site lists are on other hosts ({host}): add URLs of these hosts, or widen the scope"
        assert hint in result.stats[SENTENCE]
        assert "3 of them on hosts that are not crawled" in (tmp_path / PAGE).read_text()


def test_no_sitemaps_means_nothing_that_is_listed_for_programs(site: MockSite, tmp_path: Path) -> None:
    """Neither a catalogue at its usual address nor the files of one that is linked, nor those of JSON-LD."""
    page(site, "/start", '<a href="/data.json">all</a>', CKAN + json_ld("/get?id=1"))
    say(site, "/data.json", "application/json", dcat([site.url("/get?id=2")]))
    names, _ = found(site, tmp_path, sitemaps="no")
    assert names == []
    assert site.paths == ["/start", "/data.json"]


def test_a_site_without_a_sign_is_not_asked(site: MockSite, tmp_path: Path) -> None:
    """And one with all signs, on each page, is asked for two catalogues."""
    page(site, "/start", '<a href="/b">b</a> /api/3 data.json')
    page(site, "/b", "DataCatalog ckan")
    found(site, tmp_path / "1")
    assert site.paths == ["/start", "/b"]
    site.log.clear()
    catalog = '<script type="application/ld+json">{"@type": "DataCatalog"}</script>'
    page(site, "/start", '<a href="/b">b</a>', CKAN + catalog)
    page(site, "/b", '<a href="/x/api/3/action/site_read">api</a>', catalog)
    found(site, tmp_path / "2")
    assert sorted(site.paths) == sorted(["/start", "/b", "/data.json", f"{SEARCH}0", "/x/api/3/action/site_read"])


def test_robots_txt_of_ckan_forbids_its_api(site: MockSite, tmp_path: Path) -> None:
    """Then the other usual address is tried, and neither its API nor anything else that is forbidden."""
    page(site, "/start", "nothing here", CKAN)
    tables(site, "/a.csv")
    say(site, "/robots.txt", "text/plain", "User-agent: *\nDisallow: /api/\n")
    say(site, "/data.json", "application/json", dcat([site.url("/a.csv")]))
    names, _ = found(site, tmp_path)
    assert names == ["/a.csv"]
    assert site.paths == ["/start", "/data.json", "/a.csv"]


def test_who_asks_for_json_gets_catalogues_too(site: MockSite, tmp_path: Path) -> None:
    """As files, and they lead on."""
    page(site, "/start", "nothing here", CKAN)
    say(site, f"{SEARCH}0", "application/json", ckan([site.url("/a.json")], count=1))
    say(site, "/a.json", "application/json", "{}")
    names, _ = found(site, tmp_path, types="json")
    assert names == ["/a.json", f"{SEARCH}0"]


def test_records_of_a_data_store_are_data(site: MockSite, tmp_path: Path) -> None:
    """They have the form of an answer of CKAN, but list no files."""
    page(site, "/start", '<a href="/api/3/action/datastore_search?id=1">rows</a>')
    body = json.dumps({"help": HELP.replace("package", "datastore"), "result": {"records": []}})
    say(site, "/api/3/action/datastore_search?id=1", "application/json", body)
    names, _ = found(site, tmp_path, sitemaps="no")
    assert names == ["/api/3/action/datastore_search?id=1"]


ODD: list[Any] = [
    None, 7, [], {}, "", "http://[", "ftp://a.test/x.csv", "javascript:alert(1)", "//", "Marketing Summaries",
    "http://Marketing Summaries", "http://me:pw@[::1", ["http://[", 1], {"@id": 7}, "x" * 9000, "\ud800", "a\x00b",
]  # fmt: skip


def test_odd_catalogues_are_read_as_far_as_they_go(site: MockSite, tmp_path: Path) -> None:
    """Values of the wrong type, addresses that are none, and data sets that are none, beside a good one."""
    page(site, "/start", '<a href="/data.json">1</a><a href="/cut.json">2</a>', CKAN)
    tables(site, "/a.csv", "/b.csv", "/c.csv")
    odd = [{key: value} for key in ("distribution", "resources", "landingPage", "title") for value in ODD]
    odd += [{"title": value, "distribution": [{"downloadURL": site.url("/start"), "title": value}]} for value in ODD]
    datasets = [*odd, {"distribution": {"dcat:downloadURL": {"@id": site.url("/a.csv")}, "dct:title": {"en": "A"}}}]
    say(site, "/data.json", "application/json", json.dumps({"@type": "dcat:Catalog", "dataset": datasets, "next": 7}))
    cut = dcat([*ODD, site.url("/b.csv")])
    say(site, "/cut.json", "application/json", f"{cut[:-9]}, {{{{")
    say(site, f"{SEARCH}0", "application/json", ckan([*ODD, site.url("/c.csv")], count="many"))
    names, _ = found(site, tmp_path)
    assert names == ["/a.csv", "/b.csv", "/c.csv"]
    assert not [path for path in site.paths if "start=1" in path or "page=" in path]


@pytest.mark.parametrize("way", ["same", "circle", "empty", "endless"])
def test_catalogues_without_end_are_left(site: MockSite, tmp_path: Path, way: str) -> None:
    """The same page again and again, one that leads back, pages without data sets, and a new next one on each."""
    page(site, "/start", '<a href="/data.json">all</a>')
    tables(site, "/a.csv")

    def answer(number: int) -> str:
        following = {"circle": 1 - number, "endless": number + 1, "empty": number + 1}.get(way, 1)
        urls = [] if way == "empty" else [site.url("/a.csv")] * 100
        return dcat(urls, **({} if way == "same" else {"next": f"/data.json?page={following}"}))

    for number in range(60):
        say(site, "/data.json" if not number else f"/data.json?page={number}", "application/json", answer(number))
    names, _ = found(site, tmp_path, budget="40")
    assert names == ([] if way == "empty" else ["/a.csv"])
    asked = [path for path in site.paths if path.startswith("/data.json")]
    assert len(asked) == {"same": 2, "circle": 3, "empty": 1}.get(way, len(asked))
    assert len(asked) == len(set(asked))


def test_a_catalogue_is_read_at_any_size(site: MockSite, tmp_path: Path) -> None:
    """Ten megabytes, in which the data set with a file comes last."""
    page(site, "/start", '<a href="/data.json">all</a>')
    tables(site, "/a.csv")
    filler = [{"title": "x" * 900, "landingPage": site.url("/start")}] * 9000
    datasets = [*filler, {"distribution": [{"downloadURL": site.url("/a.csv")}]}]
    say(site, "/data.json", "application/json", json.dumps({"@type": "dcat:Catalog", "dataset": datasets}))
    names, _ = found(site, tmp_path)
    assert names == ["/a.csv"]


class Portal:
    """A portal of two steps: lists, data sets, pages of files, and files whose addresses do not show their type."""

    n = 12

    def __init__(self, site: MockSite, source: str) -> None:
        heads = {"CKAN": CKAN, "DCAT": '<link rel="alternate" type="application/json" href="/data.json">'}
        sets = "".join(f'<li><a href="/dataset/{n}">Data {n}</a></li>' for n in range(self.n))
        others = "".join(f'<p><a href="/topic/{n}">Topic {n}</a></p>' for n in range(self.n))
        paths = [f"/download?id={n}" for n in range(self.n)]
        tables(site, *paths)
        page(site, "/start", f"<ul>{sets}</ul>{others}", heads.get(source, ""))
        for n, path in enumerate(paths):
            page(site, f"/topic/{n}", "<p>Words.</p>")
            described = json_ld(path) if source == "JSON-LD" else ""
            page(site, f"/dataset/{n}", f'<p><a href="/dataset/{n}/file">File</a></p>', described)
            page(site, f"/dataset/{n}/file", f'<p><a class="get" href="{path}">Get it</a></p>')
        say(site, f"{SEARCH}0", "application/json", ckan(map(site.url, paths), count=self.n))
        say(site, "/data.json", "application/json", dcat(map(site.url, paths)))


@pytest.mark.parametrize("source", SOURCES)
def test_a_source_saves_requests(site: MockSite, tmp_path: Path, source: str) -> None:
    """The server counts them, until all files are found."""
    Portal(site, source)
    needed = []
    for sitemaps in ("no", "yes"):
        site.log.clear()
        names, _ = found(site, tmp_path / sitemaps, {"CLOSESPIDER_ITEMCOUNT": Portal.n}, sitemaps=sitemaps)
        assert len(names) == Portal.n
        paths = [path for path in site.paths if re.match("/download", path)]
        needed.append(site.paths.index(paths[-1]))
    without, with_it = needed
    assert with_it < 0.8 * without
