"""Several workers are as polite as one process: each host is fetched by one of them, in the server's log."""

from __future__ import annotations

import time
from contextlib import ExitStack
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

from crawls import Follower
from mocksite import MockSite

from tests.cluster.test_worker_ends import Leaves
from tests.cluster.workers import share, share_among

if TYPE_CHECKING:
    from pathlib import Path

DELAY = 0.2
POLITE = {"DOWNLOAD_DELAY": DELAY, "DOWNLOAD_DELAY_JITTER": 0, "ROBOTSTXT_OBEY": True}


def agents(site: MockSite) -> list[str]:
    """Return who asked a site, one after the other, without repeats."""
    return [agent for agent, _ in groupby(seen.headers["user-agent"] for seen in site.log)]


def check_pace(site: MockSite, begin: float) -> None:
    """Fail if more requests arrived since ``begin`` than the delay allows; on a slow machine they are only later."""
    at = [seen.at - begin for seen in site.log]
    assert all(later >= (i - 1) * DELAY for i, later in enumerate(at)), [b - a for a, b in pairwise(at)]


def test_each_host_has_one_downloader(tmp_path: Path) -> None:
    """Delays, connections and robots.txt of a host are those of one worker."""
    with ExitStack() as stack:
        sites = [stack.enter_context(MockSite(f"127.0.0.{i}")) for i in range(1, 6)]
        given = {"seeds": [site.url("/page/0/9") for site in sites]}
        jobs: list[Any] = [(Follower, {**POLITE, "USER_AGENT": f"worker {i}"}, given) for i in range(3)]
        begin = time.monotonic()
        result = share_among(jobs, tmp_path)
        for site in sites:
            assert len(agents(site)) == 1
            assert [seen.path for seen in site.log].count("/robots.txt") == 1
            assert len(site.log) == 10
            check_pace(site, begin)
        assert {agent for site in sites for agent in agents(site)} == {"worker 0", "worker 1", "worker 2"}
    assert result.reasons == {"finished"}


def test_a_host_changes_hands_after_the_delay(tmp_path: Path) -> None:
    """If its worker leaves, another one fetches it, and not at once."""
    with MockSite("127.0.0.1") as site:
        given = {"seeds": [site.url("/page/0/9")]}
        jobs: list[Any] = [
            (Leaves, {**POLITE, "USER_AGENT": f"worker {i}"}, {**given, "after": 3}) for i in range(2)
        ] + [(Leaves, {**POLITE, "USER_AGENT": "worker 2"}, given)]
        begin = time.monotonic()
        share_among(jobs, tmp_path)
        assert len(agents(site)) >= 2
        changes = [b.at - a.at for a, b in pairwise(site.log) if a.headers["user-agent"] != b.headers["user-agent"]]
        assert min(changes) >= DELAY
        check_pace(site, begin)


def test_autothrottle_and_all_delays_rest(tmp_path: Path) -> None:
    """A host whose worker went rests for as long as any delay may be."""
    with MockSite("127.0.0.1") as site:
        settings = {"AUTOTHROTTLE_ENABLED": True, "AUTOTHROTTLE_MAX_DELAY": 3.0}
        result = share(Follower, tmp_path, settings, seeds=[site.url("/ok")])
    hosts = result.leader._hosts
    assert hosts.rest == 3.0
    assert hosts.linger >= 30.0
