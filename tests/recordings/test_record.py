"""What is written into a recording: pages, links, redirects, depths; and what is left when writing ends too early."""

from __future__ import annotations

import copy
import math
import os
import pickle
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections import deque
from pathlib import Path

import numpy as np
import pytest
from recordings import HTML, ROOT, leads_to, links, page, record, redirect

from scrapy_focus.core.errors import RecordingError
from scrapy_focus.lab.recordings.format import RecordedSite
from scrapy_focus.lab.recordings.graph import depths
from scrapy_focus.lab.recordings.writer import Answer, SiteWriter
from tests.made import HANG

# Records a chain of pages, each with twenty dead links, until something happens.
ENDLESS = """
import resource, signal, sys
sys.path.insert(0, sys.argv[3])
from recordings import ROOT, links, page
from scrapy_focus.core.errors import RecordingError
from scrapy_focus.lab.recordings import writer as record
from scrapy_focus.lab.recordings.writer import SiteWriter

record._SECONDS = 0.02
if sys.argv[2] != "-":
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
try:
    with SiteWriter(sys.argv[1], roots=[ROOT]) as writer:
        for number in range(1_000_000):
            path = f"{number}" if number else ""
            writer.add(page(path, links(str(number + 1), *(f"dead/{number}/{each}" for each in range(20)))))
            print(number, flush=True)
except RecordingError as error:
    print(error)
    sys.exit(3)
"""


