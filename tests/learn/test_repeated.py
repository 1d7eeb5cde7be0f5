"""Repeated text of a site is removed, and nothing else."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from scrapy_focus.topic.examples import read_examples, read_texts
from scrapy_focus.topic.relevance import LinearRelevance
from scrapy_focus.topic.repeated import Repeated
from scrapy_focus.web.html import html_blocks, html_text, page_blocks

if TYPE_CHECKING:
    from pathlib import Path

MENU = ["Home", "Steel works", "Contact us", "(c) 2024 The Owner"]
PIECES = (
    "<b>", "</b>", "<p>", "</p>", "<!--x-->", "<?p?>", "a", "b ", "\n", "<br>", "<div hidden>", "</div>", "<td>", "<li>",
    "<script>x</script>", "<title>t</title>", "<a href=x>", "</a>", "<textarea>q</textarea>",
)  # fmt: skip


def page(text: str, title: str = "") -> str:
    """HTML of a page of a site with a menu."""
    items = "".join(f"<li><a href=x>{each}</a></li>" for each in MENU[:3])
    return f"<title>{title}</title><ul>{items}</ul><h1>{title}</h1><p>{text}</p><footer>{MENU[3]}</footer>"


def test_blocks() -> None:
    """A paragraph, an item and a cell are blocks; what is within a line parts none, and the title is the first."""
    blocks = html_blocks(
        "<title>A page</title><ul><li>x<li>y</ul><p>one <b>bold</b> word<br>next<table><td>1<td>2</table>z"
    )
    assert blocks == ["A page", "x", "y", "one bold word", "next", "1", "2", "z"]
    assert page_blocks(etree.HTML(page("Some text", "T"))) == ["T", *MENU[:3], "T", "Some text", MENU[3]]
    assert html_blocks("") == []


@given(st.lists(st.sampled_from(PIECES), max_size=14))
def test_blocks_make_the_text(pieces: list[str]) -> None:
    """All blocks of a page are its text, and none is empty."""
    blocks = html_blocks("".join(pieces))
    assert html_text("".join(pieces)) == " ".join(blocks)
    assert all(block == " ".join(block.split()) != "" for block in blocks)


def test_a_menu_is_left_out_from_the_third_page_on() -> None:
    """All text of the first two pages is left; of others what is theirs, whatever the numbers in a footer."""
    repeated = Repeated()
    left = [repeated.strip("h", [*MENU[:3], f"text {'x' * i}", f"(c) {2020 + i} The Owner"]) for i in range(5)]
    assert left[1] == "Home Steel works Contact us text x (c) 2021 The Owner"
    assert left[2:] == ["text xx", "text xxx", "text xxxx"]


def test_hosts_have_menus_of_their_own() -> None:
    """What repeats on one host is left on another."""
    repeated = Repeated()
    for i in range(4):
        repeated.add("a", [*MENU, "x" * i])
    assert repeated.left("a", [*MENU, "new"]) == "new"
    assert repeated.left("b", [*MENU, "new"]) == " ".join([*MENU, "new"])


def test_no_page_is_emptied() -> None:
    """Copies of one page, and pages with almost nothing left, keep all of their text."""
    repeated = Repeated()
    text = [f"Paragraph x{'x' * i} of some words" for i in range(20)]
    for _ in range(5):
        assert repeated.strip("h", text) == " ".join(text)
        assert repeated.strip("short", MENU[:1]) == "Home"
    assert repeated.left("h", [*text, "12:30"]) == " ".join([*text, "12:30"])
    assert repeated.strip("h", []) == ""


def test_memory_is_bounded() -> None:
    """Only so many blocks are remembered, of a host and in all; menus are among them as long as their host is in use."""
    repeated = Repeated(blocks_of_host=100, blocks=300)
    for i in range(200):
        left = repeated.strip("h", [*MENU, *(f"text {'x' * i} {'y' * j}" for j in range(20))])
        repeated.add(f"host {i % 17}", [f"text {'x' * i} {'z' * j}" for j in range(30)])
        sizes = [len(counts) for counts in repeated._counts.values()]
        assert max(sizes) <= 100
        assert sum(sizes) == repeated._n <= 300
    assert "Home" not in left
    assert left.count("text") == 20


def test_a_copy_goes_on() -> None:
    """What was pickled knows the same blocks."""
    repeated = Repeated()
    for i in range(3):
        repeated.add("h", [*MENU, "x" * i])
    copy = pickle.loads(pickle.dumps(repeated))
    assert copy.strip("h", [*MENU, "new"]) == repeated.strip("h", [*MENU, "new"]) == "new"


@pytest.mark.parametrize("ending", ["html", "txt"])
def test_examples_without_menus(tmp_path: Path, ending: str) -> None:
    """Blocks in several example files are in no example, whichever folder they are in."""
    for folder, texts in (("on", ["Bees dance", "Honey is sweet"]), ("off", ["Rails rust", "Trains run"])):
        (tmp_path / folder).mkdir()
        for i, text in enumerate(texts):
            content = page(text, f"Page {text[0]}") if ending == "html" else "\n".join([*MENU, text])
            (tmp_path / folder / f"{i}.{ending}").write_text(content)
    examples = read_examples(tmp_path / "on", tmp_path / "off")
    assert not any("Steel" in text or "Owner" in text for text in examples.texts)
    assert [text.endswith(end) for text, end in zip(examples.texts, ["dance", "sweet", "rust", "run"], strict=True)]
    assert "Steel" in next(iter(read_texts(tmp_path / "on").values())), "there are only two files in this folder"
    assert examples.labels == [True, True, False, False]


def test_a_model_of_one_site_learns_the_topic(tmp_path: Path) -> None:
    """Where all pages on the topic are of one site, a page of another topic on that site is not on the topic."""
    nouns = ["hive", "nectar", "pollen", "queen", "swarm", "drone"]
    for folder in ("on", "off"):
        (tmp_path / folder).mkdir()
    for i in range(6):
        on = f"The honey bees of the {nouns[i]} and the {nouns[i - 1]}"
        (tmp_path / "on" / f"{i}.html").write_text(page(on))
        (tmp_path / "off" / f"{i}.html").write_text(f"<p>The price of rails and cars, number {'x' * i}")
    examples = read_examples(tmp_path / "on", tmp_path / "off")
    model = LinearRelevance().fit(examples.texts, examples.labels)
    scores = model.score([html_text(page("The price of rails")), "honey bees of a hive"])
    assert scores[0] < 0.5 < scores[1]
    told = LinearRelevance().fit([html_text(file.read_text()) for file in examples.files], examples.labels)
    assert told.score([html_text(page("The price of rails"))])[0] > 0.5, "with menus it would be"
