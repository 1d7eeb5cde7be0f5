"""What is a list of links for machines, and what is data, by the first bytes."""

from __future__ import annotations

import gzip
import json

import pytest

from scrapy_focus.web.listings import beginning, listed_in, listing_of, lists_urls

LISTINGS = {
    b'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">': "sitemap",
    b"\xef\xbb\xbf \n<sitemapindex>": "sitemap",
    b"\n \xef\xbb\xbf<urlset>": "sitemap",
    '<?xml version="1.0" encoding="UTF-16"?><urlset>'.encode("utf-16"): "sitemap",
    b'\xef\xbb\xbf{"version": "https://jsonfeed.org/version/1.1", "items": []}': "feed",
    b'<?xml-stylesheet type="text/xsl" href="a.xsl"?><!-- <table> --><sm:urlset xmlns:sm="x">': "sitemap",
    b'<!DOCTYPE rss PUBLIC "-//Netscape//DTD RSS 0.91//EN" "x.dtd"><rss version="0.91">': "feed",
    b'<feed xmlns="http://www.w3.org/2005/Atom">': "feed",
    b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/">': "feed",
    b'{"version": "https://jsonfeed.org/version/1.1", "items": []}': "feed",
    b'{"@context": "x", "@type": "dcat:Catalog", "dataset": []}': "catalogue",
    b'{"conformsTo":"https://project-open-data.cio.gov/v1.1/schema","dataset":[]}': "catalogue",
    b'<OpenSearchDescription xmlns="http://a9.com/-/spec/opensearch/1.1/">': "description",
}
DATA = [
    b'{"type": "FeatureCollection", "features": []}',
    b'[{"year": 2024, "value": 7}]',
    b'<?xml version="1.0"?><message:GenericData xmlns:message="http://www.SDMX.org/resources/SDMXML/schemas/v2_0">',
    b"<table><row/></table>",
    b'<kml xmlns="http://www.opengis.net/kml/2.2">',
    b'<rdf:RDF xmlns:dcterms="http://purl.org/dc/terms/">',
    b'<feed xmlns="http://www.w3.org/2005/Atom" xmlns:m="http://docs.oasis-open.org/odata/ns/metadata">',
    b"year,value\n2024,<rss>\n",
    b"<!-- never closed <rss>",
    b"<",
    b"",
    b"\x1f\x8bnot gzip",
    b"%PDF-1.4",
]


@pytest.mark.parametrize("body", LISTINGS)
def test_listings_are_told_by_their_root_or_by_what_they_conform_to(body: bytes) -> None:
    """Also behind comments, byte order marks and document types, and inside of gzip."""
    assert listing_of(beginning(body)) == LISTINGS[body]
    assert listing_of(beginning(gzip.compress(body))) == LISTINGS[body]


@pytest.mark.parametrize("body", DATA)
def test_data_is_no_listing(body: bytes) -> None:
    """GeoJSON, statistics in XML, what a data service sends as Atom, and what is broken."""
    assert listing_of(beginning(body)) == ""


URL_LISTS = {
    b"http://a.test/1": True,
    b"\xef\xbb\xbfhttp://a.test/1\r\n\r\n  HTTPS://a.test/2\r": True,
    b"http://a.test/" + b"/".join(b"\nhttps://a.test/%d" % n for n in range(900)): True,
    b"": False,
    b"\n\n": False,
    b"/1\n/2": False,
    b"http://a.test/1 first\nhttp://a.test/2": False,
    b"url\nhttp://a.test/1": False,
    b"http://a.test/1\nends here": False,
}


@pytest.mark.parametrize("body", URL_LISTS)
def test_a_text_sitemap_has_a_url_on_each_line(body: bytes) -> None:
    """And nothing else, whatever ends its lines; the last one that was read may be cut."""
    assert lists_urls(beginning(body)) is URL_LISTS[body]
    assert listing_of(beginning(body)) == ""  # it may be data as well


def test_a_bomb_is_inflated_as_far_as_it_is_read() -> None:
    """Four kilobytes of a gigabyte's worth."""
    assert len(beginning(gzip.compress(bytes(50_000_000)))) == 4096


def test_a_catalogue_has_files_and_pages() -> None:
    """In the order of the file; non-text entries are skipped."""
    dataset = {"landingPage": "http://a.test/d/1", "distribution": [{"downloadURL": "http://a.test/a\\b.csv"}]}
    text = json.dumps({"dataset": [dataset, {"accessURL": None}]}).replace("/", "\\/")
    assert list(listed_in(text.encode())) == ["http://a.test/d/1", "http://a.test/a\\b.csv"]
