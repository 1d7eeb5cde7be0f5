"""``focus-status --cluster`` and ``focus-stop``: their output, and what they refuse; Ray is in test_ray_kills."""

from __future__ import annotations

from collections import Counter

import pytest

from scrapy_focus import Budget, Crawl
from scrapy_focus.cluster.leader import Leader
from scrapy_focus.cluster.messages import Exchange, Hello
from scrapy_focus.commands.status import StatusCommand, show_cluster
from scrapy_focus.commands.stop import StopCommand, _chosen
from scrapy_focus.core.errors import ConfigError
from scrapy_focus.frontiers.memory import memory_frontier
from scrapy_focus.lab.checks.policy import _Site
from scrapy_focus.policies.orderings import BreadthFirst


def status_of(worker: str) -> dict[str, object]:
    """Return the status of a leader with one worker that has four leases."""
    crawl = Crawl(BreadthFirst(), frontier=memory_frontier, budget=Budget(requests=500), is_shared=True)
    crawl.add([_Site(50).link(k) for k in range(20)])
    leader = Leader(crawl, clock=lambda: 0.0)
    session = leader.join(Hello(worker, {}, [], [], 0)).session
    leader.exchange(Exchange(worker, session, want=4))
    return leader.status()


def test_a_crawl_is_shown_with_its_workers_and_its_budget(capsys: pytest.CaptureFixture[str]) -> None:
    """All of it is visible text, whatever the name of a machine."""
    show_cluster({"found": status_of("first\x1b[2J-7"), "lost": {"error": "gone\nfor good"}})
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "found"
    labels = Counter(line.split(maxsplit=1)[0] for line in lines)
    assert labels["workers"] == labels["requests"] == labels["lost"] - 1 == 1  # a label, and the name of the other one
    said = "\n".join(lines)
    assert "state       runs" in said
    assert "of 500, " in said
    assert "in flight   4 of at most" in said
    assert "first\\x1b[2J-7: 4 leases, 0 of them not yet collected" in said
    assert "its leader does not answer: gone\\nfor good" in said


def test_the_crawl_to_end_is_named_where_it_is_not_clear() -> None:
    assert _chosen([], ["one"], "auto") == "one"
    assert _chosen(["two"], ["one", "two"], "auto") == "two"
    with pytest.raises(ConfigError, match="there are one, two"):
        _chosen([], ["one", "two"], "auto")
    with pytest.raises(ConfigError, match=r"no crawl 'three' runs .* there is one"):
        _chosen(["three"], ["one"], "auto")
    with pytest.raises(ConfigError, match="none is running"):
        _chosen([], [], "auto")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (StatusCommand, ["focus-status"]),
        (StatusCommand, ["focus-status", "job", "--cluster"]),
        (StopCommand, ["focus-stop", "a", "b"]),
    ],
)
def test_arguments_that_cannot_be_meant_end_a_command_with_status_2(
    command: type, words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from scrapy import cmdline

    found = cmdline._get_commands_dict
    monkeypatch.setattr(cmdline, "_get_commands_dict", lambda *args: {**found(*args), words[0]: command()})
    with pytest.raises(SystemExit) as ended:
        cmdline.execute(["scrapy", *words])
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("Error: ")
