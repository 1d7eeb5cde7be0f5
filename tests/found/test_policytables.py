"""Tables of a policy: in a folder, on its pages, and on a terminal."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from scrapy_focus.core.abilities import PolicyTable
from scrapy_focus.core.contract import tables_in
from scrapy_focus.core.table_lines import in_lines
from scrapy_focus.finders.kit.page.policy_tables import TABLES, Said, read_tables, write_tables
from scrapy_focus.finders.news.news_list import NewsList
from scrapy_focus.finders.outputs import write_report
from tests.examples import n_examples
from tests.found.foundfolders import EVIL, line, make
from tests.pages import Reader

if TYPE_CHECKING:
    from pathlib import Path

NOW = 1_767_571_200.0  # 5 January 2026
FLEET = PolicyTable(
    "Ants", ("ant", "home", "age (hours)", "eggs"),
    [(f"ant {i}", f"https://h{i}.example/", i / 3, 1000 * i) for i in range(16)],
)  # fmt: skip


def test_tables_are_kept_as_they_were(tmp_path: Path) -> None:
    """After several writes the last one is read; an empty list removes the tables."""
    for at, tables in ((NOW, [FLEET]), (NOW + 1, [FLEET._replace(title="Bees"), FLEET])):
        said = Said("Colony", at, tables)
        write_tables(tmp_path, said)
        assert read_tables(tmp_path) == said
    assert {path.name for path in tmp_path.rglob("*")} == {".focus", "tables.json"}
    write_tables(tmp_path, Said("Colony", NOW, []))
    assert read_tables(tmp_path) == Said("", None, [])
    write_tables(tmp_path / "none", Said("Colony", NOW, []))
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    "text",
    [
        "", "null", "3", "[" * 100_000, "{}", '{"policy": 1, "at": 2}', '{"policy": "", "at": 2, "tables": [3]}', "\x00",
        '{"policy": "", "at": 0, "tables": [{"title": "t", "columns": ["c"], "rows": [[NaN]]}]}',
        '{"policy": "", "at": 0, "tables": [{"title": "t", "columns": ["c"], "rows": [["a", "b"]]}]}',
    ],
)  # fmt: skip
def test_a_malformed_file_has_no_tables(text: str, tmp_path: Path) -> None:
    """The page of the folder is still written."""
    make(tmp_path, [line(1)])
    (tmp_path / TABLES).parent.mkdir()
    (tmp_path / TABLES).write_text(text)
    assert read_tables(tmp_path).tables == []
    assert "How it decides" not in write_report(tmp_path).read_text()


@pytest.fixture(params=["files", "news"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder of a crawl for files, and one of a watch."""
    if request.param == "news":
        NewsList(tmp_path).begin()
        return tmp_path
    return make(tmp_path, [line(1)])


def test_the_page_shows_them(folder: Path) -> None:
    """They have all values, with formatted numbers and URLs as links; long tables are truncated, with a count."""
    many = PolicyTable("Grains.", ("grain",), [(f"grain {i}",) for i in range(700)])
    nothing = PolicyTable("Emptiness", ("thing",), [])
    write_tables(folder, Said("Colony", NOW, [FLEET, nothing, many]))
    reader = Reader(write_report(folder).read_text())
    assert (
        "What the crawl has learned about which links to follow first, as of 05 Jan 00:00 UTC (policy: Colony)."
        in reader.text
    )
    for i, row in enumerate(FLEET.rows):
        assert f"ant {i} h{i}.example/ {row[2]:.3g} {1000 * i:,}" in reader.text
        assert {"href": f"https://h{i}.example/", "rel": "noreferrer"} in reader.all("a")
    assert "Grains. The first 100 of 700 are shown." in reader.text
    assert "grain 99 " in reader.text
    assert "grain 100" not in reader.text
    assert "Emptiness" not in reader.text


@pytest.mark.parametrize("text", EVIL)
def test_tables_are_harmless(folder: Path, text: str) -> None:
    """Titles, columns and values never add an element, handler or link to the page."""
    before = [*Reader(write_report(folder).read_text()).elements]
    table = {
        "title": text,
        "columns": [text, text],
        "rows": [[text, f"https://h.example/{text}"], [f"http://{text}", 1]],
    }
    (folder / TABLES).parent.mkdir(exist_ok=True)
    (folder / TABLES).write_text(json.dumps({"policy": text, "at": NOW, "tables": [table]}))
    elements = Reader(write_report(folder).read_text()).elements
    assert [name for name, _ in elements].count("table") == 1 + [name for name, _ in before].count("table")
    assert [name for name, _ in elements].count("script") == [name for name, _ in before].count("script")
    assert {name for name, _ in elements}.isdisjoint({"img", "iframe", "object"})
    svgs = [[name for name, _ in each].count("svg") for each in (before, elements)]
    assert svgs[0] == svgs[1]
    assert not [name for _, attributes in elements for name in attributes if name.startswith("on")]
    links = [str(attributes["href"]) for _, attributes in elements if attributes.get("href")]
    assert not [link for link in links if ":" in link and not link.startswith(("https://", "http://"))]


VALUES: Any = st.one_of(st.text(max_size=60), st.integers(), st.floats(allow_nan=False, allow_infinity=False))


@settings(max_examples=n_examples(60), deadline=None)
@given(data=st.data(), width=st.integers(1, 120), most=st.integers(1, 5), columns=st.integers(1, 5))
def test_lines_fit_and_show(data: Any, width: int, most: int, columns: int) -> None:
    """Below the title no line exceeds the width, for any values, and all characters are printable."""
    row = st.tuples(*[VALUES] * columns)
    names = data.draw(st.lists(st.text(max_size=20), min_size=columns, max_size=columns))
    rows = data.draw(st.lists(row, max_size=8))
    [table] = tables_in([PolicyTable("Things", tuple(names), rows)])
    title, *lines = in_lines(table, width, most)
    assert title == ("Things:" if len(rows) <= most else f"Things, {most} of {len(rows)}:")
    assert len(lines) == 1 + min(most, len(rows))
    assert all(line.isprintable() and cell_len(line) <= width for line in lines)


def test_lines_are_aligned() -> None:
    """Texts are left-aligned, numbers right-aligned; long texts are cut first, then last columns omitted."""
    assert in_lines(FLEET, 60, 2) == [
        "Ants, 2 of 16:",
        "ant    home         age (hours)   eggs",
        "ant 0  h0.example/            0      0",
        "ant 1  h1.example/        0.333  1,000",
    ]
    assert in_lines(FLEET, 22, 1)[1:] == ["ant    home", "ant 0  h0.example/"]
    long = PolicyTable("Long", ("text", "n"), [("x" * 90, 1)])
    assert in_lines(long, 80, 1)[2] == f"{'x' * 39}…  1"
    assert in_lines(long, 20, 1)[2] == f"{'x' * 16}…  1"
