"""Sitemaps, feeds and catalogues are no finds of the spider ``datasets``; sitemaps and catalogues are links."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, Any

import pytest
from crawls import crawl
from scrapy import Request
from scrapy.http import HtmlResponse, Response

from scrapy_focus.finders.files.spider import DatasetsSpider
from scrapy_focus.finders.kit.spiders.listings import listing_links
from scrapy_focus.finders.news.spider import NewsSpider

if TYPE_CHECKING:
    from pathlib import Path

    from mocksite import MockSite

URLSET = '<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{}</urlset>'
INDEX = '<?xml version="1.0"?><sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{}</sitemapindex>'


def say(site: MockSite, path: str, mime: str, body: str | bytes) -> None:
    """Set the answer of a path."""
    answer = 200, {"Content-Type": mime}, body.encode() if isinstance(body, str) else body
    site.answers[path] = lambda times: answer


def locs(site: MockSite, element: str, *paths: str) -> str:
    return "".join(f"<{element}><loc>{site.url(path)}</loc></{element}>" for path in paths)


def found(site: MockSite, folder: Path, **args: Any) -> tuple[list[str], Any]:
    """Return the paths of all files that a crawl found, and the crawl."""
    settings = {"ROBOTSTXT_OBEY": True, "LOG_LEVEL": "DEBUG"}
    result = crawl(DatasetsSpider, settings, addon=True, root=site.url("/start"), out=str(folder), **args)
    assert not result.errors
    return sorted(item.url.rpartition("/")[2] for item in result.items), result


@pytest.fixture
def listed(site: MockSite) -> MockSite:
    """A site with two data files and five listings on its first page."""
    names = ["map.geojson", "rates.xml", "feed.xml", "atom.xml", "sitemap.xml", "data.json", "search.xml"]
    site.pages["/start"] = (
        "<html><body>" + "".join(f'<a href="/{name}">{name}</a> ' for name in names) + "</body></html>"
    )
    say(site, "/map.geojson", "application/json", '{"type": "FeatureCollection", "features": []}')
    say(site, "/rates.xml", "application/xml", "<rates><rate>1</rate></rates>")
    say(site, "/feed.xml", "application/rss+xml", '<rss version="2.0"/>')
    say(site, "/atom.xml", "application/xml", '<feed xmlns="http://www.w3.org/2005/Atom"/>')
    say(site, "/sitemap.xml", "application/xml", URLSET.format(locs(site, "url", "/hidden")))
    catalogue = '{{"@type": "dcat:Catalog", "dataset": [{{"downloadURL": "{}"}}]}}'
    say(site, "/data.json", "application/json", catalogue.format(site.url("/listed.csv")))
    say(site, "/search.xml", "text/xml", "<OpenSearchDescription/>")
    site.pages["/hidden"] = '<html><body><a href="/behind.csv">a file</a></body></html>'
    for name in ("listed", "behind"):
        say(site, f"/{name}.csv", "text/csv", f"{name}\n1\n")
    return site


def test_listings_are_no_finds_and_lead_on(listed: MockSite, tmp_path: Path) -> None:
    """GeoJSON and other XML are; what a sitemap and a catalogue name is followed."""
    files, _ = found(listed, tmp_path)
    assert files == ["behind.csv", "listed.csv", "map.geojson", "rates.xml"]


def test_who_asks_for_xml_gets_all_of_it(listed: MockSite, tmp_path: Path) -> None:
    """A type that is named counts whatever it is; listings of other types lead on as before."""
    files, _ = found(listed, tmp_path, types="xml")
    assert files == ["atom.xml", "rates.xml", "search.xml", "sitemap.xml"]


def test_sitemaps_of_robots_txt_are_links_in_their_own_place(site: MockSite, tmp_path: Path) -> None:
    """Relative names, gzip, and an index within an index; those of other hosts, and one that names itself, lead nowhere."""
    site.pages["/start"] = "<html><body>nothing here</body></html>"
    site.pages["/hidden"] = '<html><body><a href="/behind.csv">a file</a></body></html>'
    say(site, "/behind.csv", "text/csv", "1\n")
    say(site, "/robots.txt", "text/plain", "User-agent: *\nSitemap: /index.xml\nSitemap: http://elsewhere.test/s.xml\n")
    say(site, "/index.xml", "text/xml", INDEX.format(locs(site, "sitemap", "/index.xml", "/nested.xml")))
    say(site, "/nested.xml", "text/xml", INDEX.format(locs(site, "sitemap", "/pages.xml.gz")))
    packed = gzip.compress(URLSET.format(locs(site, "url", "/hidden", "/picture.png")).encode())
    say(site, "/pages.xml.gz", "application/x-gzip", packed)
    files, result = found(site, tmp_path)
    assert files == ["behind.csv"]
    assert {"(robots.txt)/sitemap", "(sitemap)/sitemap", "(sitemap)/url"} <= set(result.policy.paths)
    assert sorted(site.paths) == sorted(
        ["/start", "/index.xml", "/nested.xml", "/pages.xml.gz", "/hidden", "/behind.csv"]
    )


def oddities(site: MockSite) -> list[str]:
    """Serve listings under types and in forms of all kinds; return what they list."""
    forms: dict[str, tuple[str, str | bytes]] = {
        "named.txt": ("text/plain", "\ufeff{}\r\n\r\n"),
        "html.xml": ("text/html; charset=utf-8", URLSET.format("<url><loc>{}</loc></url>")),
        "plain.xml": ("text/plain", URLSET.format("<url><loc>{}</loc></url>")),
        "rss.xml": ("application/rss+xml", "<rss><channel><item><link>{}</link></item></channel></rss>"),
        "atom.xml": ("text/html", "<feed xmlns='http://www.w3.org/2005/Atom'><entry><link href='{}'/></entry></feed>"),
        "wide.xml": ("application/xml", '<?xml version="1.0" encoding="UTF-16"?><urlset><url><loc>{}</loc></url></urlset>'),
        "list.txt.gz": ("application/gzip", "{}\n"),
        "page.html": ("text/html", '<html><body><a href="{}">a</a></body></html>'),
    }  # fmt: skip
    for name, (mime, form) in forms.items():
        body = str(form).format(site.url(f"/{name}.csv")).encode("utf-16" if name == "wide.xml" else "utf-8")
        say(site, f"/{name}", mime, gzip.compress(body) if name.endswith(".gz") else body)
        say(site, f"/{name}.csv", "text/csv", f"{name}\n1\n")
    say(site, "/index.xml", "text/html", INDEX.format(locs(site, "sitemap", *(f"/{name}" for name in forms))))
    return sorted(f"{name}.csv" for name in forms)


def test_sitemaps_are_recognized_by_their_content(site: MockSite, tmp_path: Path) -> None:
    """Text, RSS, Atom and HTML in an index, XML that is called HTML: whatever is named as a sitemap is read as one."""
    site.pages["/start"] = "<html><body>nothing here</body></html>"
    say(site, "/robots.txt", "text/plain", "User-agent: *\nsitemap: /index.xml\n")
    listed = oddities(site)
    files, _ = found(site, tmp_path)
    assert files == listed


def test_a_list_of_urls_that_nobody_calls_a_sitemap_is_a_file(site: MockSite, tmp_path: Path) -> None:
    """As text it may be data; if its URL says so, it is a sitemap, however it was found."""
    site.pages["/start"] = '<html><body><a href="/urls.txt">1</a><a href="/sitemap.txt">2</a></body></html>'
    say(site, "/urls.txt", "text/plain", site.url("/a.csv"))
    say(site, "/sitemap.txt", "text/plain", site.url("/b.csv"))
    for name in ("a", "b"):
        say(site, f"/{name}.csv", "text/csv", f"{name}\n1\n")
    files, _ = found(site, tmp_path)
    assert files == ["b.csv", "urls.txt"]


def test_other_spiders_read_the_same_sitemaps(site: MockSite) -> None:
    """A watch, and a spider that uses ``listing_links``, follow them as far; a feed in any case."""
    listed = oddities(site)
    watch = NewsSpider(site.url("/"), out="-")
    for name in (file.removesuffix(".csv") for file in listed):
        mime, body = site.answer(f"/{name}")[1:]
        cls = HtmlResponse if "html" in mime["Content-Type"] else Response
        request = Request(site.url(f"/{name}"), meta={"sitemap_depth": 1})
        response = cls(request.url, body=body, headers=mime, request=request)
        for made in ([*listing_links(response)], [] if "page" in name else [*watch.parse(response)]):
            assert [each.url for each in made] == ([] if "page" in name else [site.url(f"/{name}.csv")])


def test_indexes_without_end_are_left(site: MockSite, tmp_path: Path) -> None:
    """Each index names another one: three are read."""
    site.pages["/start"] = "<html><body>nothing here</body></html>"
    say(site, "/robots.txt", "text/plain", "User-agent: *\nSitemap: /0.xml\n")
    for i in range(9):
        say(site, f"/{i}.xml", "text/xml", INDEX.format(locs(site, "sitemap", f"/{i + 1}.xml")))
    found(site, tmp_path)
    assert sorted(site.paths) == ["/0.xml", "/1.xml", "/2.xml", "/start"]


def test_a_broken_sitemap_is_read_as_far_as_it_goes(site: MockSite, tmp_path: Path) -> None:
    """It ends in the middle, has an entity that grows, an entry without a URL, and one with a URL that is none."""
    site.pages["/start"] = "<html><body>nothing here</body></html>"
    say(site, "/a.csv", "text/csv", "1\n")
    say(site, "/robots.txt", "text/plain", "User-agent: *\nSitemap: http://[\nSitemap: /s.xml\n")
    bomb = '<!DOCTYPE urlset [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>'
    say(
        site,
        "/s.xml",
        "text/xml",
        f"{bomb}<urlset><url/><url><loc>&b;</loc></url><url><loc>http://[</loc></url>{locs(site, 'url', '/a.csv')}<url><lo",
    )
    files, _ = found(site, tmp_path)
    assert files == ["a.csv"]


def test_sitemaps_can_be_left_alone(site: MockSite, tmp_path: Path) -> None:
    """With ``sitemaps=no`` those of robots.txt are not asked for."""
    site.pages["/start"] = "<html><body>nothing here</body></html>"
    say(site, "/robots.txt", "text/plain", "User-agent: *\nSitemap: /s.xml\n")
    found(site, tmp_path, sitemaps="no")
    assert site.paths == ["/start"]
