"""A leader that finds no room on its disk, in a whole crawl."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest
from crawls import Follower
from mocksite import tree_paths

from tests.cluster.workers import fetched, share

if TYPE_CHECKING:
    from pathlib import Path

    from mocksite import MockSite

PAGES = 60
EVENTS = 150  # that find room


@pytest.mark.slow
def test_a_full_disk_ends_the_crawl_of_all_workers(
    site: MockSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each stops with ``focus_storage`` and the reason; with room again the crawl resumes, and nothing is missing."""
    write, room = os.write, [EVENTS]

    def written(file: int, content: bytes) -> int:
        if any(os.path.samestat(os.fstat(file), path.stat()) for path in (tmp_path / "job/focus").glob("journal.*")):
            room[0] -= 1
            if room[0] < 0:
                raise OSError(errno.ENOSPC, "No space left on device")
        return write(file, content)

    monkeypatch.setattr("os.write", written)
    stopped = share(Follower, tmp_path, seeds=[site.url(f"/page/0/{PAGES}")], checks=False)
    monkeypatch.undo()
    assert stopped.reasons == {"focus_storage"}
    for worker in stopped.workers:
        assert "No space left" in worker.stats["focus/ending_sentence"]
    assert len(stopped.logged("scrapy_focus stops the crawl: the leader of")) == 2
    assert not stopped.logged("no answer from the leader")
    assert stopped.leader.is_closed
    before = set(fetched([site]))
    assert 10 < len(before) < PAGES
    monkeypatch.setattr(
        "scrapy_focus.making.linger", lambda *_: 0.5
    )  # hosts of workers that do not return rest so long
    again = share(Follower, tmp_path, {"FOCUS_CLUSTER_LEASE": 2}, seeds=[site.url(f"/page/0/{PAGES}")])
    assert set(fetched([site])) == {site.url(path) for path in tree_paths(PAGES)}
    assert again.crawl.counts["outcomes"] == again.crawl.rewards == PAGES
