"""Computes the URL that is requested when a link is followed.

It follows the URL standard: the path of a URL is UTF-8, and its query is in the encoding of the page. Most links on
most pages are spelled that way already, so each is checked before it is converted.
"""

from __future__ import annotations

import re
from urllib.parse import quote, urljoin, urlsplit

from w3lib.html import strip_html5_whitespace
from w3lib.url import safe_url_string

# What safe_url_string does not change: a host in lower case, a path, and a non-empty query.
_SAFE = re.compile(
    r"https?://[a-z0-9.-]+(?::[1-9][0-9]{0,4})?/[!$%&'()*+,./0-9:;=@A-Z_a-z~-]*(?:\?[!$%&()*+,./0-9:;=?@A-Z_a-z~-]+)?\Z"
)
_ODD = re.compile(r"[^?#]*\\|(?:https?:)?/{3}|https?:(?!//)", re.IGNORECASE)  # what browsers join differently
_PARTS = re.compile(r"(?:(https?):)?(/*)([^?#]*)", re.IGNORECASE)
_ASCII = "".join(map(chr, range(0x21, 0x7F)))
_PASSWORD = re.compile(r"((?://|^|['\"])(?!mailto:)[^/?#\s:@'\"]*):[^/?#\s]*@")
_REFERENCE = re.compile(rb"&#([0-9]+);")
_UTF = re.compile(r"utf[-_ ]?(?:8|16|32)", re.IGNORECASE)  # all of these mean UTF-8 in a query
_UNDECLARED = "ascii"  # Scrapy's name for the encoding of a pure ASCII page that declares none
_USUAL = "cp1252"  # browsers' encoding of such a page


def link_url(base: str, href: str, encoding: str = "utf-8") -> str:
    """Return the URL that a browser requests for a link, without a fragment; ``""`` for an invalid one.

    Parameters
    ----------
    base
        The base of relative links, an absolute URL.
    href
        The link as written on the page.
    encoding
        The encoding of the page.

    Notes
    -----
    In the query, a character missing in the encoding is a numeric character reference, and UTF-16 counts as UTF-8. A
    user name and password are removed, as the author of a page must not choose them.

    A backslash counts as a slash, and the number of slashes before a host does not matter.

    Examples
    --------
    >>> link_url("http://a.example/list/", "größe?q=größe", "cp1252")
    'http://a.example/list/gr%C3%B6%C3%9Fe?q=gr%F6%DFe'
    >>> link_url("http://a.example/list/", "?q=я", "cp1252"), link_url("http://a.example/", "//me:pw@b.example/#top")
    ('http://a.example/list/?q=%26%231103%3B', 'http://b.example/')
    """
    try:
        return safe_url(joined(base, strip_html5_whitespace(href)).partition("#")[0], encoding)
    except ValueError:
        return ""


def joined(base: str, href: str) -> str:
    """Return the absolute URL of a link without surrounding blanks, joined as in browsers, not yet escaped.

    Raises
    ------
    ValueError
        If it is not a URL.

    Examples
    --------
    >>> joined("http://a.example/list/", "///b.example/x"), joined("http://a.example/", "https:/b.example/")
    ('http://b.example/x', 'https://b.example/')
    """
    if _ODD.match(href):
        address = re.match("[^?#]*", href)[0]  # type: ignore[index]
        scheme, slashes, rest = _PARTS.fullmatch(address.replace("\\", "/")).groups()  # type: ignore[union-attr]
        if len(slashes) > 1 or (scheme and not base.startswith(f"{scheme.lower()}://")):
            slashes = "//"
        href = (f"{scheme}:" if scheme else "") + slashes + rest + href[len(address) :]
    return urljoin(base, href)


def safe_url(url: str, encoding: str = "utf-8") -> str:
    """Return the URL that a browser requests for an absolute URL without a fragment; see :func:`link_url`.

    Raises
    ------
    ValueError
        If it is not a URL.
    """
    if _SAFE.match(url):
        return url
    head, mark, query = url.partition("?")
    if not query.isascii() and not _UTF.match(encoding):
        query = quote(_encoded(query, encoding), safe=_ASCII)
    safe = safe_url_string(head + mark + query)
    if safe.startswith(("http:", "https:")) and not urlsplit(safe).hostname:
        raise ValueError(f"no host in {safe!r}")
    return without_credentials(safe) if "@" in safe else safe


def without_credentials(url: str) -> str:
    """Return a URL without user name and password.

    Raises
    ------
    ValueError
        If it is not a URL.
    """
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl() if "@" in parts.netloc else url


def hide_credentials(text: str) -> str:
    """Return a text with the passwords in its URLs hidden.

    Examples
    --------
    >>> hide_credentials("no host in 'http://me:p@ss@/x' or http://me@b.example/")
    "no host in 'http://me:***@/x' or http://me@b.example/"
    >>> hide_credentials("mailto:me@b.example")
    'mailto:me@b.example'
    """
    return _PASSWORD.sub(r"\1:***@", text)


def spellings(base: str, href: str, encoding: str = "utf-8") -> set[str]:
    """Return the URLs that spiders may request for a link: that of browsers, and different ones of others.

    Scrapy's link extractors take UTF-16 literally, and keep credentials. ``response.urljoin()`` leads to UTF-8 on any
    page.
    """
    found = {link_url(base, href, encoding)}
    if "@" in href or not href.isascii():
        for charset in (encoding, "utf-8"):
            try:
                joined = urljoin(base, strip_html5_whitespace(href)).partition("#")[0]
                found.add(safe_url_string(joined, charset).partition("#")[0])
            except (ValueError, LookupError):
                pass
    return found - {""}


def _encoded(query: str, encoding: str) -> bytes:
    """Return the bytes of a query without ``#``, to be quoted."""
    lacking = "xmlcharrefreplace"
    try:
        encoded = query.encode(_USUAL if encoding.lower() == _UNDECLARED else encoding, lacking)
    except (LookupError, ValueError):  # Python has encodings that are not charsets
        encoded = query.encode(errors=lacking)
    return _REFERENCE.sub(rb"%26%23\1%3B", encoded)
