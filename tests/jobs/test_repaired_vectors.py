"""Stored crawls whose links have vectors: wrong ones are found, and without a policy the crawl resumes."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from scrapy_focus.jobs.doctor.check import check_job
from scrapy_focus.jobs.doctor.cures import repair_job
from tests.jobs.walks import Divider, Walk, World, finish, reachable

if TYPE_CHECKING:
    from pathlib import Path


def begun(world: World, rng: random.Random) -> Walk:
    """Crawl some pages, and stop."""
    walk = Walk(world.open(), rng)
    for number, _ in enumerate(walk.steps()):
        if number == 60:
            break
    walk.crawl.checkpoint()
    walk.crawl.close()
    return walk


def change(world: World, statement: str) -> None:
    """Change the file of the frontier."""
    with closing(sqlite3.connect(world.folder / "focus/frontier.sqlite")) as database, database:
        database.execute(statement)


def test_a_crawl_with_vectors_resumes_without_its_policy(tmp_path: Path) -> None:
    """All links are queued without their vectors, and every page is fetched in the end."""
    world, rng = World(tmp_path, Divider), random.Random(0)
    walk = begun(world, rng)
    assert check_job(world.folder, say=str).is_well
    change(world, "DELETE FROM notes WHERE name = 'policy'")
    checkup = repair_job(world.folder, say=str)
    assert checkup.is_well
    assert "dropped the policy" in checkup.done[0]
    crawl = world.open()
    crawl.frontier.check()
    fetched = walk.fetched + finish(crawl, rng).fetched
    crawl.close()
    assert {*fetched} >= reachable()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE counters SET value = 77 WHERE name = 'width'",
        "UPDATE counters SET value = 'x' WHERE name = 'width'",
        "UPDATE links SET memo = x'0102' WHERE row = (SELECT max(row) FROM links)",
    ],
)
def test_vectors_of_another_width_are_found(statement: str, tmp_path: Path) -> None:
    """The frontier cannot be opened with them, and the message says so."""
    world = World(tmp_path, Divider)
    begun(world, random.Random(0))
    change(world, statement)
    checkup = repair_job(world.folder, say=str)
    assert "the links are inconsistent" in checkup.found[0]
    assert not checkup.done
