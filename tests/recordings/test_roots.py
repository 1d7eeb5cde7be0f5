"""A recording whose root is spelled wrongly says so, and names the likely one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from scrapy_focus.lab.recordings.importers.base import record
from scrapy_focus.lab.recordings.importers.folder import FolderImporter
from scrapy_focus.lab.recordings.roots import doubt_of
from scrapy_focus.lab.recordings.writer import Answer, SiteWriter

if TYPE_CHECKING:
    from pathlib import Path

HTML = {"Content-Type": "text/html"}


def recorded(path: Path, root: str, links: list[str], answers: list[Answer]) -> Path:
    """Record a root with links, and some answers."""
    body = "".join(f'<a href="{url}">x</a>' for url in links).encode()
    with SiteWriter(path, roots=[root]) as writer:
        writer.add(Answer(url=root, status=200, headers=HTML, body=body))
        for answer in answers:
            writer.add(answer)
        writer.finish()
    return path


@pytest.mark.parametrize(
    ("root", "likely"),
    [
        ("http://a.test/index.html", "https://a.test/index.html"),
        ("http://a.test/", "https://www.a.test/"),
        ("https://www.a.test/x?y=1", "https://a.test/x?y=1"),
    ],
)
def test_links_that_begin_otherwise(tmp_path: Path, root: str, likely: str) -> None:
    """Where they are missing, the root is likely to begin as they do."""
    origin = likely[: likely.index("/", 8)]
    pages = [f"{root[: root.index('/', 8)]}/{n}" for n in range(18)]
    answers = [Answer(url=url, status=200, headers=HTML, body=b"x") for url in pages]
    path = recorded(tmp_path / "a.sqlite", root, [*pages, f"{origin}/one"], answers)
    doubt = doubt_of(path)
    assert doubt is not None
    assert doubt.root == likely
    assert str(doubt) == (
        f"1 of 20 URLs (5.0%) are at {origin} and missing, or redirect there: is {likely} its root? Record it from there, "
        "into another file."
    )


def test_redirects_to_another_scheme(tmp_path: Path) -> None:
    """A live site that sends each link to https is recorded from there; one whose own links are old is not doubted."""
    urls = [f"a.test/{n}" for n in range(9)]
    moved = [Answer(url=f"http://{url}", status=301, headers={"Location": f"https://{url}"}) for url in urls]
    pages = [Answer(url=f"https://{url}", status=200, headers=HTML, body=b"x") for url in urls]
    links = [f"http://{url}" for url in urls]
    doubt = doubt_of(recorded(tmp_path / "wrong.sqlite", "http://a.test/", links, [*moved, *pages]))
    assert doubt is not None
    assert (doubt.root, doubt.reason[:17]) == ("https://a.test/", "9 of 19 URLs (47.")
    assert doubt_of(recorded(tmp_path / "right.sqlite", "https://a.test/", links, [*moved, *pages])) is None


def test_other_hosts_are_no_other_root(tmp_path: Path) -> None:
    """Sub-domains that are missing are named, the first three; a few, or pages of the host itself, are no doubt."""
    links = [f"http://{host}.a.test/{n}" for n, host in enumerate("bbbbccdef")]
    doubt = doubt_of(recorded(tmp_path / "many.sqlite", "http://a.test/", links, []))
    assert str(doubt) == (
        "9 of 10 URLs (90.0%) are at other hosts and missing: http://b.a.test (4), http://c.a.test (2), "
        "http://d.a.test (1) and others."
    )
    here = [f"http://a.test/{n}" for n in range(19)]
    assert doubt_of(recorded(tmp_path / "few.sqlite", "http://a.test/", [*here, links[0]], [])) is None
    assert doubt_of(recorded(tmp_path / "none.sqlite", "http://a.test/", here, [])) is None


def test_a_mirror_with_the_right_root(tmp_path: Path) -> None:
    """The root that is named has nothing missing, where the one before had."""
    folder = tmp_path / "mirror"
    folder.mkdir()
    (folder / "index.html").write_text("".join(f'<a href="https://www.a.test/{n}.html">{n}</a>' for n in range(5)))
    for n in range(5):
        (folder / f"{n}.html").write_text("<p>page")
    record(FolderImporter(folder), path := tmp_path / "a.sqlite", root="http://a.test/")
    doubt = doubt_of(path)
    assert doubt is not None
    done = record(FolderImporter(folder), path := tmp_path / "b.sqlite", root=doubt.root)
    assert (doubt_of(path), done.missing) == (None, 0)
