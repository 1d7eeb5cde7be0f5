"""Which files and pages catalogues, pages and headers declare."""

from __future__ import annotations

import gzip
import json
import time
from itertools import chain
from typing import Any

import pytest

from scrapy_focus.web.catalogues import Catalogue, Declared, declared_mime, files_of
from scrapy_focus.web.declared import catalogues_named_in, catalogues_of, files_in_json_ld, linked_files, next_in
from scrapy_focus.web.directories import is_directory, leads_on
from scrapy_focus.web.html import parsed

FILE = {"downloadURL": "/r?id=1", "mediaType": "text/csv", "title": "2024"}
DATASET = {"title": "Rain", "distribution": [FILE], "landingPage": "/rain"}
CSV = Declared("/r?id=1", "2024 (csv)", "text/csv")


def urls_of(body: bytes) -> list[str]:
    """Return the URLs in a catalogue."""
    return [file.url for file in chain.from_iterable(Catalogue(body))]


FORMS: dict[str, Any] = {
    "DCAT-US": {"conformsTo": "https://project-open-data.cio.gov/v1.1/schema", "dataset": [DATASET]},
    "one file": {"dataset": [{"distribution": FILE}]},
    "prefixes": {"dcat:dataset": [{"dcat:distribution": [{f"dcat:{k}": {"@id": v} for k, v in FILE.items()}]}]},
    "a graph": {"@graph": [{"@type": "dcat:Dataset"}, {"@type": "dcat:Distribution", **FILE}]},
    "lists": {"dataset": [{"distribution": [{key: [value] for key, value in FILE.items()}]}]},
    "languages": {"dataset": [{"distribution": [{**FILE, "title": {"en": "2024", "de": "x"}}]}]},
    "CKAN": {"result": {"results": [{"resources": [{"url": "/r?id=1", "format": "CSV", "name": "2024"}]}]}},
    "CKAN, one data set": {"result": {"resources": [{"url": "/r?id=1", "mimetype": "text/csv", "name": "2024"}]}},
    "CKAN, a list": {"result": [{"resources": [{"url": "/r?id=1", "format": ".csv", "name": "2024"}]}]},
    "schema.org": {"dataset": [{"distribution": [{"contentUrl": "/r?id=1", "encodingFormat": "CSV", "name": "2024"}]}]},
}


@pytest.mark.parametrize("form", FORMS)
def test_a_file_is_read_in_any_form(form: str) -> None:
    """With its title and its type, also from gzip, and from UTF-16."""
    text = json.dumps(FORMS[form])
    for body in (text.encode(), gzip.compress(text.encode()), text.encode("utf-16"), b"\xef\xbb\xbf" + text.encode()):
        assert list(chain.from_iterable(Catalogue(body))) == [CSV]


def test_types_are_declared_in_many_ways() -> None:
    """As MIME types, as extensions, as URLs of registries, in free text; the first that means something counts."""
    said = ["text/csv; charset=utf-8", "CSV", ".csv", "http://publications.europa.eu/resource/authority/file-type/CSV"]
    assert {declared_mime([each]) for each in said} == {"text/csv"}
    assert declared_mime(["", "Web page", "html"]) == "text/html"
    assert declared_mime(["https://www.iana.org/assignments/media-types/application/pdf", "CSV"]) == "application/pdf"
    assert declared_mime(["ESRI REST", "x" * 5000, "/"]) == ""


def test_pages_stand_for_data_sets_without_files() -> None:
    """An ``accessURL`` is a page in most cases: its declared type is that of what it leads to."""
    assert files_of(DATASET) == [CSV]
    assert files_of({"title": "Rain", "landingPage": "/rain"}) == [Declared("/rain", "Rain", is_page=True)]
    assert files_of({"distribution": [{"accessURL": "/api", "mediaType": "text/csv"}]}) == [Declared("/api", "csv")]


