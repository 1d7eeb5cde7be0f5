"""The places of links on a page, in real HTML."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import parsel
import pytest
from lxml import html

from scrapy_focus.web.html import Place, PlaceReader, html_text, link_text, locate, page_links, page_text, tag_path

if TYPE_CHECKING:
    from collections.abc import Callable

BASE = "http://h/dir/page"


def located(source: str, *urls: str, base: str = BASE, encoding: str = "utf-8") -> dict:
    """Return the places of URLs on a page."""
    parser = html.HTMLParser(huge_tree=True, encoding="utf-8")
    return locate(html.document_fromstring(source.encode(), parser=parser), base, urls, encoding=encoding)


def test_a_link_has_a_path_an_anchor_and_a_context() -> None:
    """The path names tags, classes behind one dot and the id; texts are those of the link and of its parent."""
    source = """<body class="front  two"><div class="a b" id=" main ">
      <p>See the <a href="data.csv"> price
      index </a> of May.</p></div>"""
    place = located(source, "http://h/dir/data.csv")["http://h/dir/data.csv"]
    assert place.tag_path == "html/body.front two/div.a b#main/p/a"
    assert place.anchor == "price index"
    assert place.context == "See the price index of May."


@pytest.mark.parametrize(
    ("href", "url"),
    [
        ("x", "http://h/dir/x"),
        ("/x", "http://h/x"),
        ("//other/x", "http://other/x"),
        ("?q=1", "http://h/dir/page?q=1"),
        ("", "http://h/dir/page"),
        ("#top", "http://h/dir/page"),
        (" \n x\t", "http://h/dir/x"),
        ("../a/./b", "http://h/a/b"),
        ("a b", "http://h/dir/a%20b"),
        ("a%20b", "http://h/dir/a%20b"),
        ("käse", "http://h/dir/k%C3%A4se"),
        ("?q=ä", "http://h/dir/page?q=%C3%A4"),
        ("a|b", "http://h/dir/a%7Cb"),
        ("x;v=1?a=(1)&amp;b=[2]", "http://h/dir/x;v=1?a=(1)&b=[2]"),
        ("?b=2&amp;a=1", "http://h/dir/page?a=1&b=2"),
        ("?a=1&amp;b=2", "http://h/dir/page?b=2&a=1"),
        ("x#part", "http://h/dir/x"),
        ("x", "http://h/dir/x#part"),
    ],
)
def test_urls_are_found_as_scrapy_makes_them(href: str, url: str) -> None:
    """Relative, blank, quoted, unsafe and canonical forms of a URL lead to the element, under the URL that was asked for."""
    assert set(located(f'<a href="{href}">x</a>', url)) == {url}


def test_urls_are_quoted_in_the_encoding_of_the_page() -> None:
    """Scrapy quotes the query in the encoding of the page."""
    assert located('<a href="?q=ä">x</a>', "http://h/dir/page?q=%E4", encoding="latin-1")


def test_links_are_joined_to_the_base() -> None:
    """The base is given: that of the page, or of its base element."""
    source = '<base href="http://cdn/files/"><a href="x">x</a>'
    assert located(source, "http://cdn/files/x", base="http://cdn/files/")
    assert not located(source, "http://h/dir/x", base="http://cdn/files/")


def test_the_first_place_counts() -> None:
    """A repeated URL has the place of its first occurrence, whatever the fragment."""
    source = '<nav><a href="/x#a">one</a></nav><main><a href="http://h/x">two</a></main>'
    assert located(source, "http://h/x")["http://h/x"].anchor == "one"


def test_only_what_is_asked_for_is_told() -> None:
    """URLs that are not on the page are missing, and so are links that were not requested."""
    source = '<a href="/x">x</a><a href="/y">y</a>'
    assert set(located(source, "http://h/x", "http://h/z")) == {"http://h/x"}
    assert located(source) == {}


@pytest.mark.parametrize(
    ("source", "tag"),
    [
        ('<map><area href="/x" alt="x"></map>', "area"),
        ('<iframe src="/x"></iframe>', "iframe"),
        ('<form action="/x"><input></form>', "form"),
        ('<head><link rel="next" href="/x"></head>', "link"),
        ('<svg><g><a href="/x"><text>x</text></a></g></svg>', "a"),
    ],
)
def test_other_elements_lead_on_too(source: str, tag: str) -> None:
    """Areas, frames, forms, link elements, and links in drawings are places of links."""
    assert located(source, "http://h/x")["http://h/x"].tag_path.split("/")[-1] == tag


@pytest.mark.parametrize(
    ("inside", "anchor"),
    [
        ('<img src="i.png" alt="Prices">', "Prices"),
        ('<span><img alt=""></span>', ""),
        (f'<img alt="{"y" * 300}">', "y" * 200),
        ("<b>Price</b> <i>index</i>", "Price index"),
        ("<!-- no --> Data", "Data"),
        ("", ""),
        ("x" * 500, "x" * 200),
    ],
)
def test_the_anchor_is_what_a_reader_sees(inside: str, anchor: str) -> None:
    """The text of the link; where it has none, that of its image; 200 characters at most; no comments."""
    assert located(f'<a href="/x">{inside}</a>', "http://h/x")["http://h/x"].anchor == anchor


@pytest.mark.parametrize("name", ["title", "aria-label"])
def test_an_icon_is_named_by_its_attributes(name: str) -> None:
    """A link without text is called by its title or label."""
    assert located(f'<a href="/x" {name}="Prices"><i></i></a>', "http://h/x")["http://h/x"].anchor == "Prices"


def test_a_slash_does_not_end_a_name() -> None:
    """A class such as Tailwind's w-1/2 stays within its element."""
    place = located('<div class="w-1/2" id="a/b"><a href="/x">x</a></div>', "http://h/x")["http://h/x"]
    assert place.tag_path == "html/body/div.w-1|2#a|b/a"


