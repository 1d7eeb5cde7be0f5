"""The list of files over several crawls, and which crawl a run belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.finders.files.asked_urls import Asked
from scrapy_focus.finders.files.file_list import FileList, read_files, relative
from scrapy_focus.finders.kit.records.crawls import (
    Run,
    can_go_on,
    next_run,
    note_begin,
    note_end,
    note_going_on,
    prepare,
)
from scrapy_focus.finders.kit.records.lines import add_line, cut_line, read_lines

if TYPE_CHECKING:
    from pathlib import Path


def line(url: str, content: str, crawl: int, **more: Any) -> dict[str, Any]:
    return {"url": url, "sha256": content, "path": f"files/{content}", "crawl": crawl, "state": "new", **more}


def test_states_of_a_content(tmp_path: Path) -> None:
    """New, changed, same under its URL or another, or repeated: this depends on the content and on earlier lists."""
    first = FileList(tmp_path, 1)
    assert first.judge("u", "n.csv", "a").state == "new"
    for url, content in (("u", "a"), ("v", "b")):
        first.note(line(url, content, 1))
        (tmp_path / "files").mkdir(exist_ok=True)
        (tmp_path / "files" / content).write_text(content)
    assert first.judge("w", "n.csv", "a")._replace(path="") == ("new", "", True, False, True, True)
    assert first.judge("u", "n.csv", "a").is_noted
    second = FileList(tmp_path, 2)
    assert second.to_send == 2
    assert second.judge("u", "n.csv", "a") == ("same", "files/a", True, False, False, False)
    changed = second.judge("u", "n.csv", "c")
    assert (changed.state, changed.is_stored) == ("changed", False)
    assert second.judge("moved", "n.csv", "b").state == "same"
    second.note(line("u", "c", 2, state="changed"))
    assert (second.to_send, [known.url for known in second.to_check()]) == (1, ["v"])
    assert second.judge("v", "n.csv", "c").is_again
    assert second.counts() == {"new": 0, "changed": 1, "same": 0, "gone": 0, "unseen": 1}


def test_a_gone_file_is_not_a_known_file(tmp_path: Path) -> None:
    """It is not requested as one; if it reappears, its state depends on its last content."""
    add_line(tmp_path / "manifest.jsonl", line("u", "a", 1, link="l"))
    assert FileList(tmp_path, 2).is_listed("l")
    add_line(tmp_path / "manifest.jsonl", line("u", "a", 2, state="gone"))
    third = FileList(tmp_path, 3)
    assert not third.is_listed("u")
    assert (third.to_check(), third.to_send) == ([], 0)
    assert third.judge("u", "n", "a").state == "same"
    assert third.judge("u", "n", "b").state == "changed"
    assert read_files(tmp_path)["u"].state == "gone"


def test_a_stored_file_that_somebody_removed_is_stored_again(tmp_path: Path) -> None:
    """Another file at that path is kept."""
    for path, stored in (
        ("files/a/b/c", "files/a/b/c"),
        ("files/../c", "files/a.test/x/n.csv"),
        ("/c", "files/a.test/x/n.csv"),
    ):
        (tmp_path / "manifest.jsonl").unlink(missing_ok=True)
        add_line(tmp_path / "manifest.jsonl", line("http://a.test/x/1", "a", 1, path=path))
        verdict = FileList(tmp_path, 2).judge("http://a.test/x/1", "n.csv", "a")
        assert (verdict.state, verdict.is_stored, verdict.path) == ("same", False, stored)
    (tmp_path / "files/a.test/x").mkdir(parents=True)
    (tmp_path / "files/a.test/x/n.csv").write_text("mine")
    assert FileList(tmp_path, 2).judge("http://a.test/x/1", "n.csv", "a").path == "files/a.test/x/n-2.csv"


def test_lines_survive_a_kill(tmp_path: Path) -> None:
    """A cut last line is skipped and removed; any other damaged line is an error that names it."""
    path = tmp_path / "lines.jsonl"
    assert list(read_lines(path)) == []
    cut_line(path)
    for number in range(3):
        add_line(path, {"n": number, "text": "ä\u2028" * 50_000})
    whole = path.read_bytes()
    for end in (whole[:-1], whole + b'{"n"', whole + b"x" * 200_000):
        path.write_bytes(end)
        expected = 2 if end == whole[:-1] else 3
        assert [each["n"] for each in read_lines(path)] == list(range(expected))
        cut_line(path)
        add_line(path, {"n": "last"})
        assert [each["n"] for each in read_lines(path)] == [*range(expected), "last"]
    path.write_bytes(b'{"n": 1}\nnonsense\n{"n": 2}\n')
    with pytest.raises(ConfigError, match=r"line 2 of .*lines.jsonl is damaged"):
        list(read_lines(path))
    path.write_bytes(b"[1]\n")
    with pytest.raises(ConfigError, match="not a JSON object"):
        list(read_lines(path))


def test_which_crawl_a_run_belongs_to(tmp_path: Path) -> None:
    """After a crawl that ended comes the next one; an interrupted or killed one resumes if it has a job."""
    job = tmp_path / ".focus/job"
    assert prepare(tmp_path) == Run(1, False, 0)
    note_begin(tmp_path, 1)
    (job / "focus").mkdir(parents=True)
    assert prepare(tmp_path) == Run(1, True, 0)  # killed
    note_end(tmp_path, 1, "shutdown")
    assert prepare(tmp_path) == next_run(tmp_path, job) == Run(1, True, 0)  # interrupted
    assert next_run(tmp_path, None) == Run(2, False, 0)  # without its job
    note_end(tmp_path, 1, "focus_budget_requests", ended="now", requests=70)
    assert prepare(tmp_path) == Run(2, False, 70)
    assert not job.exists()
    note_begin(tmp_path, 2)
    assert prepare(tmp_path) == Run(3, False, 70)  # killed before its job existed
    note_begin(tmp_path, 3)
    note_end(tmp_path, 3, "finished", failed=True, ended="now", requests=1)
    assert prepare(tmp_path) == Run(3, False, 70)  # its number is not used up
    (job / "focus").mkdir(parents=True)
    assert next_run(tmp_path, job) == Run(3, True, 70)  # with its job, a failed crawl resumes


def goes_on(out: Path, *roots: str, **limits: float | None) -> bool:
    return can_go_on(out, roots, {}, limits)


def test_a_crawl_resumes_with_a_higher_limit(tmp_path: Path) -> None:
    """One that a cost limit ended resumes, with its job and number; the next one counts as if it had never ended."""
    job = tmp_path / ".focus/job"
    note_begin(tmp_path, 1)
    note_end(tmp_path, 1, "finished", ended="now", requests=70)
    note_begin(tmp_path, 2)
    (job / "focus").mkdir(parents=True)
    note_end(tmp_path, 2, "focus_cost_limit", ended="now", requests=30, cost_limit=20.0)
    assert [goes_on(tmp_path, cost=limit) for limit in (0, 10, 20, 20.5)] == [True, False, False, True]
    assert not goes_on(tmp_path, requests=100), "it ended for another limit"
    assert prepare(tmp_path, goes_on=True) == next_run(tmp_path, job) == Run(2, True, 70, True)
    note_going_on(tmp_path)
    assert next_run(tmp_path, job) == Run(2, True, 70, True)
    assert not goes_on(tmp_path, cost=0), "it does, and was interrupted at most"
    assert prepare(tmp_path) == Run(2, True, 70, True)
    note_end(tmp_path, 2, "focus_cost_limit", ended="now", requests=40, cost_limit=50.0)
    assert [goes_on(tmp_path, cost=limit) for limit in (0, 50, 51)] == [True, False, True]
    assert prepare(tmp_path) == Run(3, False, 40)
    assert not goes_on(tmp_path, cost=0), "its job is gone"
    note_begin(tmp_path, 3)
    (job / "focus").mkdir(parents=True)
    note_end(tmp_path, 3, "finished", ended="now", requests=9)
    assert not goes_on(tmp_path, cost=0), "nothing is left"


@pytest.mark.parametrize("name", ["requests", "bytes", "seconds"])
def test_a_crawl_resumes_with_a_larger_budget(tmp_path: Path, name: str) -> None:
    """One that used up a budget resumes with a larger one, or none, for the same URLs; not after the next one failed."""
    note_begin(tmp_path, 1, roots=["u"])
    (tmp_path / ".focus/job/focus").mkdir(parents=True)
    note_end(tmp_path, 1, f"focus_budget_{name}", ended="now", **{"requests": 9, name: 70, "seconds": 70.0})
    budgets: tuple[float | None, ...] = (69, 70, 71, 0, None)
    assert [goes_on(tmp_path, "u", **{name: budget}) for budget in budgets] == [False, False, True, True, True]
    assert not goes_on(tmp_path, "v", **{name: 71})
    assert not can_go_on(tmp_path, ["u"], {}, {"cost": 0}), "no budget is given"
    note_begin(tmp_path, 2, roots=["u"])
    note_end(tmp_path, 2, "finished", failed=True, ended="now", requests=1)
    assert not goes_on(tmp_path, "u", **{name: 71})


def test_the_next_crawl_begins_where_the_last_one_could_resume(tmp_path: Path) -> None:
    """Also if it was interrupted or used up its budget; its job is removed."""
    job = tmp_path / ".focus/job"
    for number, reason in enumerate(("shutdown", "focus_budget_requests"), 1):
        note_begin(tmp_path, number)
        (job / "focus").mkdir(parents=True)
        note_end(tmp_path, number, reason, ended="now", requests=70)
        assert next_run(tmp_path, job)[:2] == (number, True)
        assert prepare(tmp_path, again=True)[:2] == (number + 1, False)
        assert not job.exists()


def test_a_folder_of_an_earlier_version(tmp_path: Path) -> None:
    """Its lines belong to the first crawl, and their paths are valid after the folder was moved."""
    add_line(tmp_path / "manifest.jsonl", {"url": "u", "sha256": "a", "path": "../found/files/a/n.csv", "page": "p"})
    (tmp_path / "files/a").mkdir(parents=True)
    (tmp_path / "files/a/n.csv").write_text("a")
    assert next_run(tmp_path, None).number == 2
    assert FileList(tmp_path, 2).judge("u", "n.csv", "a") == ("same", "files/a/n.csv", True, False, False, False)
    assert relative("/a/files/b/found/files/ab/files") == "files/ab/files"


def ask(out: Path, *pages: str, page: str = "http://a.test/") -> None:
    """Let the first crawl request pages that it saw on another."""
    asked = Asked(out, 1)
    for url in pages:
        asked.note(f"http://a.test/{url}", "page", page)
        asked.note(f"http://a.test/{url}", "page", page)


def bring(out: Path, *urls: str) -> None:
    """Let each named page have a file, one for each time it is named."""
    for number, url in enumerate(urls):
        add_line(out / "manifest.jsonl", line(f"{url}/{number}", f"{url}{number}", 1, page=f"http://a.test/{url}"))


def test_the_order_of_revisits(tmp_path: Path) -> None:
    """First pages that led to several with files, then pages with several files, with one, that led to one, others."""
    Asked(tmp_path, 1).note("http://a.test/", "page")
    Asked(tmp_path, 1).note("http://a.test/x", "other", "http://a.test/news/2/1")
    ask(tmp_path, "list/all", "news/2/1", "news/2/2", "news/2/3")
    ask(tmp_path, "data/1", "data/2", "data/3", page="http://a.test/list/all")
    ask(tmp_path, "text/1", page="http://a.test/news/2/2")
    assert Asked(tmp_path, 1).again() == []
    bring(tmp_path, "data/1", "data/1", "data/1", "data/2", "data/3", "text/1")
    looks = [(url.removeprefix("http://a.test/"), place, turn) for url, place, turn in Asked(tmp_path, 2).again()]
    assert looks == [
        ("", "again/page.leads.?", "lead"), ("list/all", "again/page.leads.list?", "lead"),
        ("data/1", "again/page.files.data?", "file"), ("data/2", "again/page.files.data?", "file"),
        ("data/3", "again/page.files.data?", "file"), ("news/2/2", "again/page.leads.news_0?", "file"),
        ("text/1", "again/page.files.text?", "file"), ("x", "again/other", "other"),
        ("news/2/1", "again/page.none.news_0?", "other"), ("news/2/3", "again/page.none.news_0?", "other"),
    ]  # fmt: skip
    assert len(list(read_lines(tmp_path / ".focus/asked.jsonl"))) == 10


def test_places_of_new_links(tmp_path: Path) -> None:
    """They have a separate place if pages of their section had files, or if many had none; else that on the page."""
    ask(tmp_path, "data/1", "data/2", "data/3", "few/1", *(f"news/{number}" for number in range(20)))
    bring(tmp_path, "data/1", "data/2", "data/3", "few/1", "news/7")
    asked = Asked(tmp_path, 2)
    places = {
        name: asked.place_of_new(f"http://a.test/{name}") for name in ("data/4", "few/2", "news/20", "new/1", "[")
    }
    assert places == {"data/4": "again/page.new.data?", "few/2": "", "news/20": "again/dull", "new/1": "", "[": ""}
    assert asked.place_of_new("http://[") == ""
    bring(tmp_path, "news/8")
    assert Asked(tmp_path, 2).place_of_new("http://a.test/news/20") == ""
    assert Asked(tmp_path, 1).place_of_new("http://a.test/data/4") == ""
