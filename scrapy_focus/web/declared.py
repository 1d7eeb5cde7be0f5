"""Reads which files and catalogues a page declares for programs: in JSON-LD, in its head, and in its headers.

Most pages declare nothing. So the text of a page is searched for a few words before anything is parsed.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from scrapy_focus.web.catalogues import SEARCH, Declared, declared_mime, described, files_of
from scrapy_focus.web.schemaorg import plain_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from lxml.etree import _Element

_SCRIPTS = 20  # of a page that are read
_LARGEST = 1 << 18  # characters of a script
_DEEPEST = 6  # nested objects
_MOST = 1000  # files of a page
_READ = 16_384  # characters of a page that identify its software
_LONGEST = 4096  # characters of a URL
_DATASETS = frozenset({"Dataset", "DataFeed", "DataDownload"})
_WITHIN = ("@graph", "mainEntity", "dataset", "hasPart", "itemListElement", "item")  # keys that lead to data sets
_LINK = re.compile(r"<\s{0,9}([^<>]{1,2000})>((?:[^,\"<]|\"[^\"]{0,500}\"){0,2000})")
_PARAMETER = re.compile(r";\s{0,9}(\w{1,20})\*?\s{0,9}=\s{0,9}(?:\"([^\"]*)\"|([^\s;,\"]+))")
_GENERATOR = re.compile(r"<meta\s[^>]{0,200}content\s{0,9}=\s{0,9}[\"']ckan\b", re.IGNORECASE)
_ROOT = re.compile(r"data-site-root\s{0,9}=\s{0,9}[\"']([^\"'<>]{1,2000})[\"']")
_ACTIONS = re.compile(r"[\"']([^\"'<>\s]{0,1000})/api/3(?:/action)?(?=[/\"'?#])")
_CATALOGUE_TYPES = frozenset({"application/json", "application/ld+json"})


def files_in_json_ld(root: _Element) -> list[Declared]:
    """Return the files of the data sets that a page describes in JSON-LD of schema.org, and their pages.

    Examples
    --------
    >>> from scrapy_focus.web.html import parsed
    >>> script = '{"@type": "Dataset", "distribution": {"contentUrl": "/r?id=1", "encodingFormat": "CSV"}}'
    >>> files_in_json_ld(parsed(f'<script type="application/ld+json">{script}</script>'))
    [Declared(url='/r?id=1', text='csv', mime='text/csv', is_page=False)]
    """
    scripts = [each for each in root.iter("script") if "ld+json" in (each.get("type") or "").lower()]
    found: list[Declared] = []
    for script in scripts[:_SCRIPTS]:
        text = script.text or ""
        if len(text) > _LARGEST:
            continue
        try:
            value = json.loads(text, strict=False)
        except (ValueError, RecursionError):
            continue
        for dataset in _datasets(value, _DEEPEST):
            found += _files_of(dataset)
            if len(found) >= _MOST:
                return found[:_MOST]
    return found


def mentions_datasets(text: str) -> bool:
    """Whether the text of a page may have data sets in JSON-LD."""
    return "ld+json" in text and any(name in text for name in ("contentUrl", "distribution", "DataCatalog"))


def linked_files(headers: Iterable[str]) -> list[Declared]:
    """Return the files that ``Link`` headers name as parts of a page (Signposting).

    Examples
    --------
    >>> linked_files(['<http://a.test/1>; rel="item"; type="text/csv", </next>; rel=next'])
    [Declared(url='http://a.test/1', text='csv', mime='text/csv', is_page=False)]
    """
    found = []
    for url, parameters in _links(headers):
        if "item" in parameters.get("rel", "").lower().split():
            mime = declared_mime([parameters.get("type", "")])
            found.append(Declared(url, described(parameters.get("title", ""), mime), mime))
    return found[:_MOST]


def next_in(headers: Iterable[str]) -> str:
    """Return the URL of the next page that ``Link`` headers name, ``""`` if there is none."""
    rels = ((url, parameters.get("rel", "").lower().split()) for url, parameters in _links(headers))
    return next((url for url, rel in rels if "next" in rel), "")


def catalogues_of(text: str, url: str, headers: Mapping[str, str]) -> list[str]:
    """Return where the software of a page has its catalogue: two URLs at most, none unless it shows its name.

    CKAN is recognized by ``generator`` or by links to its API; Socrata by its headers, in lower case; others describe
    the site as a ``DataCatalog`` in JSON-LD.

    Examples
    --------
    >>> catalogues_of('<meta name="generator" content="ckan 2.10.1">', "http://a.test/dataset", {})
    ['http://a.test/api/3/action/package_search?rows=200&start=0']
    >>> catalogues_of('<a href="/open/api/3/action/site_read">API</a>', "http://a.test/open/dataset", {})
    ['http://a.test/open/api/3/action/package_search?rows=200&start=0']
    >>> catalogues_of("<p>/api/3 is an API</p>", "http://a.test/", {})
    []
    """
    found = []
    if "/api/3" in text and (named := _ACTIONS.search(text)):
        found.append(urljoin(url, f"{named[1]}/api/3/action/package_search?{SEARCH}"))
    elif ("ckan" in (head := text[:_READ]) or "CKAN" in head) and _GENERATOR.search(head):
        root = _ROOT.search(head)
        base = f"{root[1].rstrip('/')}/" if root else "/"
        found.append(urljoin(url, f"{base}api/3/action/package_search?{SEARCH}"))
    is_catalogue = "ld+json" in text and re.search(r'"(?:https?://schema\.org/)?DataCatalog"', text)
    if is_catalogue or any(name.startswith("x-socrata-") for name in headers):
        found.append(urljoin(url, "/data.json"))
    return found


def catalogues_named_in(root: _Element) -> list[str]:
    """Return the catalogues that the head of a page names as alternates, as written: five at most.

    Examples
    --------
    >>> from scrapy_focus.web.html import parsed
    >>> catalogues_named_in(parsed('<link rel="alternate" type="application/json" href="/data.json">'))
    ['/data.json']
    """
    found = []
    for link in root.iter("link"):
        href, mime = (link.get("href") or "").strip(), (link.get("type") or "").partition(";")[0].strip().lower()
        is_alternate = "alternate" in (link.get("rel") or "").lower().split()
        if is_alternate and mime in _CATALOGUE_TYPES and re.search(r"/(?:data|catalog|dcat)[^/]{0,50}$", href):
            found.append(href[:_LONGEST])
    return found[:5]


def _datasets(value: Any, depth: int) -> Iterator[Mapping[str, Any]]:
    """Yield the data sets in a value of JSON-LD."""
    if isinstance(value, list):
        for each in value[:_MOST]:
            yield from _datasets(each, depth)
    if not isinstance(value, dict) or depth <= 0:
        return
    if _types_of(value) & _DATASETS:
        yield value
    for key in _WITHIN:
        if key in value:
            yield from _datasets(value[key], depth - 1)


def _types_of(value: Mapping[str, Any]) -> set[str]:
    given = value.get("@type")
    return {plain_name(each) for each in (given if isinstance(given, list) else [given]) if isinstance(each, str)}


def _files_of(dataset: Mapping[str, Any]) -> list[Declared]:
    """Return the files of a data set of schema.org, whose ``url`` is its page."""
    if "DataDownload" in _types_of(dataset):
        return files_of({"distribution": dataset})
    return files_of({**dataset, "landingPage": dataset.get("url")})


def _links(headers: Iterable[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the URLs of ``Link`` headers with their parameters."""
    for header in headers:
        for url, parameters in _LINK.findall(header):
            named = {name.lower(): quoted or plain for name, quoted, plain in _PARAMETER.findall(parameters)}
            yield url.strip()[:_LONGEST], named