def test_a_class_may_be_empty() -> None:
    """Empty classes and ids leave no trace."""
    assert located('<p class="" id=""><a href="/x">x</a>', "http://h/x")["http://h/x"].tag_path == "html/body/p/a"


@pytest.mark.parametrize("href", ["http://[x/", "http://[::1", "http://h:port/", "//[", "javascript:x]["])
def test_one_bad_link_does_not_spoil_a_page(href: str) -> None:
    """Invalid URLs are skipped, before and after a good link."""
    source = f'<a href="{href}">bad</a><a href="/x">good</a><a href="{href}#2">bad</a>'
    assert set(located(source, "http://h/x", "http://h/missing")) == {"http://h/x"}


def test_pages_may_be_nested_deeply() -> None:
    """Thousands of elements that nobody closed do not exhaust the stack."""
    element = root = html.Element("html")
    for _ in range(5000):
        element = html.etree.SubElement(element, "b")
    assert tag_path(element) == "b" + "/b" * 63
    assert tag_path(root) == "html"


def test_paths_are_whole_up_to_64_elements() -> None:
    """Three times as many as the deepest page has that was ever measured; of more, those nearest to the link are kept."""
    for depth in (1, 23, 63, 64, 65, 200):
        root = html.document_fromstring("<p class=x>" + "".join(f"<b id=b{i}>" for i in range(depth)) + "<a href=/x>x")
        path = [f"b#b{i}" for i in range(depth)] + ["a"]
        assert tag_path(root.find(".//a")) == "/".join((["html", "body", "p.x", *path])[-64:])


def test_names_in_paths_and_paths_are_bounded() -> None:
    """A name has 512 characters at most and a path 2,048; a path begins with a whole name."""
    root = html.document_fromstring(f"<div id={'i' * 9999}><p class='{'c ' * 9999}'><a href=/x>x</a></div>")
    assert tag_path(root.find(".//a")).split("/") == ["html", "body", "div#" + "i" * 508, ("p." + "c " * 255), "a"]
    root = html.document_fromstring("".join(f"<div class='{'c' * 100} d{i:02}'>" for i in range(50)) + "<a href=/x>x")
    path = tag_path(root.find(".//a"))
    assert 2048 - 109 < len(path) <= 2048
    assert path.split("/") == [f"div.{'c' * 100} d{i}" for i in range(32, 50)] + ["a"]