def write_endlessly(path: Path, limit: str = "-") -> subprocess.Popen[str]:
    """Start to write the endless chain in another process."""
    command = [sys.executable, "-c", ENDLESS, str(path), limit, str(Path(__file__).parent)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def check_chain(path: Path) -> int:
    """Check that an interrupted recording of the chain can be read and gone on with; return the number of its pages."""
    site = RecordedSite(path)
    done = site.completeness()
    assert not done.finished
    pages = [url for page, url in enumerate(site.urls) if site.recorded[page]]
    assert pages == [ROOT + (str(number) if number else "") for number in range(len(pages))]
    assert all(len(leads_to(site, url)) == 21 for url in pages)
    with SiteWriter(path, roots=[ROOT]) as writer:
        known = {url for url in site.urls if not writer.has(url)}
        assert set(writer.missing()) == known
        assert f"{ROOT}{len(pages)}" in known
        assert len(known) == done.missing
        for url in list(known):
            writer.add(page(url))
        assert writer.finish().missing == 0
    site.close()
    return len(pages)


def test_a_small_site(tmp_path: Path) -> None:
    """What was answered can be read: statuses, sizes, links with their texts, redirects, depths, headers."""
    home = "<html><body><ul><li>See <a href='/a'>the A</a> now</ul><div class=x><a href='/old'>old</a></div>"
    site = record(
        tmp_path / "site.sqlite",
        page("/", home, seconds=0.5),
        page("/a", links("/", "/b.csv")),
        redirect("/old", "/new"),
        Answer(url=f"{ROOT}b.csv", status=200, headers={"content-type": "TEXT/CSV"}, body=b"1,2"),
        Answer(url=f"{ROOT}new", error="failure: TimeoutError"),
    )
    assert site.urls == [ROOT, f"{ROOT}a", f"{ROOT}old", f"{ROOT}b.csv", f"{ROOT}new"]
    assert site.roots == [0]
    assert site.status.tolist() == [200, 200, 301, 200, 0]
    assert site.errors == {4: "failure: TimeoutError"}
    assert site.mimes == ["text/html", "text/html", "", "text/csv", ""]
    assert site.size.tolist() == [len(home), len(links("/", "/b.csv")), 0, 3, 0]
    assert site.seconds[0] == 0.5
    assert site.redirect.tolist() == [-1, -1, 4, -1, -1]
    assert site.depth.tolist() == [0, 1, 1, 2, 1]
    assert leads_to(site) == [f"{ROOT}a", f"{ROOT}old"]
    assert site.tag_path(site.links(0).start + 1) == "html/body/div.x/a"
    assert site.texts(np.array([1, 0])) == [("old", "old"), ("the A", "See the A now")]
    assert site.headers(3) == {"content-type": "TEXT/CSV"}
    assert site.header_size[3] == len("content-type: TEXT/CSV\r\n")
    assert site.hosts == ["example.org"] * 5
    assert str(site.completeness()) == "5 URLs are recorded (1 without an answer), 0 linked ones are not (100.0%)"
    assert site.meta["roots"] == [ROOT]


def test_missing_urls_come_in_the_order_in_which_they_were_found(tmp_path: Path) -> None:
    """So recording what is missing until nothing is is a breadth-first crawl, and sees what is added meanwhile."""
    with SiteWriter(tmp_path / "site.sqlite", roots=[ROOT]) as writer:
        asked = []
        for url in writer.missing():
            number = int(url.removeprefix(ROOT) or 1)
            asked.append(number)
            writer.add(page(url, links(str(2 * number), str(2 * number + 1)) if number < 1500 else ""))
        done = writer.finish()
    assert asked == list(range(1, 3000))
    assert (done.recorded, done.missing, done.finished) == (2999, 0, True)


def test_urls_are_told_apart_as_scrapy_does(tmp_path: Path) -> None:
    """Order of the query, case of host and escapes, and fragments make no difference; anything else does."""
    spellings = links("/?b=2&a=1", "/?a=1&b=2#x", "HTTP://Example.ORG/%7ea", "/~a", "/A", "/a", "/a/", "/?a=1&b=2&c")
    site = record(tmp_path / "site.sqlite", page("/", spellings), page("/?a=1&b=2"))
    assert leads_to(site) == [ROOT + rest for rest in ("?b=2&a=1", "%7ea", "A", "a", "a/", "?a=1&b=2&c")]
    assert np.flatnonzero(site.recorded).tolist() == [0, 1]


def test_the_first_answer_stays(tmp_path: Path) -> None:
    """Of a URL that is recorded again, status and links do not change."""
    first, again = page("/", links("/a")), page("/", links("/b"), status=404)
    site = record(tmp_path / "site.sqlite", first, again)
    assert site.status[0] == 200
    assert site.urls == [ROOT, f"{ROOT}a"]


def test_a_failure_is_an_answer(tmp_path: Path) -> None:
    """What was recorded as a failure, or as forbidden, stays so when an answer comes after it."""
    failed, forbidden = Answer(url=ROOT, error="failure: X"), Answer(url=f"{ROOT}a", error="ignored")
    site = record(tmp_path / "site.sqlite", failed, forbidden, page("/", links("/b")), page("/a", links("/c")))
    assert site.errors == {0: "failure: X", 1: "ignored"}
    assert site.urls == [ROOT, f"{ROOT}a"]


def test_what_is_on_the_site(tmp_path: Path) -> None:
    """Hosts of the roots and what is below them, with and without www, on any port; and http or https only."""
    inside = [
        "http://example.org:8080/x",
        "https://example.org/x",
        "http://a.b.example.org/",
        "http://www.example.org/",
    ]
    outside = [
        "http://example.com/", "http://anexample.org/", "http://example.org.evil.net/", "ftp://example.org/",
        "mailto:me@example.org", "javascript:void(0)", "data:text/html,x", "http://[x/", "http://", "//[::1",
        "http://ex ample.org/",
    ]  # fmt: skip
    root = "http://www.example.org:80/"
    with SiteWriter(tmp_path / "site.sqlite", roots=[root]) as writer:
        writer.add(page(root, links(*inside, *outside)))
        assert [url for url in (*inside, *outside) if writer.in_scope(url)] == inside
        assert list(writer.missing()) == inside
        for url in outside:
            writer.add(page(url))
            assert not writer.has(url)
        assert writer.finish().missing == 4


def test_links_that_scrapy_would_drop_are_not_recorded(tmp_path: Path) -> None:
    """URLs of more than 2083 characters are passed over, and those of 2083 are not."""
    longest = "x" * (2083 - len(ROOT))
    site = record(tmp_path / "site.sqlite", page("/", links(longest, longest + "x")))
    assert leads_to(site) == [ROOT + longest]


def test_each_target_stands_where_it_is_linked_first(tmp_path: Path) -> None:
    """A page that links to a URL again, or under another spelling, has one link to it."""
    html = "<p><a href='/a'>first</a></p><div><a href='/a'>second</a><a href='/a#x'>third</a></div>" + links(
        "/b", "/a?"
    )
    site = record(tmp_path / "site.sqlite", page("/", html))
    assert leads_to(site)[:2] == [f"{ROOT}a", f"{ROOT}b"]
    assert site.texts(np.array([0])) == [("first", "first")]


@pytest.mark.parametrize(
    ("location", "leads"),
    [
        ("/b", "http://example.org/b"),
        ("b?x=1#y", "http://example.org/dir/b?x=1"),
        ("//www.example.org/b", "http://www.example.org/b"),
        ("http://example.org/é", "http://example.org/%C3%A9"),
        ("http://elsewhere.net/", None),
        ("mailto:me@example.org", None),
        ("http://[x", None),
        ("", None),
    ],
)
def test_where_a_redirect_leads(location: str, leads: str | None, tmp_path: Path) -> None:
    """It is joined to the URL, made safe, and counts if it is on the site."""
    site = record(tmp_path / "site.sqlite", page("/", links("/dir/a")), redirect("/dir/a", location, 302))
    target = int(site.redirect[1])
    assert (site.urls[target] if target >= 0 else None) == leads


@pytest.mark.parametrize("status", [200, 404])
def test_a_refresh_is_a_redirect(status: int, tmp_path: Path) -> None:
    """A page that sends its visitors on at once does so whatever its status, relative to its base; its links do not count."""
    html = "<base href='/dir/'><meta http-equiv=refresh content='0; url=b'>" + links("/c")
    late = "<meta http-equiv=refresh content='500; url=/b'>" + links("/c")
    noscript = "<noscript><meta http-equiv=refresh content='0; url=/b'></noscript>" + links("/c")
    site = record(tmp_path / "site.sqlite", page("/", html, status=status))
    assert site.urls == [ROOT, f"{ROOT}dir/b"]
    assert site.redirect.tolist() == [1, -1]
    for name, html in (("late", late), ("noscript", noscript)):
        assert record(tmp_path / name, page("/", html)).urls == [ROOT, f"{ROOT}c"]


def test_only_good_pages_have_links(tmp_path: Path) -> None:
    """Links of error pages and of files that look like HTML do not count; those of pages without a type do."""
    html = "<!DOCTYPE html>" + links("/x")
    text = Answer(url=f"{ROOT}text", status=200, headers={"Content-Type": "text/plain"}, body=html.encode())
    untyped = Answer(url=f"{ROOT}untyped", status=200, body=html.encode())
    site = record(tmp_path / "site.sqlite", page("/", links("text", "untyped")), page("/e", html, status=404), text)
    assert len(site.targets) == 2
    assert leads_to(record(tmp_path / "two", untyped), f"{ROOT}untyped") == [f"{ROOT}x"]
    moved = Answer(url=ROOT, status=301, headers={**HTML, "Location": "/new"}, body=html.encode())
    assert record(tmp_path / "three", moved, page("/odd", html, status=304)).urls == [ROOT, f"{ROOT}new", f"{ROOT}odd"]


def test_sizes_and_digests(tmp_path: Path) -> None:
    """A stated size counts as transferred; equal bodies have equal digests, whatever their size."""
    site = record(
        tmp_path / "site.sqlite",
        page("/1", "same"),
        page("/2", "same", size=2),
        page("/3", "other"),
        Answer(url=f"{ROOT}4", status=200, size=10**12),
        Answer(url=f"{ROOT}5", status=200),
    )
    assert site.size[1:].tolist() == [4, 2, 5, 10**12, 0]
    digests = site.digest[1:].tolist()
    assert digests[0] == digests[1]
    assert digests[3] == 0, "there was no body to tell it from"
    assert len(set(digests)) == 4


def test_values_that_cannot_be_written(tmp_path: Path) -> None:
    """An enormous size, and non-text, are written as well as possible."""
    odd = Answer(url=f"{ROOT}a", status=200, headers={"X": "a\ud800"}, size=10**30)
    site = record(tmp_path / "site.sqlite", page("/", "<a href='&#xD800;'>&#xD800;\0</a>"), odd)
    assert site.size[site.ids[f"{ROOT}a"]] == 2**63 - 1
    assert site.headers(site.ids[f"{ROOT}a"]) == {"X": "a?"}
    assert leads_to(site) == [f"{ROOT}%EF%BF%BD"]


def test_bodies_are_kept_on_demand(tmp_path: Path) -> None:
    """Those of good pages, decoded as their headers say; nothing is kept otherwise."""
    body = "<p>größer".encode("latin-1")
    latin = Answer(url=ROOT, status=200, headers={"Content-Type": "text/html; charset=latin-1"}, body=body)
    image = Answer(url=f"{ROOT}i", status=200, headers={"Content-Type": "image/png"}, body=b"png")
    site = record(tmp_path / "kept", latin, image, page("/e", "error", status=500), bodies=True)
    assert site.body(0) == body
    assert site.text(0) == "<p>größer"
    assert site.body(1) is site.body(2) is None
    assert site.text(1) == ""
    assert record(tmp_path / "not", latin).body(0) is None


def test_strings_are_stored_once(tmp_path: Path) -> None:
    """A menu of the same links on many pages does not grow the table of texts."""
    menu = links(*(str(number) for number in range(30)))
    record(tmp_path / "site.sqlite", *(page(str(number), menu) for number in range(30)))
    database = sqlite3.connect(tmp_path / "site.sqlite")
    assert database.execute("SELECT count(*), count(DISTINCT text) FROM texts").fetchone() == (34, 34)
    database.close()


def test_depths_of_chains_and_cycles(tmp_path: Path) -> None:
    """Redirects cost no click, cycles end, and what no link leads to has no depth."""
    site = record(
        tmp_path / "site.sqlite",
        page("/", links("r1", "loop1")),
        redirect("/r1", "/r2"),
        redirect("/r2", "/r3"),
        redirect("/r3", "/deep"),
        redirect("/loop1", "/loop2"),
        redirect("/loop2", "/loop1"),
        page("/deep", links("/", "/deeper")),
        page("/lost", links("/found")),
    )
    found = {url.removeprefix(ROOT): depth for url, depth in zip(site.urls, site.depth.tolist(), strict=True)}
    assert found == {
        "": 0, "r1": 1, "r2": 1, "r3": 1, "deep": 1, "loop1": 1, "loop2": 1, "deeper": 2, "lost": -1, "found": -1,
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(30))
def test_depths_are_shortest_paths(seed: int) -> None:
    """On random graphs of links and redirects, as a search with a deque finds them."""
    rng = random.Random(seed)
    n = rng.randint(1, 40)
    lists = [[rng.randrange(n) for _ in range(rng.choice([0, 0, 1, 2]))] for _ in range(n)]
    redirects = [rng.randrange(n) if rng.random() < 0.3 else -1 for _ in range(n)]
    roots = [rng.randrange(n) for _ in range(rng.choice([1, 2]))]
    want = [-1] * n
    queue = deque((root, 0) for root in roots)
    while queue:
        number, depth = queue.popleft()
        if want[number] < 0:
            want[number] = depth
            queue.extend((target, depth + 1) for target in lists[number])
            if redirects[number] >= 0:
                queue.appendleft((redirects[number], depth))
    starts = np.cumsum([0, *map(len, lists)])
    targets = np.array([target for targets in lists for target in targets], np.int32)
    assert depths(roots, starts, targets, np.array(redirects)).tolist() == want


def test_a_recording_is_gone_on_with(tmp_path: Path) -> None:
    """Opened again, it has what was added and lacks what was not; it is unfinished until it is finished again."""
    path = tmp_path / "site.sqlite"
    record(path, page("/", links("/a", "/b"))).close()
    with SiteWriter(path, roots=["http://EXAMPLE.org"]) as writer:
        assert writer.has(ROOT)
        assert list(writer.missing()) == [f"{ROOT}a", f"{ROOT}b"]
        writer.add(page("/a", links("/c")))
        assert not writer.completeness().finished
    done = RecordedSite(path).completeness()
    assert str(done) == (
        "2 URLs are recorded, 2 linked ones are not (50.0%), and the recording was stopped before its end"
    )
    with SiteWriter(path, roots=[ROOT]) as writer:
        assert writer.finish().finished
    assert RecordedSite(path).depth.tolist() == [0, 1, 1, 2]


def test_a_share_is_not_rounded_up(tmp_path: Path) -> None:
    """Nothing is called complete that is not."""
    answers = [page(str(number)) for number in range(3000)]
    site = record(tmp_path / "site.sqlite", page("/", links("/missing")), *answers)
    assert "(99.9%)" in str(site.completeness())


def test_several_roots(tmp_path: Path) -> None:
    """Each is a root once, however it is spelled; their hosts are all on the site."""
    roots = ("http://a.org", "http://b.org/x", "http://a.org/")
    site = record(tmp_path / "site.sqlite", page("http://b.org/x", links("http://a.org/y")), roots=roots)
    assert [site.urls[root] for root in site.roots] == ["http://a.org", "http://b.org/x"]
    assert site.urls[2:] == ["http://a.org/y"]


@pytest.mark.parametrize("roots", [[], [""], ["example.org"], ["ftp://example.org/"], [ROOT, "/a"], ["http://[x/"]])
def test_a_root_is_a_url(roots: list[str], tmp_path: Path) -> None:
    """Anything else is an error that says what to give, and makes no file."""
    with pytest.raises(RecordingError, match=r"give the URL of its first page"):
        SiteWriter(tmp_path / "site.sqlite", roots=roots)
    assert not list(tmp_path.iterdir())


def test_recordings_are_not_mixed_up(tmp_path: Path) -> None:
    """A recording of another site is not written to."""
    path = tmp_path / "site.sqlite"
    record(path, page("/", links("/a"))).close()
    before = path.read_bytes()
    with pytest.raises(RecordingError, match=r"is a recording of http://example.org/, not of http://example.com/"):
        SiteWriter(path, roots=["http://example.com/"])
    assert path.read_bytes() == before


def test_a_recording_is_read_in_other_processes(tmp_path: Path) -> None:
    """It is pickled and copied by its path."""
    site = record(tmp_path / "site.sqlite", page("/", links("/a")))
    for other in (pickle.loads(pickle.dumps(site)), copy.deepcopy(site)):
        assert other is not site
        assert other.urls == site.urls
        assert other.texts(np.array([0])) == [("/a", "/a")]


def test_a_killed_recording_is_gone_on_with(tmp_path: Path) -> None:
    """After a kill at any moment it can be read, holds whole pages, and knows what is left to do."""
    path = tmp_path / "site.sqlite"
    process = write_endlessly(path)
    assert process.stdout
    while process.stdout.readline() != "300\n":  # some commits of 20 milliseconds each
        pass
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert check_chain(path) > 10


def test_a_half_written_transaction_is_taken_back(tmp_path: Path) -> None:
    """Where a machine stopped while a transaction was on its way to the disk, a reader gets what was before it."""
    path, crashed = tmp_path / "site.sqlite", tmp_path / "crashed.sqlite"
    with SiteWriter(path, roots=[ROOT]) as writer:
        writer._database.execute("PRAGMA cache_size = 1")  # what is changed is written before it is committed
        writer._committed = math.inf
        for number in range(200):
            writer.add(page(str(number), links(*map(str, range(number, number + 50)))))
        for suffix in ("", "-journal"):
            shutil.copy(f"{path}{suffix}", f"{crashed}{suffix}")
    assert crashed.stat().st_size > 50_000
    assert RecordedSite(crashed).urls == [ROOT]
    assert RecordedSite(path).n_urls > 200


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="needs a limit on the size of files")
def test_a_full_disk_is_said_and_loses_nothing(tmp_path: Path) -> None:
    """If no more can be written the recorder ends with an error, and committed data are kept."""
    path = tmp_path / "site.sqlite"
    said, _ = write_endlessly(path, "600000").communicate(timeout=HANG)
    assert f"{path} cannot be written: " in said
    assert "is safe, and the same command resumes there" in said
    assert check_chain(path) > 10


