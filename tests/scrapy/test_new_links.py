"""``NewLinks`` extracts the same as ``LinkExtractor``, without known links; so do our own spiders."""

from __future__ import annotations

import copy
import json
import pickle
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

import pytest
from crawls import BREADTH_FIRST, STOCK, Follower, crawl
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mocksite import tree_paths
from scrapy import Request
from scrapy.http import HtmlResponse, XmlResponse
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule
from scrapy.utils.request import fingerprint
from scrapy.utils.response import get_base_url
from test_known_links import PAGES, SEED, Knower, Mover, OtherFilter, OtherFingerprinter, Scheduled, Visitor, Watchful

from scrapy_focus import NewLinks, State
from scrapy_focus.engine.known import PickId, known_on
from scrapy_focus.engine.marks import PICK
from scrapy_focus.lab.sites.portal.portal import StatisticsPortal
from scrapy_focus.web.html import page_links
from scrapy_focus.web.joining import plain_joiner
from tests.examples import n_examples

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from mocksite import MockSite
    from scrapy.http import Response, TextResponse
    from scrapy.link import Link


class KnownSet:
    """Known URLs without fragments, and those found on a page."""

    def __init__(self, urls: Collection[str], *, tells_keys: bool) -> None:
        self.urls = {*urls}
        self.tells_keys = tells_keys
        self.noted: list[str] = []

    def has(self, url: str) -> bool:
        return url in self.urls

    def passes(self, url: str) -> bool:
        if url in self.urls and url not in self.noted:
            self.noted.append(url)
        return url in self.urls


class Knowing:
    """As much of a scheduler as a link extractor looks at."""

    def __init__(self, known: KnownSet) -> None:
        self.known = known

    def known_on(self, response: Response) -> KnownSet:
        return self.known


def bare(url: str) -> str:
    return url.partition("#")[0]


def of_a_crawl(response: TextResponse, host: Knowing) -> TextResponse:
    """Return the response to a request that the scheduler has handed out."""
    request = Request(response.url)
    request.meta[PICK] = PickId.of(1, host)  # type: ignore[arg-type]
    response.request = request
    return response


NAMES = ["a", "list", "a.html", "x%20y", "ä", "data.csv", "img.png", "~u", "a;b", "..", ".", "", "1-2_3"]
names = st.sampled_from(NAMES)
queries = st.sampled_from(["", "?", "?a=1", "?b=2&a=1", "?q=ä", "?u=http://h.test/x", "?p=/../y", "?;"])
fragments = st.sampled_from(["", "", "#", "#top", "#/route"])
paths = st.lists(names, max_size=3).map("/".join)
hosts = st.sampled_from(
    ["//h.test", "http://h.test", "http://H.test", "https://h.test", "http://other.test:81", "HTTP://h.test", ""]
)
odd = st.sampled_from([
    "mailto:a@h.test", "javascript:go('x')", "http://[bad", " /a ", "/a\n", "\t/list", "tel:1", "//", "http://", "#", "?",
    "a:b", "a b", "/a b", "http:a", "/a|b", "ftp://h.test/a", "//h.test", "http://h.test", "/%7Eu", "/a%2Fb", "data:,x", "/a#b#c",
])  # fmt: skip
hrefs = st.one_of(
    st.builds(lambda host, path, query, fragment: f"{host}/{path}{query}{fragment}", hosts, paths, queries, fragments),
    st.builds(lambda path, query, fragment: f"{path}{query}{fragment}", paths, queries, fragments),
    odd,
)
links = st.tuples(
    hrefs, st.sampled_from(["a", "area", "link", "iframe"]), st.sampled_from(["href", "src", "data-url"]),
    st.sampled_from(["", ' rel="nofollow"', ' rel="next NoFollow"']), st.sampled_from(["more", "One two", "", "next page"]),
    st.sampled_from(["nav", "main", "p"]),
)  # fmt: skip
bases = st.sampled_from([
    "", "", "", '<base href="/list/">', '<base href="http://other.test:81/x/y">', '<base href="../up/">', '<base href="?q">',
    '<base href="//h.test//a/./b/">',
])  # fmt: skip
urls = st.sampled_from([
    "http://h.test", "http://h.test/", "http://h.test/list/a.html?page=2", "http://h.test/a/b/c/", "https://h.test/a;p/x",
    "http://h.test/a//b/", "http://h.test/s?u=/x/y#/z/", "http://h.test/a/../b/", "http://user@h.test:81/x",
])  # fmt: skip
encodings = st.sampled_from(["utf-8", "latin-1", "cp1251"])