@pytest.mark.parametrize("deep", [0, 10, 60, 70, 500])
@pytest.mark.parametrize("length", [1, 300, 3000])
def test_paths_are_the_same_for_one_link_and_for_a_page(deep: int, length: int) -> None:
    """What is remembered of ancestors makes no difference, where a page has few links, many, deep ones and long names."""
    nest = "".join(f"<div class='{'c' * length} n{i}'><a href=/{i}></a>" for i in range(deep))
    rows = "".join(f"<p id=p{i}><b><a href=/r{i}></a></b></p>" for i in range(50))
    source = f"<main>{nest}{rows}{'</div>' * (deep // 2)}{rows}"
    root = html.document_fromstring(source, parser=html.HTMLParser(huge_tree=True))
    reader = PlaceReader()
    links = list(root.iter("a"))
    assert len(links) == deep + 100
    assert [reader.path(link) for link in links] == [tag_path(link) for link in links]


def test_texts_are_bounded() -> None:
    """Of an anchor and a context 200 characters are kept, of the first 50 pieces of text; blanks count once."""
    root = html.document_fromstring(f"<p>{'word ' * 100}<a href=/x>{'<b>a</b> ' * 60}</a>{'later ' * 99}")
    place = PlaceReader().place(root.find(".//a"))
    assert place.context == ("word " * 40)
    assert place.anchor == " ".join("a" * 25)
    assert link_text(root.find(".//a")) == place.anchor
    blanks = html.document_fromstring(f"<p><a href=/x>{' ' * 30_000}x</a>")
    assert PlaceReader().place(blanks.find(".//a")).anchor == ""


@pytest.mark.parametrize("source", ["<!-- only a comment -->", "<html></html>", "plain text", "<a>no href</a>"])
def test_pages_without_links_are_fine(source: str) -> None:
    """Nothing is found where there is nothing."""
    assert located(f"{source}<p></p>", "http://h/x") == {}


def test_xhtml_and_rubbish_in_names() -> None:
    """Names of elements that no standard knows are taken as they are."""
    place = located('<my-card class="c"><o:p><a href="/x">x</a></o:p></my-card>', "http://h/x")["http://h/x"]
    assert place.tag_path.startswith("html/body/my-card.c/")


def test_a_place_that_readers_see_goes_before_a_link_element() -> None:
    """A URL of ``<link rel=next>`` has the place of its anchor; without an anchor, the head."""
    root = html.document_fromstring(
        '<html><head><link rel="next" href="/b"><link rel="up" href="/c"></head><body><p><a href="/b">B</a></p></body></html>'
    )
    places = locate(root, "http://h/a", ["http://h/b", "http://h/c"])
    assert places["http://h/b"] == Place("html/body/p/a", "B", "B")
    assert places["http://h/c"].tag_path == "html/head/link"


def test_page_links() -> None:
    """Anchors, areas and frames in document order, each URL once and without its fragment; no other schemes, no non-URLs."""
    root = html.document_fromstring(
        '<body><a href=" b#x ">1</a><iframe src="/f"></iframe><a href="b#y">2</a><map><area href="//o/c"></map><a>no</a>'
        '<a href="mailto:a@h">3</a><a href="http://[h/">4</a><a href="">5</a><link href="/l"><a href="?q=1">6</a></body>'
    )
    found = [(url, element.tag) for url, element in page_links(root, "http://h/d/a")]
    assert found == [("http://h/d/b", "a"), ("http://h/f", "iframe"), ("http://o/c", "area"), ("http://h/d/a?q=1", "a")]


