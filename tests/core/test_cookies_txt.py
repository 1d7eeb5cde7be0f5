"""A file cookies.txt is read as other programs write it, and its cookies go where a browser would send them."""

from __future__ import annotations

import re
from urllib.request import Request

import pytest

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.web.access import Access
from scrapy_focus.web.cookies import BrowserRules, cookies_in, make_cookie, merged, read_cookies

FILE = "\n".join([
    "# Netscape HTTP Cookie File",
    "",
    "www.a.test\tFALSE\t/\tFALSE\t0\thost\t1",
    ".a.test\tTRUE\t/\tFALSE\t9999999999\tdomain\t2",
    "a.test\tTRUE\t/deep\tFALSE\t0\tdeep\t3",
    "#HttpOnly_.a.test\tTRUE\t/\tTRUE\t0\tsecure\t4",
    ".a.test\tTRUE\t/\tFALSE\t1\texpired\t5",
    "127.0.0.1\tFALSE\t/\tFALSE\t0\tlocal\t6",
    "localhost\tFALSE\t/\tFALSE\t0\tnamed\t7",
    "www.a.test\tFALSE\t/\tFALSE\t0\tempty\t",
    "b.test\tFALSE\t/\tFALSE\t0\t\tbare",
])  # fmt: skip


def sent_to(url: str, text: str = FILE) -> str:
    """Return the names of the cookies that a request gets, those of the longest path first."""
    from http.cookiejar import CookieJar

    jar = CookieJar(BrowserRules())
    for cookie in read_cookies(text):
        jar.set_cookie(cookie)
    request = Request(url)
    jar.add_cookie_header(request)
    return " ".join(re.findall(r"([^=; ]+)(?:=[^;]*)?", request.get_header("Cookie", "")))


@pytest.mark.parametrize(
    ("url", "names"),
    [
        ("http://www.a.test/", "domain host empty"),
        ("http://www.a.test:8080/x", "domain host empty"),
        ("https://www.a.test/", "domain secure host empty"),
        ("http://a.test/", "domain"),
        ("http://A.test/deep/er?q", "deep domain"),
        ("http://a.test/deeper", "domain"),
        ("http://sub.www.a.test/", "domain"),
        ("http://nota.test/", ""),
        ("http://a.test.evil.test/", ""),
        ("http://127.0.0.1:81/", "local"),
        ("http://localhost/", "named"),
        ("http://1.127.0.0.1/", ""),
        ("http://b.test/", "bare"),
        ("http://sub.b.test/", ""),
    ],
)
def test_a_cookie_goes_where_a_browser_would_send_it(url: str, names: str) -> None:
    """By host or domain, path and scheme; one that has expired goes nowhere, one without a time lives on."""
    assert sorted(sent_to(url).split()) == sorted(names.split())
    assert ("deep" in names) == sent_to(url).startswith("deep")


def test_files_of_other_programs_are_read() -> None:
    """Without the first line, with a mark and line ends of Windows, and with a tab that an editor removed."""
    assert (
        sent_to("http://a.test/", "\ufeffa.test\tFALSE\t/\tFALSE\t0\tx\t1\r\na.test\tFALSE\t/\tFALSE\t0\ty\r\n")
        == "x y"
    )
    (cookie,) = read_cookies("#HttpOnly_a.test\tFALSE\t/\tFALSE\t0\tx\t1")
    assert cookie.has_nonstandard_attr("HttpOnly")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("a.test FALSE / FALSE 0 name s3cret", "line 2 has 1 column, and not 7 separated by tabs"),
        ("a.test\tFALSE\t/\tFALSE\tsoon\tname\ts3cret", "line 2 has no time in its fifth column"),
        ("\tFALSE\t/\tFALSE\t0\tname\ts3cret", "line 2 has no domain in its first column"),
        ('{"name": "s3cret"}', "line 2 has 1 column"),
    ],
)
def test_a_line_that_is_no_cookie_is_named_by_its_number(line: str, said: str) -> None:
    """What it contains may be secret, and is not repeated."""
    with pytest.raises(ConfigError) as caught:
        read_cookies(f"# HTTP Cookie File\n{line}\n")
    assert said in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_later_headers_replace_cookies_by_name() -> None:
    """Cookies of one name for different paths, in one header, all stay."""
    assert merged(b"a=1; a=2; b=3", b"b=4;c=5") == b"a=1; a=2; b=4; c=5"
    assert merged(b"", b"") == b""


def test_cookies_of_a_header_are_for_its_host_alone() -> None:
    """They are secure unless the host is also reached without encryption."""
    cookies = cookies_in("a=1; b; c=x=y", "h.test", secure=True)
    assert [(each.name, each.value, each.domain, each.secure) for each in cookies] == [
        ("a", "1", "h.test", True), ("b", None, "h.test", True), ("c", "x=y", "h.test", True),
    ]  # fmt: skip
    header = {"Cookie": b"a=1"}
    access = Access(headers={"http:h.test:80": header, "https:h.test:443": header, "https:::1:443": header})
    assert {(each.domain, each.secure) for each in access.header_cookies()} == {("h.test", False), ("::1", True)}


def test_nothing_secret_is_shown() -> None:
    """The text of such an object has no value."""
    access = Access(headers={"http:h.test:80": {"X": b"s3cret"}}, cookies=[make_cookie("a", "s3cret", domain="h.test")])
    assert "s3cret" not in repr(access)