@pytest.mark.parametrize("value", [None, 7, [], {}, "", [[]], [None], {"@id": 7}, True, 1.5, [[{}]]])
@pytest.mark.parametrize("key", ["distribution", "resources", "title", "landingPage", "downloadURL"])
def test_values_of_the_wrong_type_are_ignored(key: str, value: Any) -> None:
    """Whatever they are, the data set that follows is read."""
    odd: dict[str, Any] = {key: value, "distribution": [{key: value}, value]} | {key: value}
    catalogue = Catalogue(json.dumps({"dataset": [odd, DATASET]}).encode())
    assert [*chain.from_iterable(catalogue)] == [CSV]
    assert catalogue.n_read == 2


def test_broken_catalogues_are_read_as_far_as_they_go() -> None:
    """Up to the fault by their structure, and behind it for URLs."""
    whole = json.dumps({"dataset": [DATASET, {"distribution": [{"downloadURL": "/b"}]}]})
    for cut in range(len(whole)):
        assert urls_of(whole[:cut].encode()) in ([], ["/r?id=1"], ["/r?id=1", "/rain"], ["/r?id=1", "/b"])
    assert urls_of(whole.replace('"title": "Rain"', '"title": Rain').encode()) == ["/r?id=1", "/rain", "/b"]
    assert urls_of(b'{"dataset": [' + b"[" * 100_000) == []
    assert urls_of(b'{"x": "\\"dataset\\": [{\\"downloadURL\\": \\"/a\\"}]"}') == []


NEXT: dict[str, tuple[str, str, dict[str, Any]]] = {
    "CKAN": ("/package_search?q=x&rows=2", "q=x&rows=2&start=2", {"count": 9, "results": [{}, {}]}),
    "CKAN, the last page": ("/package_search?rows=2&start=7", "", {"count": 9, "results": [{}, {}]}),
    "CKAN, no count": ("/package_search", "", {"count": "9", "results": [{}, {}]}),
    "CKAN, without end": ("/package_search?start=999999999", "", {"count": 999999999, "results": [{}]}),
    "nothing read": ("/package_search", "", {"count": 9, "results": []}),
    "a name": ("/data.json", "/p2", {"dataset": [{}], "next": "/p2"}),
    "a name before": ("/data.json", "/p2", {"hydra:view": {"hydra:next": "/p2"}, "dataset": [{}]}),
    "a name within": ("/data.json", "", {"dataset": [{"next": "/p2"}]}),
    "a full page": ("/data.json?a=1&page=3", "a=1&page=4", {"dataset": [{}] * 100}),
    "another number": ("/data.json", "", {"dataset": [{}] * 99}),
}


@pytest.mark.parametrize("case", NEXT)
def test_the_next_page_follows_from_what_a_catalogue_says(case: str) -> None:
    """From the number of data sets, from a name, or from the size of the page."""
    path, expected, value = NEXT[case]
    catalogue = Catalogue(json.dumps(value).encode())
    list(catalogue)
    found = catalogue.next_page(f"http://a.test{path}")
    assert found.rpartition("?")[2] == expected


HOSTILE = {
    "small data sets": b'{"dataset":[' + b",".join([b"{}"] * 3_000_000) + b"]}",
    "one without end": b'{"dataset":[{"a":[' + b"1," * 4_000_000,
    "nested": b'{"dataset":[' + b'{"a":[' * 1_500_000,
    "blank": b'{"dataset":[' + b" " * 9_000_000,
    "long texts": b'{"dataset":[{"title":"' + b"x" * 9_000_000 + b'"}]}',
    "quotes": b'"' * 9_000_000,
}


@pytest.mark.parametrize("case", HOSTILE)
def test_large_catalogues_do_not_stall_a_crawl(case: str) -> None:
    """A crawl can pause after each data set with a URL, and stops reading where there are none."""
    begun = time.thread_time()
    catalogue = Catalogue(HOSTILE[case])
    assert [*chain.from_iterable(catalogue)] == []
    catalogue.next_page("http://a.test/data.json")
    assert time.thread_time() - begun < 0.5  # about 0.02 on an idle machine


def page(script: Any) -> Any:
    """Return a page with JSON-LD."""
    text = script if isinstance(script, str) else json.dumps(script)
    return parsed(f'<html><head><script type="application/ld+json">{text}</script></head></html>')


