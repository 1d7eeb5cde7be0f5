"""Which URL is asked for when a link is followed, as the URL standard has it."""

from __future__ import annotations

import pytest
from parsel import Selector
from scrapy import Request
from scrapy.http import HtmlResponse
from scrapy.linkextractors import LinkExtractor

from scrapy_focus.web.html import locate, page_links
from scrapy_focus.web.linkurls import link_url
from scrapy_focus.web.robots import nofollowed

BASE = "http://h.test/dir/page?old"


@pytest.mark.parametrize(
    ("encoding", "href", "url"),
    [
        ("utf-8", "a?q=größe", "dir/a?q=gr%C3%B6%C3%9Fe"),
        ("cp1251", "список?q=список", "dir/%D1%81%D0%BF%D0%B8%D1%81%D0%BE%D0%BA?q=%F1%EF%E8%F1%EE%EA"),
        ("cp932", "?q=統計", "dir/page?q=%93%9D%8Cv"),
        ("gb18030", "?q=統計", "dir/page?q=%BDy%D3%8B"),
        ("cp949", "?q=통계", "dir/page?q=%C5%EB%B0%E8"),
        ("cp1252", "?q=größe#größe", "dir/page?q=gr%F6%DFe"),
        ("utf-16-le", "?q=größe", "dir/page?q=gr%C3%B6%C3%9Fe"),
        ("utf-16-be", "ä?q=größe", "dir/%C3%A4?q=gr%C3%B6%C3%9Fe"),
        ("utf-32-le", "?q=größe", "dir/page?q=gr%C3%B6%C3%9Fe"),
        ("cp1251", "?q=größe&x=я", "dir/page?q=gr%26%23246%3B%26%23223%3Be&x=%FF"),  # which lacks two of them
        ("cp1252", "?q=😀", "dir/page?q=%26%23128512%3B"),
        ("ascii", "?q=größe", "dir/page?q=gr%F6%DFe"),  # of a page that declares no encoding, with &ouml;
        ("zlib", "?q=größe", "dir/page?q=gr%C3%B6%C3%9Fe"),  # codecs of Python that are no charsets
        ("idna", "?q=größe", "dir/page?q=gr%C3%B6%C3%9Fe"),
        ("no-charset", "?q=größe", "dir/page?q=gr%C3%B6%C3%9Fe"),
        ("cp1251", "?q=%D1%81&amp;=список%", "dir/page?q=%D1%81&amp;=%F1%EF%E8%F1%EE%EA%"),  # what is quoted stays
        ("cp1251", "?a b'c\"<я>", "dir/page?a%20b%27c%22%3C%FF%3E"),
        ("cp932", "?q=表", "dir/page?q=%95%5C"),  # whose second byte is a backslash
        ("cp1251", "?q=я?я", "dir/page?q=%FF?%FF"),
        ("cp1251", "?q=я#?я", "dir/page?q=%FF"),
    ],
)
def test_a_query_is_in_the_encoding_of_the_page(encoding: str, href: str, url: str) -> None:
    """The path is UTF-8 on all pages; a character that an encoding lacks is a reference; UTF-16 counts as UTF-8."""
    assert link_url(BASE, href, encoding) == f"http://h.test/{url}"


@pytest.mark.parametrize(
    ("href", "url"),
    [
        (" \n/a\t", "http://h.test/a"), ("/in\nsi\tde", "http://h.test/inside"), ("\\back\\slash?\\", "http://h.test/back/slash?%5C"),
        ("a\\b", "http://h.test/dir/a/b"), ("\\\\o.test\\x", "http://o.test/x"), ("//o.test/x", "http://o.test/x"),
        ("///o.test/x", "http://o.test/x"), ("http:////o.test/x", "http://o.test/x"), ("https:/o.test/x", "https://o.test/x"),
        ("https:o.test/x", "https://o.test/x"), ("http:x", "http://h.test/dir/x"), ("http:/x", "http://h.test/x"),
        ("HTTP://O.TEST:80/X", "http://o.test:80/X"), ("https:", ""), ("http://[x", ""),
        ("#top", "http://h.test/dir/page?old"), ("../../../x", "http://h.test/x"), (":80/x", "http://h.test/dir/:80/x"),
        ("a:b", "a:b"), ("mailto:x@y", "mailto:x@y"), ("http://m\u00fcnchen.test/\u00fc", "http://xn--mnchen-3ya.test/%C3%BC"),
        ("http://me:pw@o.test/x", "http://o.test/x"), ("//me@o.test/x?a@b", "http://o.test/x?a@b"), ("/a@b", "http://h.test/a@b"),
        ("http://[::1]:81/x", "http://[::1]:81/x"), ("http://me:pw@[::1]/", "http://[::1]/"),
    ],
)  # fmt: skip
def test_addresses_are_joined_as_browsers_join_them(href: str, url: str) -> None:
    """A backslash is a slash, a host may have any number of slashes before it, and a link gives no password away."""
    assert link_url(BASE, href) == url


