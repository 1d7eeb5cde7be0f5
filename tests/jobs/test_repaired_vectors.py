"""Stored crawls whose links have vectors: what is wrong with these is found and made well, and the crawl goes on."""

from __future__ import annotations

import random
import sqlite3
from typing import TYPE_CHECKING

import pytest

from scrapy_focus.jobs.doctor.repair import check_job
from tests.jobs.walks import Divider, Walk, World, finish, reachable

if TYPE_CHECKING:
    from pathlib import Path

DAMAGE = {
    "UPDATE counters SET value = 77 WHERE name = 'width'": "vectors of width 77, not 3",
    "UPDATE counters SET value = 'x' WHERE name = 'width'": "vectors of width x, not 3",
    "UPDATE links SET memo = x'0102' WHERE row = (SELECT max(row) FROM links)": "1 link is stored with an impossible memo",
    "DELETE FROM notes WHERE name = 'policy'": "there is no policy, and links wait in its arms",
}


@pytest.mark.parametrize("sql", DAMAGE)
def test_a_crawl_with_vectors_is_made_well(sql: str, tmp_path: Path) -> None:
    """Whatever is wrong with them, every page is fetched in the end."""
    world, rng = World(tmp_path, Divider), random.Random(0)
    crawl = world.open()
    walk = Walk(crawl, rng)
    for number, _ in enumerate(walk.steps()):
        if number == 60:
            break
    crawl.checkpoint()
    crawl.close()
    assert check_job(world.folder).is_well
    with sqlite3.connect(world.folder / "focus/frontier.sqlite") as database:
        database.execute(sql)
    checkup = check_job(world.folder, fix=True, say=lambda sentence: None)
    assert any(DAMAGE[sql] in what for what in checkup.found)
    assert checkup.is_well
    crawl = world.open()
    crawl.frontier.check()
    fetched = walk.fetched + finish(crawl, rng).fetched
    crawl.close()
    assert {*fetched} >= reachable()
