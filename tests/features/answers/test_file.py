"""Answers that are kept until their page is done, and no longer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from scrapy_focus import State
from scrapy_focus.features.answers.file import KeptAnswers

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

A, B = ("GET", "http://x/a", b""), ("GET", "http://x/b", b"")


def opened(path: Path, **states: State) -> KeptAnswers:
    """Return the responses in a file, for pages that are queued unless given otherwise (``_7=State.FETCHED``)."""

    def known(keys: Sequence[int]) -> list[State]:
        return [states.get(f"_{key}", State.WAITING) for key in keys]

    return KeptAnswers(path, known)


def test_an_answer_is_there_until_its_page_is_done(tmp_path: Path) -> None:
    """After a kill each response of an unfinished page is returned once, in every run until the page is done."""
    first = opened(tmp_path / "answers")
    for key in (1, 2, 3):
        first.keep(key, A, ("text", key))
    first.forget(2)
    assert first.take(1, A) is None, "it arrived in this run"
    for _ in range(2):
        later = opened(tmp_path / "answers")
        assert later.take(2, A) is None
        assert later.take(1, B) is None
        assert later.take(1, A) == ("text", 1)
        assert later.take(1, A) is None
    later.forget(1)
    last = opened(tmp_path / "answers")
    assert (last.take(1, A), last.take(3, A)) == (None, ("text", 3))


def test_what_was_done_before_it_was_taken_is_gone(tmp_path: Path) -> None:
    """A page that was fetched without its stored response, and is queued again, is requested."""
    opened(tmp_path / "answers").keep(1, A, ("old",))
    later = opened(tmp_path / "answers")
    later.keep(2, A, ("other",))
    later.forget(1)
    assert later.take(1, A) is None


def test_the_last_answer_counts(tmp_path: Path) -> None:
    """If a request was sent once more, its last response is used; a redirect has a response for each step."""
    first = opened(tmp_path / "answers")
    for answer in (503, 200):
        first.keep(1, A, (answer,))
    first.keep(1, B, (301,))
    later = opened(tmp_path / "answers")
    assert (later.take(1, A), later.take(1, B)) == ((200,), (301,))


@pytest.mark.parametrize("state", [State.FETCHED, State.NEW, State.GIVEN_UP])
def test_only_links_that_wait_need_one(tmp_path: Path, state: State) -> None:
    """What the crawl concluded just before a kill is not taken, though it was not forgotten yet."""
    first = opened(tmp_path / "answers")
    for key in (7, 8):
        first.keep(key, A, (key,))
    later = opened(tmp_path / "answers", _7=state)
    assert (later.take(7, A), later.take(8, A)) == (None, (8,))


def test_the_file_stays_small(tmp_path: Path) -> None:
    """It is emptied when nothing is queued, has twice the needed size plus 16 MB at most, and goes at the end."""
    path, body = tmp_path / "answers", b"x" * 1_000_000
    answers = opened(path)
    answers.keep(-1, A, (body,))
    answers.forget(-1)
    assert path.stat().st_size == 0
    answers.keep(-1, A, ("stays",))
    largest = 0
    for key in range(100):
        answers.keep(key, A, (body,))
        if key:
            answers.forget(key - 1)
        largest = max(largest, path.stat().st_size)
    assert 16e6 < largest < 21e6
    later = opened(path)
    assert (later.take(-1, A), later.take(99, A), later.take(98, A)) == (("stays",), (body,), None)
    later.close()
    assert path.exists()
    for key in (-1, 99):
        answers.forget(key)
    answers.close()
    assert not path.exists()


@pytest.mark.parametrize("damage", [b"", b"\0" * 100, b"no record at all", None])
def test_what_is_cut_or_damaged_is_asked_for_again(tmp_path: Path, damage: bytes | None) -> None:
    """The whole responses before the damage are available, and new ones can be added."""
    path = tmp_path / "answers"
    first = opened(path)
    first.keep(1, A, ("one",))
    size = path.stat().st_size
    first.keep(2, A, ("two",))
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] if damage is None else whole[:size] + damage)
    later = opened(path)
    assert (later.take(1, A), later.take(2, A)) == (("one",), None)
    later.keep(3, A, ("three",))
    last: Any = opened(path)
    assert (last.take(1, A), last.take(3, A)) == (("one",), ("three",))