HREFS = [
    "список?q=список", "?q=größe", "?q=統計", "?q=😀#x", "a b?c'd", "http://H.TEST", "http://h.test?q", "//h.test:0080/x", "x?",
    "[1]|x", "/a%zz?%", "http://münchen.test/?ü", "//me:pw@o.test/?я", "/plain?a=b", "\\x", "?q=ä&b;c=(d)[e]{f}",
]  # fmt: skip


@pytest.mark.parametrize("charset", ["utf-8", "windows-1251", "shift_jis", "gb2312", "iso-8859-1", "euc-kr", "utf-16"])
def test_requests_have_the_urls_of_page_links(charset: str) -> None:
    """So notes, known links and requests agree; and so does what a link extractor gives, where that is what browsers do."""
    body = "".join(f'<a href="{href}">x</a>' for href in HREFS).encode(charset, "xmlcharrefreplace")
    page = HtmlResponse(BASE, headers={"Content-Type": f"text/html; charset={charset}"}, body=body)
    urls = [url for url, _ in page_links(page.selector.root, BASE, encoding=page.encoding)]
    assert urls == [Request(url).url for url in urls]
    known = set(urls[::2])
    left = page_links(page.selector.root, BASE, known.__contains__, encoding=page.encoding)
    assert [url for url, _ in left] == urls[1::2]
    assert len(locate(page.selector.root, BASE, urls, encoding=page.encoding)) == len(urls)
    if charset != "utf-16":
        theirs = [
            link.url.partition("#")[0] for link in LinkExtractor(deny_extensions=(), unique=False).extract_links(page)
        ]
        odd = ("me:pw@", "%5Cx", "/x")
        assert {url for url in theirs if not url.endswith(odd) and "@" not in url} <= {*urls}


@pytest.mark.parametrize(
    ("headers", "start", "charset", "query"),
    [
        ({"Content-Type": "text/html; charset=windows-1251"}, "<meta charset=utf-8>", "cp1251", "%FF"),
        ({"Content-Type": "text/html"}, "<meta charset=windows-1251>", "cp1251", "%FF"),
        ({"Content-Type": "text/html; charset=no-such"}, "<meta charset=windows-1251>", "cp1251", "%FF"),
        ({"Content-Type": "text/html; charset=no-such"}, "", "utf-8", "%D1%8F"),
        ({"Content-Type": "text/html; charset=windows-1251"}, "\ufeff", "utf-8", "%D1%8F"),
    ],
)
def test_which_encoding_is_that_of_the_page(headers: dict[str, str], start: str, charset: str, query: str) -> None:
    """A byte order mark goes before the header, and that before the page itself; what is unknown counts for nothing."""
    page = HtmlResponse("http://h.test/", headers=headers, body=f"{start}<a href='?q=я'>x</a>".encode(charset))
    [(url, _)] = page_links(page.selector.root, "http://h.test/", encoding=page.encoding)
    assert url == f"http://h.test/?q={query}"


@pytest.mark.parametrize("encoding", ["cp1251", "utf-16-le", "utf-8"])
def test_nofollow_counts_however_a_link_is_spelled(encoding: str) -> None:
    """Spiders that request URLs of ``urljoin`` or of a link extractor comply, too; a followed link has its place."""
    root = Selector(text='<a rel=nofollow href="?q=я">x</a><a rel=nofollow href="?q=ж">x</a><a href="?q=ж">x</a>').root
    urls = {Request(f"{BASE[:22]}?q=я", encoding=each).url for each in (encoding, "utf-8")}
    assert nofollowed(root, BASE, encoding=encoding) == urls | {link_url(BASE, "?q=я", encoding)}


def test_a_place_is_found_however_its_link_is_spelled() -> None:
    """A spider that requests the query in UTF-8 on a page in another encoding still learns the place of the link."""
    root = Selector(text='<p><a href="?q=я">x</a>').root
    for encoding in ("cp1251", "utf-16-le"):
        for url in {Request(f"{BASE[:22]}?q=я", encoding=each).url for each in (encoding, "utf-8")}:
            assert locate(root, BASE, [url], encoding=encoding)[url].tag_path == "html/body/p/a"