def test_json_ld_is_read_at_any_depth() -> None:
    """In graphs, lists and catalogues, under any spelling of the type; other types are not data sets."""
    dataset = {"@type": ["schema:Dataset"], "distribution": {"contentUrl": "/a.csv"}, "url": "/a"}
    plain = [Declared("/a.csv")]
    assert files_in_json_ld(page(dataset)) == plain
    assert files_in_json_ld(page({"@graph": [{"@type": "WebPage", "mainEntity": dataset}]})) == plain
    assert files_in_json_ld(page([{"@type": "DataCatalog", "dataset": [dataset, {"@type": "Dataset", "url": "/b"}]}])) == [
        *plain, Declared("/b", is_page=True),
    ]  # fmt: skip
    assert files_in_json_ld(page({"@type": "http://schema.org/DataDownload", "contentUrl": "/a.csv"})) == plain
    assert files_in_json_ld(page({"@type": "Article", "distribution": {"contentUrl": "/a.csv"}})) == []
    assert files_in_json_ld(page("{")) == files_in_json_ld(page("[" * 100_000)) == files_in_json_ld(page(7)) == []


def test_headers_name_files_and_next_pages() -> None:
    """With quoted parameters, several links in a header, and several relations of a link."""
    headers = [
        '</a>; rel="describedby item"; type="text/csv"; title="A, b", <b>; rel=item',
        '<c?x=1,2>; rel="next"',
        "<",
        "<>",
    ]
    assert linked_files(headers) == [Declared("/a", "A, b (csv)", "text/csv"), Declared("b")]
    assert next_in(headers) == "c?x=1,2"
    assert next_in(["</c>; rel=prev"]) == ""


def test_catalogues_are_looked_for_where_software_shows_its_name() -> None:
    """Beneath the folder of a CKAN that is not at the root, and two addresses at most."""
    root = '<meta content="ckan 2.9" name="generator"><body data-site-root="https://a.test/open/">'
    search = "/api/3/action/package_search?rows=200&start=0"
    assert catalogues_of(root, "https://a.test/open/dataset/x", {}) == [f"https://a.test/open{search}"]
    everything = '<a href="/x/api/3/action/site_read"><script type="application/ld+json">{"@type": "DataCatalog"}'
    assert catalogues_of(everything, "http://a.test/d/", {"x-socrata-region": ""}) == [
        f"http://a.test/x{search}", "http://a.test/data.json",
    ]  # fmt: skip
    assert catalogues_of("generator ckan /api/3 DataCatalog", "http://a.test/", {"x-powered-by": ""}) == []


def test_catalogues_named_in_a_head_are_alternates_of_json() -> None:
    """And called so: programs for editors name JSON of each page."""
    links = [
        '<link rel="alternate" type="application/json" href="/wp-json/wp/v2/pages/1">',
        '<link rel="stylesheet" type="application/json" href="/data.json">',
        '<link rel="Alternate" type="application/ld+json" href=" catalog.jsonld ">',
        '<link rel="alternate" type="application/json; charset=utf-8" href="/x/data.json">',
    ]
    root = parsed(f"<html><head>{''.join(links)}</head></html>")
    assert root is not None
    assert catalogues_named_in(root) == ["catalog.jsonld", "/x/data.json"] or catalogues_named_in(root) == [
        "/x/data.json"
    ]


def test_directories_of_servers_are_recognized() -> None:
    """By their titles; links that sort them, or lead up, lead nowhere."""
    for title in ("Index of /", "Index of /pub/", "Directory listing for /pub/"):
        assert is_directory(f"<html><title>{title}</title>")
    assert not is_directory("<title>Index of names</title>")
    here = "http://a.test/pub/rain/"
    nowhere = [
        f"{here}?C=M;O=A",
        f"{here}?C=N&O=D",
        f"{here}?sort=name&order=asc",
        here,
        "http://a.test/pub/",
        "http://a.test/",
    ]
    assert not any(leads_on(url, here) for url in nowhere)
    on = [
        f"{here}a.csv",
        f"{here}old/",
        f"{here}?file=a",
        "http://a.test/pub/snow/",
        "http://b.test/pub/",
        "http://a.test/x",
    ]
    assert all(leads_on(url, here) for url in on)
