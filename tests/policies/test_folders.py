"""What the pages of each folder led to, as a feature of the links into it."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from scrapy_focus import Crawl, Link, memory_frontier
from scrapy_focus.core.types import Outcome
from scrapy_focus.goals.files import FilesGoal
from scrapy_focus.policies.branching import BranchingBandit
from scrapy_focus.policies.branching.features import ANY, WIDTH
from scrapy_focus.policies.branching.folders import KEPT, Folders

PLACE = "html/body/ul/li/a"


def read(folders: Folders, path: str) -> list[int]:
    row = np.zeros((1, WIDTH), np.uint16)
    return folders.read(folders.append(row, [path]))[0, KEPT:].tolist()  # type: ignore[no-any-return]


def note(folders: Folders, path: str, *, led: bool, times: int = 1) -> None:
    for _ in range(times):
        folders.note(folders.numbers([path])[0], led=led)


def test_a_folder_is_told_apart_by_its_pages_and_by_what_they_led_to() -> None:
    folders = Folders()
    note(folders, "tags/red", led=False, times=12)
    note(folders, "data/a.html", led=True, times=12)
    tags, data, unknown = (read(folders, path) for path in ("tags/blue", "data/b.html", "news/c.html"))
    assert len({tags[0], data[0], unknown[0]}) == len({tags[1], data[1], unknown[1]}) == 3
    assert read(folders, "tags/green/") == tags, "a slash at the end belongs to the name"
    assert read(folders, "tags/blue?page=7") == tags


def test_the_first_folder_counts_for_all_below_it() -> None:
    folders = Folders()
    note(folders, "data/2023/a.html", led=True, times=3)
    own, first = read(folders, "data/2024/b.html")
    assert own == read(folders, "news/c.html")[0]
    assert first == read(folders, "data/2023/a.html")[1] != read(folders, "news/c.html")[1]


@pytest.mark.parametrize("path", ["", "index.html", "?q=1", "/", "//", "a//b", "ä/ö", "x" * 5000])
def test_any_path_has_folders(path: str) -> None:
    folders = Folders()
    note(folders, path, led=True)
    assert read(folders, path) != read(Folders(), path)


def test_a_link_with_more_features_than_there_is_room_keeps_the_one_that_all_have() -> None:
    full = np.arange(1, WIDTH + 1, dtype=np.uint16)[None]
    few = np.concatenate([np.zeros((1, 2), np.uint16), full[:, : WIDTH - 2]], axis=1)
    kept = Folders().append(np.concatenate([full, few]), ["a/b", "a/b"])[:, :KEPT]
    assert kept[0].tolist() == [ANY, *range(4, WIDTH + 1)]
    assert kept[1].tolist() == list(range(1, KEPT + 1))


def test_records_survive_a_stop() -> None:
    folders = Folders()
    note(folders, "tags/red", led=False, times=4)
    note(folders, "data/a.html", led=True)
    again = pickle.loads(pickle.dumps(folders))
    for path in ("tags/blue", "data/b.html", "news/c.html"):
        assert read(again, path) == read(folders, path)
    note(again, "tags/red", led=False)
    assert read(again, "tags/red") != read(folders, "tags/red")


def crawl_tags(policy: BranchingBandit, requests: int) -> tuple[int, int]:
    """Crawl a home page whose one list links to 200 tags, which lead nowhere, and to 200 pages with a file each; return
    how many pages of both kinds were fetched.
    """
    crawl = Crawl(policy, goal=FilesGoal(types=["text/csv"]), frontier=memory_frontier, seed=0)
    keys = iter(range(10_000))
    crawl.add([Link("http://a.test/", next(keys), "a.test")])
    names = [f"{'tags' if number % 2 else 'texts'}/{number // 2:03}" for number in range(400)]
    fetched = {"tags": 0, "texts": 0}
    for _ in range(requests):
        pick = crawl.next()
        assert pick is not None
        path = pick.url.removeprefix("http://a.test/")
        links = []
        if not path:
            links = [Link(f"http://a.test/{name}", next(keys), "a.test", 1, "more", PLACE) for name in names]
        elif not path.endswith(".csv"):
            folder = path.partition("/")[0]
            fetched[folder] += 1
            if folder == "texts":
                links = [Link(f"http://a.test/files/{path[-3:]}.csv", next(keys), "a.test", 2, "file", f"{PLACE}/b")]
        crawl.sent(pick.id)
        crawl.report(Outcome(pick, status=200, mime="text/csv" if path.endswith(".csv") else "text/html"), links)
    return fetched["tags"], fetched["texts"]


def test_a_folder_that_never_pays_comes_last_though_its_links_share_an_arm() -> None:
    tags, texts = crawl_tags(BranchingBandit(targets=["text/csv"]), 300)
    assert texts > 100
    assert tags < texts / 4
