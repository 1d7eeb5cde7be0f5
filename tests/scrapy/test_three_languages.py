"""Whole crawls for keywords alone on a served web: English, German with its compounds, and Chinese without blanks."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest
from handmadehosts import Handmade, html
from test_topic_spider import Run, crawl

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy_focus.lab.sites.portal.portal import Page


class Language(NamedTuple):
    """The words of sites in a language: pages on honey and bees, and others, each with an anchor and a sentence."""

    keywords: str
    on: list[str]
    off: list[str]
    more: str  # an anchor that says nothing
    filler: str  # words of any page


LANGUAGES = {
    "en": Language(
        "honey,beekeeping",
        [
            "Honey from the heath", "A beekeeping year", "Raw honeycomb", "Honeydew in June", "Learn beekeeping",
            "How honey sets", "Beekeeping in towns", "Honey and cheese", "Selling honey", "Old beekeeping books",
        ],
        [
            "The money market", "A housekeeping year", "Raw steel", "Monday in June", "Learn bookkeeping",
            "How glue sets", "Gatekeeping in towns", "Ham and cheese", "Selling houses", "Old railway books",
        ],
        "more", "the people of this place said that it was good and would come again",
    ),
    "de": Language(
        "honig,biene",
        [
            "Blütenhonig", "Wildbienen im Garten", "Unser Waldhonig", "Honigbiene", "Rapshonig mischen",
            "Sandbienen nisten", "Lindenhonig", "Mauerbiene und Mensch", "Ein Glas Tannenhonig", "Holzbienen",
        ],
        [
            "Vorrat im Keller", "Schienen im Garten", "Unser Wildschwein", "Königin", "Farben mischen",
            "Schwalben nisten", "Honorar", "Maschine und Mensch", "Ein Glas Wasser", "Kabinett",
        ],
        "mehr", "die leute von hier haben gesagt dass es gut war und wollen wieder kommen",
    ),
    "zh": Language(
        "蜜,养蜂",
        [
            "百花蜜的故事", "城市里的养蜂人", "采蜜季节", "怎样养蜂", "野生蜂蜜", "蜜源植物", "养蜂学会", "槐花蜜", "买蜜的人", "春季养蜂",
        ],
        [
            "百花园的故事", "城市里的出租车", "收获季节", "怎样养花", "野生大熊猫", "水源保护", "铁路学会", "槐花开了", "买房的人", "春季运动",
        ],
        "更多", "这里的人都说很好下次还要再来看看天气也不错",
    ),
}  # fmt: skip


def web(code: str) -> tuple[dict[str, Page], set[str]]:
    """Return the pages of three sites in a language, by URL, and those on the topic.

    The first page of the first site links to twenty pages of the second, half of them on the topic, in turn. Each of
    these links to two of the third by anchors that say nothing: to pages on the topic where it is on it.
    """
    says = LANGUAGES[code]
    front, pages, topical = [], {}, set()
    for i in range(20):
        on, k = i % 2 == 1, i // 2
        anchor = (says.on if on else says.off)[k]
        texts = [(says.on if on else says.off)[(k + j) % 10] for j in range(4)]
        text = f" {says.filler}, ".join(texts)
        here, *behind = f"http://two.{code}.test/{i}", *(f"http://three.{code}.test/{i}/{j}" for j in range(2))
        front.append(f"{here} {anchor}")
        pages[here] = html(*(f"{url} {says.more}" for url in behind), text=text, title=anchor, lang=code)
        pages.update((url, html(text=text, title=says.more, lang=code)) for url in behind)
        topical |= {here, *behind} if on else set()
    return {f"http://one.{code}.test/": html(*front, text=says.filler, lang=code), **pages}, topical


def relevant(run: Run) -> set[str]:
    """Return the pages that were judged to be on the topic, but for the first ones, which name all kinds of pages."""
    return {page["url"] for page in run.pages if page["relevance"] >= 0.5 and page["depth"]}


def ahead(run: Run, topical: set[str], start: str) -> float:
    """Return the share of pairs in which the page on the topic came before the other one, by how URLs begin."""
    order = [page["url"] for page in run.pages if page["depth"] and page["url"].startswith(start)]
    pairs = [(a in topical) for i, a in enumerate(order) for b in order[i + 1 :] if (a in topical) != (b in topical)]
    return sum(pairs) / len(pairs)


@pytest.mark.few(1)
@pytest.mark.parametrize("code", LANGUAGES)
def test_keywords_lead_to_the_topic_in_each_language(tmp_path: Path, code: str) -> None:
    """All pages on the topic are recognized, and come first; links without text are judged by their page."""
    pages, topical = web(code)
    with Handmade(pages) as server:
        run = crawl(
            server, tmp_path / "out.jsonl", {"CONCURRENT_REQUESTS": 1}, seeds=f"http://one.{code}.test/",
            keywords=LANGUAGES[code].keywords,
        )  # fmt: skip
    assert run.status == 0, run.log
    assert {page["url"] for page in run.pages} == pages.keys()
    assert relevant(run) == topical
    named = [page for page in run.pages if page["url"].startswith("http://two.")]
    assert {page["url"] for page in named if "keyword in the anchor" in page["why"]} == topical & {
        page["url"] for page in named
    }
    assert {page["language"] for page in run.pages} == {code}
    assert ahead(run, topical, f"http://two.{code}.") == 1, "all that keywords name come before all that they do not"
    assert ahead(run, topical, "http://") >= 0.7


def test_three_languages_in_one_crawl(tmp_path: Path) -> None:
    """With all keywords, and several requests at a time, pages on the topic come before others in each language."""
    webs = {code: web(code) for code in LANGUAGES}
    pages = {url: page for of_language, _ in webs.values() for url, page in of_language.items()}
    with Handmade(pages) as server:
        run = crawl(
            server, tmp_path / "out.jsonl", seeds=",".join(f"http://one.{code}.test/" for code in LANGUAGES),
            keywords=",".join(language.keywords for language in LANGUAGES.values()),
        )  # fmt: skip
    assert run.status == 0, run.log
    assert {page["url"] for page in run.pages} == pages.keys()
    topical = {url for _, of_language in webs.values() for url in of_language}
    assert relevant(run) == topical
    for code in LANGUAGES:
        assert ahead(run, topical, f"http://two.{code}.") >= 0.9, code
        assert ahead(run, topical, f"http://three.{code}.") >= 0.7, code