def changed(value: str) -> str | None:
    """Return what a link is meant to be, as ``process_value`` of a project does."""
    return None if "img" in value else value.replace("list", "liste")


arguments = st.fixed_dictionaries(
    {},
    optional={
        "allow": st.sampled_from([(), r"/a", [r"list", r"\?"]]),
        "deny": st.sampled_from([(), r"x", [r"a$"]]),
        "allow_domains": st.sampled_from([(), "h.test", ["other.test"]]),
        "deny_domains": st.sampled_from([(), "other.test"]),
        "restrict_xpaths": st.sampled_from([(), "//main", ["//nav", "//p"], "//a[1]"]),
        "restrict_css": st.sampled_from([(), "main", ["nav", "p"]]),
        "restrict_text": st.sampled_from([None, "more", ["One", "page"]]),
        "tags": st.sampled_from([("a", "area"), "a", ["a", "iframe"], "*", (), None]),
        "attrs": st.sampled_from([("href",), "src", ["href", "src"], "*", ()]),
        "deny_tags": st.sampled_from([(), "area", ["a"]]),
        "deny_attrs": st.sampled_from([(), "src", "data-url"]),
        "canonicalize": st.booleans(),
        "unique": st.booleans(),
        "process_value": st.sampled_from([None, changed]),
        "deny_extensions": st.sampled_from([None, (), ["csv"]]),
        "strip": st.booleans(),
    },
)


def page_of(given_links: list[tuple[str, ...]], base: str) -> str:
    shown = "".join(
        f'<{where}><{tag} {attr}="{href.replace("&", "&amp;")}"{rel}><b>{text}</b></{tag}></{where}>'
        for href, tag, attr, rel, text, where in given_links
    )
    return f"<html><head>{base}</head><body>{shown}</body></html>"