def test_a_disk_that_is_full_from_the_start(tmp_path: Path) -> None:
    """No half-made file is left."""
    process = write_endlessly(tmp_path / "site.sqlite", "5000")
    said, _ = process.communicate(timeout=HANG)
    assert process.returncode == 3
    assert "site.sqlite cannot be written: " in said
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    """Where no file can be made, the error names it."""
    (tmp_path / "file").touch()
    with pytest.raises(RecordingError, match=r"file.site\.sqlite cannot be written: "):
        SiteWriter(tmp_path / "file" / "site.sqlite", roots=[ROOT])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_recording_that_must_not_be_written(tmp_path: Path) -> None:
    """A file without the right to write is read, and not written."""
    path = tmp_path / "site.sqlite"
    record(path, page("/")).close()
    path.chmod(0o444)
    with pytest.raises(RecordingError, match="cannot be written"):
        SiteWriter(path, roots=[ROOT])
    assert RecordedSite(path).n_urls == 1


def test_two_writers_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one gets an error that it cannot write, and damages nothing."""
    path = tmp_path / "site.sqlite"
    with SiteWriter(path, roots=[ROOT]) as first:
        first.add(page("/", links("/a")))
        with monkeypatch.context() as patch:
            patch.setattr(sqlite3, "connect", lambda *args, real=sqlite3.connect, **kw: real(*args, timeout=0, **kw))
            with pytest.raises(RecordingError, match="cannot be written: database is locked"):
                SiteWriter(path, roots=[ROOT])
        first.add(page("/a"))
        assert first.finish().recorded == 2


def test_writers_that_take_turns(tmp_path: Path) -> None:
    """What another process wrote meanwhile is gone on with: its URLs keep their numbers, and new ones get others."""
    path = tmp_path / "site.sqlite"
    with SiteWriter(path, roots=[ROOT]) as first, SiteWriter(path, roots=[ROOT]) as second:
        for writer, name, found in (
            (first, "", "1 2"),
            (second, "1", "2 3"),
            (first, "2", "3 4"),
            (second, "3", "1 5"),
        ):
            writer._committed = -math.inf
            writer.add(page(name, links(*found.split())))
        assert first.finish().recorded == second.completeness().recorded == 4
    site = RecordedSite(path)
    assert site.urls == [ROOT + name for name in ("", *"12345")]
    assert [leads_to(site, ROOT + name) for name in "23"] == [[f"{ROOT}3", f"{ROOT}4"], [f"{ROOT}1", f"{ROOT}5"]]


def test_who_reads_does_not_stop_who_writes(tmp_path: Path) -> None:
    """While a reader holds the file, a commit is delayed until the reader has finished."""
    path = tmp_path / "site.sqlite"
    record(path, *(page(str(number), links(*map(str, range(number)))) for number in range(50))).close()
    with SiteWriter(path, roots=[ROOT]) as writer:
        reader = sqlite3.connect(path)
        rows = reader.execute("SELECT * FROM links")
        rows.fetchone()
        for number in range(50, 60):
            writer._committed = -math.inf
            writer.add(page(str(number)))
        assert reader.execute("SELECT count(*) FROM pages WHERE status IS NOT NULL").fetchone() == (50,)
        rows.close()
    reader.close()
    assert RecordedSite(path).completeness().recorded == 60


@pytest.mark.parametrize(
    "html",
    [
        "<base href='http://[x/'><a href='/x'>x</a>",
        "<base href='http://example.org:99999/'><a href='/x'>x</a>",
        "<meta http-equiv=refresh content='0; url=http://[x'>",
        "<meta charset=rot13><a href='/x'>x</a>",
        "<meta charset=undefined><a href='/x'>x</a>",
        "<meta charset=unicode_escape><a href='/x'>\\ud800x</a>",
    ],
)
def test_a_page_that_cannot_be_read_goes_without_its_links(html: str, tmp_path: Path) -> None:
    """As Scrapy's own functions raise on it too; what else it answered is recorded, and so is what comes after it."""
    answers = (
        page("/", links("/odd")),
        Answer(url=f"{ROOT}odd", status=200, headers={"Content-Type": "text/html"}, body=html.encode()),
        page("/b"),
    )
    site = record(tmp_path / "site.sqlite", *answers, bodies=True)
    assert (site.status.tolist(), len(site.targets), site.size[1]) == ([200, 200, 200], 1, len(html))
    assert site.body(1) == html.encode()
    assert site.text(1) in (html, html.replace("\\ud800", "\ud800"), "")


def test_headers_need_no_certain_case(tmp_path: Path) -> None:
    """``location`` is a redirect as ``Location`` is."""
    answer = Answer(url=ROOT, status=301, headers={"location": "/a", **HTML})
    assert record(tmp_path / "site.sqlite", answer).redirect.tolist() == [1, -1]


def test_a_recording_keeps_bodies_as_it_was_begun(tmp_path: Path) -> None:
    """One with bodies is resumed with them, requested or not; one without is not mixed."""
    root = "http://h/"
    with SiteWriter(tmp_path / "with.sqlite", roots=[root], bodies=True):
        pass
    with SiteWriter(tmp_path / "with.sqlite", roots=[root]) as writer:
        writer.add(Answer(url=root, status=200, headers={"Content-Type": "text/html"}, body=b"<p>text"))
    assert RecordedSite(tmp_path / "with.sqlite").body(0) == b"<p>text"
    with SiteWriter(tmp_path / "without.sqlite", roots=[root]):
        pass
    with pytest.raises(RecordingError, match="begun without bodies"):
        SiteWriter(tmp_path / "without.sqlite", roots=[root], bodies=True)
