"""Whether a page has scripts that a browser would run."""

from __future__ import annotations

import pytest

from scrapy_focus.web.scripts import has_scripts


@pytest.mark.parametrize(
    "html",
    [
        "<script>run()</script>",
        "<SCRIPT\nSRC=x.js></SCRIPT>",
        "<script/src=x.js>",
        '<script type="">run()',
        "<script type=module src=x.mjs>",
        "<script defer type='text/javascript' src=x>",
        "<script type='text/javascript; charset=utf-8'>",
        "<script type=application/x-javascript>",
        "<script language='JavaScript1.2'>",
        "<script data-type='application/json'>run()</script>",
        "<script type=application/json>{}</script><script>run()</script>",
        "<script type=application/json>'<!--'</script><script>run()</script>",
        "<!-- old --><script>run()</script>",
        "<!--><script>run()</script>",
        "<s-- <script>run()</script>",
        "<script ",  # cut off
    ],
)
def test_pages_with_scripts(html: str) -> None:
    """However they are spelled, behind comments and data too."""
    assert has_scripts(f"<html><body><p>text</p>{html}")


@pytest.mark.parametrize(
    "html",
    [
        "",
        "<p>script</p><scripted>",
        "<!cript>run()<s-- <b--",
        "<script type=application/json>{}</script>",
        "<script id=x type = 'application/ld+json' >{}</script>",
        "<script type='text/template'><script></script>",
        "<script type=importmap>{}</script><script type=speculationrules>{}</script>",
        "<!--[if lt IE 9]><script src=old.js></script><![endif]-->",
        "<!-- <script>never closed()</script>",
        "<script type=application/json>never closed <script>",
        "<a onclick='run()'>",
    ],
)
def test_pages_without(html: str) -> None:
    """Data, templates, comments and attributes are none."""
    assert not has_scripts(f"<html><body><p>text</p>{html}")


@pytest.mark.parametrize("part", ["<script ", "<!--", "<script type=a", "<!---->", "<script type=a></script>", "type "])
def test_long_pages_are_read_in_one_pass(part: str) -> None:
    """Nothing in a page lets it be read again and again; what is far behind is not looked at."""
    has_scripts(part * (2**20 // len(part)))
    has_scripts("<script " + part * (2**20 // len(part)))
    assert not has_scripts(" " * 2**19 + "<script>")