@given(st.lists(links, max_size=12), bases, urls, encodings, arguments, st.data())
@settings(max_examples=n_examples(400), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_what_is_new_is_what_scrapy_gives(
    given_links: list[tuple[str, ...]], base: str, url: str, encoding: str, chosen: dict[str, Any], data: st.DataObject
) -> None:
    """With any arguments and any page, in the same order; skipped ones would be dropped, and are reported once."""
    body = page_of(given_links, base).encode(encoding, "xmlcharrefreplace")
    response = HtmlResponse(url, body=body, encoding=encoding)
    try:
        theirs = LinkExtractor(**chosen).extract_links(response)
    except ValueError as error:  # an invalid base
        with pytest.raises(type(error)):
            NewLinks(**chosen).extract_links(of_a_crawl(response, Knowing(KnownSet([], tells_keys=False))))
        return
    everything = LinkExtractor(canonicalize=False, deny_extensions=()).extract_links(response)
    some = [bare(Request(link.url).url) for link in (*theirs, *everything) if "://" in link.url]
    known = {*data.draw(st.lists(st.sampled_from(some), unique=True))} if some else set()
    tells_keys = data.draw(st.booleans())
    host = Knowing(KnownSet(known, tells_keys=tells_keys))
    ours = NewLinks(**chosen).extract_links(of_a_crawl(response, host))

    expected = [link for link in theirs if bare(link.url) not in known]
    prints = {fingerprint(Request(each)) for each in known}
    left_out = [link for link in theirs if link not in ours]
    assert all(fingerprint(Request(link.url)) in prints for link in left_out), "only what the dupefilter drops"
    assert not {bare(link.url) for link in ours} & known
    if not chosen.get("canonicalize"):
        assert [as_tuple(link) for link in ours] == [as_tuple(link) for link in expected]
        if tells_keys:
            assert {*host.known.noted} == {bare(link.url) for link in theirs} & known


def as_tuple(link: Link) -> tuple[Any, ...]:
    return link.url, str(link.text), link.fragment, link.nofollow


def is_requested(url: str) -> bool:
    """Whether a request may have a URL, written just so: what is known is."""
    try:
        return url.isascii() and Request(url).url == url
    except ValueError:
        return False


@given(urls, hrefs)
@settings(max_examples=n_examples(500), deadline=None)
def test_plain_urls_are_what_joining_gives(base: str, href: str) -> None:
    """The appended text is the URL, or nothing; with an empty query, the same page."""
    plain = plain_joiner(base)(href)
    if plain:
        page = HtmlResponse(base, body=f'<a href="{href.replace("&", "&amp;")}">x</a>'.encode(), encoding="utf-8")
        found = LinkExtractor(deny_extensions=(), strip=False).extract_links(page)
        if is_requested(plain):
            assert [fingerprint(Request(link.url)) for link in found] == [fingerprint(Request(plain))]
            assert bare(urljoin(base, href)).rstrip("?;") == plain.rstrip("?;")


@given(st.lists(hrefs, max_size=10), urls, st.data())
@settings(max_examples=n_examples(200), deadline=None)
def test_links_of_our_spiders(given_hrefs: list[str], url: str, data: st.DataObject) -> None:
    """Skipped ones are reported once each, and all others come in the same order."""
    body = "".join(f'<a href="{href.replace("&", "&amp;")}">x</a>' for href in given_hrefs).encode()
    response = HtmlResponse(url, body=body, encoding="utf-8")
    root, base = response.selector.root, get_base_url(response)
    everything = [each for each, _ in page_links(root, base)]
    known = {*data.draw(st.lists(st.sampled_from(everything), unique=True))} if everything else set()
    asked: list[str] = []

    def passes(each: str) -> bool:
        if each in known:
            asked.append(each)
        return each in known

    assert [each for each, _ in page_links(root, base, passes)] == [each for each in everything if each not in known]
    assert sorted(asked) == sorted(known)


def test_recorded_pages() -> None:
    """The same on the pages of a site of 300, page after page, as a crawl knows more and more."""
    portal, root = StatisticsPortal(pages=300, seed=3), "http://portal.test"
    known = KnownSet([], tells_keys=True)
    queue, n_new = [f"{root}/"], 0
    host = Knowing(known)
    ours, theirs = NewLinks(deny=r"/calendar"), LinkExtractor(deny=r"/calendar")
    for _ in range(150):
        url = queue.pop()
        page = portal.fetch(url.removeprefix(root))
        if "html" not in page.mime:
            continue
        response = of_a_crawl(HtmlResponse(url, body=page.body, encoding="utf-8"), host)
        every = theirs.extract_links(response)
        new = ours.extract_links(response)
        assert [as_tuple(link) for link in new] == [
            as_tuple(link) for link in every if bare(link.url) not in known.urls
        ]
        n_new += len(new)
        queue += [link.url for link in new if link.url.startswith(root)]
        known.urls |= {bare(link.url) for link in new}
    assert n_new > 200


def test_pages_with_names_of_xhtml() -> None:
    """Elements of XHTML are links whatever the parser calls them."""
    body = b'<html xmlns="http://www.w3.org/1999/xhtml"><body><a href="/a">1</a><a href="/b">2</a></body></html>'
    host = Knowing(KnownSet(["http://h.test/a"], tells_keys=False))
    response = of_a_crawl(XmlResponse("http://h.test/", body=body, encoding="utf-8"), host)
    for chosen in ({}, {"tags": "*"}):
        assert [link.url for link in NewLinks(**chosen).extract_links(response)] == ["http://h.test/b"]


def test_what_a_filter_raises_is_raised() -> None:
    """An error of ``process_value`` is the project's."""

    def fails(value: str) -> str:
        raise ValueError(value)

    host = Knowing(KnownSet([], tells_keys=False))
    response = of_a_crawl(HtmlResponse("http://h.test/", body=b'<a href="/a">1</a>'), host)
    with pytest.raises(ValueError, match="/a"):
        NewLinks(process_value=fails).extract_links(response)
    with pytest.raises(TypeError, match="alow"):
        NewLinks(alow="x")


def test_an_id_knows_whose_it_is() -> None:
    """As long as the crawl exists; a copy and a pickle of it are plain numbers."""
    host = Knowing(KnownSet([], tells_keys=False))
    pick_id = PickId.of(7, host)  # type: ignore[arg-type]
    assert pick_id == 7
    assert json.dumps({"id": pick_id}) == '{"id": 7}'
    assert pick_id.host is host
    for made in (copy.copy(pick_id), copy.deepcopy({"id": pick_id})["id"], pickle.loads(pickle.dumps(pick_id))):
        assert type(made) is int
        assert made == 7
    del host
    assert pick_id.host is None
    response = HtmlResponse("http://h.test/", request=Request("http://h.test/", meta={PICK: pick_id}))
    assert known_on(response) is None
    assert known_on(HtmlResponse("http://h.test/")) is None


class ByKey(Watchful):
    """Receives the keys of queued links."""

    wants_known = frozenset({State.WAITING})
    known_by_key = True


class Extracting(Scheduled):
    """Follows the links of a link extractor, and yields an item for each page."""

    name = "extracting"
    extractor: Any = LinkExtractor()

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url}
        for link in self.extractor.extract_links(response):
            yield Request(link.url)


