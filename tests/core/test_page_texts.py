"""The texts of pages: as text and as Markdown, which says what the page says and does nothing."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from lxml import etree
from lxml import html as lxml_html
from markdown_it import MarkdownIt

from main_text_pages import KINDS, LANGUAGES, recipe, tables
from scrapy_focus.web.page_texts import PageTexts, beginning_of, markdown_of, read_page, text_of, with_front_matter
from scrapy_focus.web.text_process import TextProcess

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lxml.etree import _Element

TREES = [
    ("<p>One  <hi rend='#b'>bold </hi>and\n <hi rend='#i'>two</hi>, H<hi rend='#sub'>2</hi>O.</p>",
     "One bold and two, H2O.", "One **bold** and *two*, H2O."),
    ("<head rend='h1'>Top</head><head rend='h3'>Under <hi rend='#b'>it</hi></head><head>No level</head>",
     "Top\n\nUnder it\n\nNo level", "# Top\n\n### Under **it**\n\n## No level"),
    ("<p>See <ref target='https://a.test/x_(y)?z=1'>this <hi rend='#b'>page</hi></ref>, <ref target='mailto:a@b.c'>mail</ref>.</p>",
     "See this page, mail.", "See [this **page**](<https://a.test/x_(y)?z=1>), [mail](mailto:a@b.c)."),
    ("<p>Not <ref target='javascript:alert(1)'>here</ref>, <ref target='/x'>here</ref> or <ref>here</ref>.</p>",
     "Not here, here or here.", "Not here, here or here."),
    ("<list rend='ol'><item>one</item><item/><item>two<list rend='ul'><item>in two</item></list></item></list>",
     "- one\n- two\n  - in two", "1. one\n3. two\n\n   - in two"),
    ("<list><item><p>a</p><p>b</p></item></list>", "- a\n  b", "- a\n\n  b"),
    ("<quote><p>Said.</p><p>Again.</p></quote><p>Not said.</p>",
     "Said.\n\nAgain.\n\nNot said.", "> Said.\n>\n> Again.\n\nNot said."),
    ("<code>if x:\n    y = '```'</code>", "if x:\n    y = '```'", "````\nif x:\n    y = '```'\n````"),
    ("<p>Call <code>f(`x`)</code> or <code>g</code>.</p>", "Call f(`x`) or g.", "Call ``f(`x`)`` or `g`."),
    ("<code>one = 1</code>", "one = 1", "```\none = 1\n```"),
    ("<table><row><cell role='head'>A</cell><cell>B</cell></row><row><cell>1 | 2<lb/>3</cell></row><row/></table>",
     "A\tB\n1 | 2 3", "| A | B |\n|---|---|\n| 1 \\| 2 3 |  |"),
    ("<p>First<lb/>second<lb/><lb/>third</p>", "First\nsecond\nthird", "First\\\nsecond\\\nthird"),
    ("loose <hi rend='#i'>text</hi><p>block</p>more<lb/>", "loose text\n\nblock\n\nmore", "loose *text*\n\nblock\n\nmore"),
    ("<p/><list/><table/><quote/><code> </code><head/>", "", ""),
    ("<p># 1 + 1</p><p>1. - x</p><p>&gt; y</p><p>--- z</p><p>~~~</p>",
     "# 1 + 1\n\n1. - x\n\n> y\n\n--- z\n\n~~~", "\\# 1 + 1\n\n1\\. - x\n\n\\> y\n\n\\--- z\n\n\\~\\~\\~"),
]  # fmt: skip
#: Parts of texts that mean something in Markdown, HTML or in formulas.
ACTIVE = (
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "<!-- x", "[x](javascript:alert(1))", "![x](http://evil.test/a.png)",
    "[x]: javascript:alert(1)", "<javascript:alert(1)>", "&lt;script&gt;", "&#60;b&#62;", "```", "`", "~~~", "# ", "> ", "- ", "1. ",
    "1) ", "+ ", "---", "===", "***", "*", "_a_", "__", "|", "|---|", "\\", "\\<b>", "$\\href{javascript:x}{y}$", "\\(<b>\\)", "!", "[",
    "](", ")", "<http://a.test>", "a_b", "\n", "\n\n", "    ", "word", "\t", "http://a.test/", "<", ">", "[^1]", "]",
)  # fmt: skip
PLACES = (
    "<p>{}</p>", "<p>x {} y</p>", "<head rend='h2'>{}</head>", "<list><item>{}</item><item>{}</item></list>", "<quote>{}</quote>",
    "<list rend='ol'><item><p>{}</p><p>{}</p></item></list>", "<table><row><cell>{}</cell><cell>{}</cell></row></table>",
    "<p><hi rend='#b'>{}</hi>{}</p>", "<p>{}<ref target='http://a.test/'>{}</ref>{}</p>", "<p>{}<lb/>{}</p>", "{}",
    "<p><ref target='{}'>x</ref></p>", "<p>x <code>{}</code>{}</p>", "<code>{}\n{}</code>",
    "<table><row><cell><code>{}</code> {}</cell></row></table>", "<list><item>x<code>{}\n{}</code></item></list>",
    "<quote><code>{}\n{}</code></quote>", "<list><item><table><row><cell>{}</cell></row></table></item></list>",
)  # fmt: skip
ALLOWED = frozenset("p h2 ul ol li blockquote strong em a code pre br table thead tbody tr th td hr div s".split())


def tree(inner: str) -> _Element:
    return etree.fromstring(f"<body>{inner}</body>")


def squeezed(text: str) -> str:
    return "".join(text.split())


@pytest.mark.parametrize(("inner", "text", "markdown"), TREES)
def test_trees_are_written(inner: str, text: str, markdown: str) -> None:
    assert text_of(tree(inner)) == text
    assert markdown_of(tree(inner)) == markdown


def random_trees(n: int) -> Iterator[_Element]:
    """Yield trees whose texts are random parts of active text."""
    draw = random.Random(7)
    for _ in range(n):
        made = tree("".join(place.replace("{}", "{}") for place in draw.choices(PLACES, k=3)).replace("{}", "\ufffd"))
        for element in made.iter():
            for name in ("text", "tail"):
                pieces = (getattr(element, name) or "").split("\ufffd")
                drawn = ["".join(draw.choices(ACTIVE, k=draw.randint(1, 4))) for _ in pieces[1:]]
                setattr(element, name, pieces[0] + "".join(map("".join, zip(drawn, pieces[1:], strict=True))))
            if "\ufffd" in (element.get("target") or ""):
                element.set("target", draw.choice(ACTIVE).strip() or "x")
        yield made


def test_nothing_that_a_page_says_acts_in_its_markdown() -> None:
    """Rendered by a parser that lets raw HTML pass, it has the same text, and only the elements that are written."""
    render = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render
    for made in random_trees(1000):
        source = etree.tostring(made, encoding="unicode")
        markdown = markdown_of(made)
        shown = lxml_html.fromstring(f"<div>{render(markdown)}</div>")
        for element in shown.iter():
            assert element.tag in ALLOWED, (source, markdown)
            assert {*element.attrib} <= {"href", "start"}, (source, markdown)
            assert element.get("href", "http://a.test/").startswith("http://a.test"), (source, markdown)
        assert squeezed(shown.text_content()) == squeezed("".join(made.itertext())), (source, markdown)


def test_front_matter_is_yaml_whatever_a_title_says() -> None:
    """Each fact is one line, a string in quotes."""
    made = with_front_matter("Text.", title='---\nx: "y" # \\', author="", url="http://a.test/é")
    assert made == '---\ntitle: "---\\nx: \\"y\\" # \\\\"\nurl: "http://a.test/é"\n---\n\nText.'


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_pages_of_many_kinds_of_sites(kind: type) -> None:
    """The text has the paragraphs of the page, and no notice, comment or foot; so does its Markdown."""
    for language in LANGUAGES[:2]:
        page = kind(language)
        found = read_page(page.html, "http://a.test/")
        for text in (found.text, found.markdown.replace("\\", "")):
            paragraphs = [each for each in language.paragraphs if each in page.text]
            assert [each in text for each in paragraphs] == [True] * len(paragraphs)
            assert kind in (tables, recipe) or language.rights not in text  # which the library takes for text
            assert language.notice not in text
            assert language.comment not in text
        assert (found.author, found.published) == (page.author, page.date)
        assert found.title == page.title


@pytest.mark.parametrize(
    "html",
    [
        "",
        " ",
        "<html></html>",
        "<!-- x -->",
        "\0",
        "<p>",
        "text",
        "\ud800<p>x</p>",
        "<?xml version='1.0' encoding='x'?><p>",
    ],
)
def test_pages_without_a_text(html: str) -> None:
    assert read_page(html, "http://a.test/").markdown in ("", "x", "? x", "text")


def test_long_pages_are_read_in_part() -> None:
    """The first million characters, and as many tags as a search for a topic reads."""
    assert beginning_of("<p>" * 50_000) == "<p>" * 50_000
    assert beginning_of("<p>" * 60_000) == "<p>" * 50_000
    assert len(beginning_of("x" * 2_000_000)) == 1_000_000


PAGE = (
    "<html><title>T</title><body><article><p>"
    + "A sentence of some words, which is long enough. " * 9
    + "</p></article>"
)


def test_a_page_that_takes_too_long_ends_the_process_and_not_the_next_page() -> None:
    """The library reads cells of a thousand rows and columns each for minutes."""
    slow = PAGE + "<table>" + "<tr><td colspan=1000 rowspan=1000>x</td></tr>" * 5000
    process = TextProcess(seconds=1.0)
    try:
        assert process.read(slow, "http://a.test/slow") is None
        found = process.read(PAGE, "http://a.test/")
        assert found is not None
        assert found.text.startswith("A sentence of some words")
    finally:
        process.close()


def test_a_page_that_fails_leaves_the_process_as_it_is() -> None:
    """The library raises an error for lists in lists in lists."""
    process = TextProcess()
    try:
        assert process.read("<html><body><article>" + "<ul><li>x" * 20_000, "http://a.test/deep") is None
        assert process.read(PAGE + "\ud800\n", "http://a.test/") is not None
        assert process.read("<html></html>", "http://a.test/") == PageTexts()
    finally:
        process.close()
    process.close()
