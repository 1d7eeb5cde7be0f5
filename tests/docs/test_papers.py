"""The page of each published system accounts for every line of its paper, and what it refers to exists."""

from __future__ import annotations

import re

import pytest

from tests.docs.reference import ROOT, read

PAGES = ["sb-classifier", "tres", "anthelion", "foragers", "importance"]
STATES = {"here", "otherwise", "not built"}
VERDICTS = {"holds", "does not hold", "cannot be told"}


def rows_of(page: str, title: str) -> list[list[str]]:
    """Return the cells of the table in a section, row by row, without its header."""
    text = read(f"explanation/{page}.rst")
    _, found, rest = text.partition(f"\n{title}\n{'=' * len(title)}\n")
    assert found, f"{page}.rst has no section {title!r}"
    section = re.split(r"\n[^\n]+\n=+\n", rest)[0]
    assert section.count(".. list-table::") == 1
    table = section.partition(".. list-table::")[2]
    rows = re.split(r"^   \* - ", table, flags=re.MULTILINE)[1:]
    return [[" ".join(cell.split()) for cell in re.split(r"^     -(?: |$)", row, flags=re.MULTILINE)] for row in rows][
        1:
    ]


@pytest.mark.parametrize("page", PAGES)
def test_lines_of_the_paper(page: str) -> None:
    """What is here names its code or its parameter; what differs or is absent says how and why."""
    rows = rows_of(page, "The paper, line by line")
    assert len(rows) > 10
    for row in rows:
        section, line, state, where = row
        assert section, row
        assert line, row
        assert state in STATES, row
        if state == "here":
            assert "``" in where or "`_" in where or ":class:" in where, row
        else:
            assert len(where.split()) >= 3, row


@pytest.mark.parametrize("page", PAGES)
def test_claims_of_the_paper(page: str) -> None:
    """A verdict rests on a section of our results; where none can be given, the table says why."""
    rows = rows_of(page, "What the paper claims")
    assert rows
    for row in rows:
        section, claim, verdict, ours = row
        assert section, row
        assert claim, row
        assert verdict in VERDICTS, row
        cited = re.findall(r'``(benchmarks/results/\w+\.md)`` \("([^"]+)"\)', ours)
        assert cited or verdict == "cannot be told", row
        for path, heading in cited:
            assert re.search(rf"^#+ {re.escape(heading)}$", (ROOT / path).read_text(), re.MULTILINE), (path, heading)
        assert len(ours.split()) >= 3, row