class ExtractingNew(Extracting):
    extractor = NewLinks()


class Ruled(CrawlSpider, Follower):
    """A crawl by rules, the first of which has a callback."""

    name = "ruled"
    extractor: Any = LinkExtractor
    rules: Any = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.rules = [
            Rule(self.extractor(allow=r"/page/\d*[05]/"), callback="give", follow=True), Rule(self.extractor())
        ]  # fmt: skip
        super().__init__(*args, **kwargs)

    parse = CrawlSpider.parse_start_url

    def give(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url}


class RuledNew(Ruled):
    extractor = NewLinks


@pytest.mark.few(1)
@pytest.mark.both
@pytest.mark.parametrize("addon", [False, True])
@pytest.mark.parametrize("spiders", [(Extracting, ExtractingNew), (Ruled, RuledNew)])
@pytest.mark.parametrize("policy", [Watchful, Knower, Mover, Visitor, ByKey])
def test_a_crawl_is_the_same(site: MockSite, policy: Any, spiders: Any, addon: bool) -> None:
    """The same pages in the same order, the same items; the policy receives the same links and keys, once each."""
    for page in range(PAGES):
        near = [(page + step) % PAGES for step in (-3, 0, 1, 2, 2, 9)]
        site.pages[f"/page/{page}/x"] = "".join(f'<a href="/page/{other}/x#{page}">{other}</a>' for other in near)
    results, asked = [], []
    for spider in spiders:
        site.log.clear()
        chosen = {"FOCUS_POLICY": policy, "FOCUS_MAX_INFLIGHT": 1}
        results.append(crawl(spider, chosen, addon=addon, seeds=[site.url("/page/0/x")]))
        asked.append(list(site.paths))
    theirs, ours = results
    assert asked[0] == asked[1]
    assert len(asked[1]) == PAGES
    assert ours.items == theirs.items
    assert ours.errors == theirs.errors == {}
    given = [[(url, [*dict.fromkeys(links)]) for url, links in each.policy.given] for each in (ours, theirs)]
    assert given[0] == given[1]
    assert ours.policy.chosen == theirs.policy.chosen
    if policy is Knower:
        once = [(url, [*dict.fromkeys(keys)]) for url, keys in theirs.policy.known]
        assert [(url, [*dict.fromkeys(keys)]) for url, keys in ours.policy.known] == once
    if policy is ByKey:
        assert {link for _, links in ours.policy.given for link in links if link[1] != State.NEW} == {
            ("", State.WAITING)
        }
    assert ours.stats["focus/link/known"] > 0


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "changes",
    [
        {"SCHEDULER": STOCK}, {"DUPEFILTER_CLASS": OtherFilter}, {"REQUEST_FINGERPRINTER_CLASS": OtherFingerprinter},
        {"FOCUS_POLICY": BREADTH_FIRST},
    ],
    ids=["stock", "dupefilter", "fingerprinter", "ours"],
)  # fmt: skip
def test_where_nobody_knows_all_links_come(site: MockSite, changes: dict[str, Any]) -> None:
    """Under Scrapy's scheduler too, each page is fetched once; links are skipped only if URLs decide."""
    result = crawl(ExtractingNew, changes, seeds=[site.url(SEED)])
    assert sorted(site.paths) == sorted(tree_paths(PAGES))
    assert ("focus/link/known" in result.stats) == ("FOCUS_POLICY" in changes)


def test_a_fragment_makes_no_other_page(site: MockSite) -> None:
    """Links that differ in nothing else are known, as the dupefilter takes them for the same."""
    site.pages |= {"/f": '<a href="/g#1">1</a><a href="/g#2">2</a><a href="#x">x</a>', "/g": '<a href="/f#3">3</a>'}
    for addon in (False, True):
        site.log.clear()
        result = crawl(ExtractingNew, {"FOCUS_POLICY": BREADTH_FIRST}, addon=addon, seeds=[site.url("/f")])
        assert site.paths == ["/f", "/g"]
        assert result.spider.scheduled == 3  # the seed, and both links to /g, unknown then