def test_page_links_of_frames() -> None:
    """The frames of a page are links, too."""
    root = html.document_fromstring('<frameset><frame src="/menu"><frame src="/start"></frameset>')
    assert [url for url, _ in page_links(root, "http://h/")] == ["http://h/menu", "http://h/start"]


def test_a_query_on_a_base_without_a_path() -> None:
    """Scrapy puts a slash before the query; the place is found all the same."""
    root = html.document_fromstring('<body><a href="?a=\u00e9">1</a></body>')
    assert locate(root, "http://h", ["http://h/?a=%C3%A9"])["http://h/?a=%C3%A9"].tag_path == "html/body/a"


# What there is to read


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("<title> The\n title </title><p>One<p>two", "The title One two"),
        ("<p>w<b>or</b>d, <a href=x>li</a>nk<br>next<!-- no -->!</p>tail", "word, link next! tail"),
        ("<ul><li>a<li>b</ul><table><tr><td>1<td>2</table>", "a b 1 2"),
        ("a<script>x</script>b<style>y</style> c<noscript>no</noscript><template>no</template>d", "ab cd"),
        ("<select><option>no</select><textarea>no</textarea>yes<p hidden>no<b>no</b></p>too", "yes too"),
        ("&auml;&nbsp;&#x6f22;", "ä 漢"),
        ("plain", "plain"),
        ("", ""),
        ("\x00", ""),
        ("<!-- a -->1<!-- b --><p><!-- c -->2<?pi?><!-- d -->3<b>4<!-- e -->5</b><!-- f -->6", "1 23456"),
        ("<p>lone \ud83d half", "lone ? half"),
        ("<!-- nothing -->", ""),
        ('<?xml version="1.0" encoding="utf-8"?><html><body>x</body></html>', "x"),
        ("<svg><title>no</title><text>no</text></svg>yes", "yes"),
    ],
)
def test_what_there_is_to_read(source: str, text: str) -> None:
    """Title and visible text: blocks separate words, elements within a line do not, and invisible text is skipped."""
    assert html_text(source) == text


def test_reading_leaves_the_page_as_it_was() -> None:
    """The text of a parsed page can be had while others look at it."""
    root = html.document_fromstring("<title>t</title><script>x</script><p hidden>y</p>z")
    before = html.tostring(root)
    assert page_text(root) == "t z"
    assert html.tostring(root) == before


def grows_in_proportion(work: Callable[[int], Callable[[], object]]) -> bool:
    """Whether what ``work`` makes of four times as much takes about four times as long, and not sixteen times."""

    def seconds(n: int) -> float:
        call = work(n)
        times = []
        for _ in range(5):
            begun = time.thread_time()
            call()
            times.append(time.thread_time() - begun)
        return min(times)

    return seconds(80_000) < 9 * seconds(20_000)


@pytest.mark.few(2)
@pytest.mark.alone
@pytest.mark.parametrize("unit", ["<!---->", "<!-- x -->y", "<?x>", "<p>", "<b>x</b>", "<script>x</script>"])
def test_the_text_of_a_page_takes_time_in_proportion(unit: str) -> None:
    """Four times as many comments, instructions or elements take four times as long, not sixteen times."""

    def work(n: int) -> Callable[[], object]:
        root = parsel.Selector(text=f"<body>{unit * n}", type="html").root
        return lambda: page_text(root)

    assert grows_in_proportion(work)


@pytest.mark.alone
def test_places_of_links_within_links_take_time_in_proportion_to_the_comments() -> None:
    """Comments within many links are not scanned from start to end for each of them."""
    hrefs = [f"{BASE}{n}" for n in range(30)]

    def work(n: int) -> Callable[[], object]:
        source = "".join(f"<div><a href='{href}'>" for href in hrefs) + "<!---->" * (n // 8)
        root = parsel.Selector(text=source, type="html").root
        return lambda: locate(root, BASE, hrefs)

    assert grows_in_proportion(work)
