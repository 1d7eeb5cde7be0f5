"""Commands in forks do what they do when a user starts them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import forked
import pytest
from forked import Forked

import scrapy_focus.commands
import scrapy_focus.finders
import scrapy_focus.lab.commands
import scrapy_focus.lab.spiders
import scrapy_focus.spiders
from tests.made import HANG, modules_of

if TYPE_CHECKING:
    from pathlib import Path

SHOW = """
import atexit, json, os, sys
atexit.register(lambda: print("over"))
print(json.dumps([sys.argv, os.getcwd(), os.environ.get("MINE"), os.environ.get("HOME"), sys.path[0], sys.stdin.read(), __name__]))
print("wrong", file=sys.stderr)
"""
PACKAGES = (
    scrapy_focus.commands,
    scrapy_focus.finders,
    scrapy_focus.lab.commands,
    scrapy_focus.lab.spiders,
    scrapy_focus.spiders,
)
FIRST = """
import importlib, os, sys
import numpy, scipy.sparse, scrapy.cmdline, sklearn.linear_model
for name in sys.argv[1:]:
    if (pid := os.fork()) == 0:
        importlib.import_module(name)
        os._exit(0)
    if os.waitpid(pid, 0)[1]:
        sys.exit(f"{name} cannot be imported first")
"""


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("pass", 0),
        ("raise SystemExit", 0),
        ("raise SystemExit(3)", 3),
        ("raise SystemExit(True)", 1),
        ("raise SystemExit(-1)", 255),
        ("raise SystemExit('no')", 1),
        ("1 / 0", 1),
        ("raise KeyboardInterrupt", -signal.SIGINT),
        ("import os; os.kill(os.getpid(), 9)", -signal.SIGKILL),
        ("import os; os.kill(os.getpid(), 2)", -signal.SIGINT),
        ("import threading, time; threading.Thread(target=lambda: [time.sleep(0.1), print('late')]).start()", 0),
        (SHOW, 0),
    ],
)
def test_a_fork_is_like_a_process(code: str, status: int, tmp_path: Path) -> None:
    """It has the same arguments, folder, environment and files, prints the same, and ends with the same status."""
    command = [sys.executable, "-c", code, "a", "-b"]
    env = {name: value for name, value in os.environ.items() if name != "HOME"} | {"MINE": "x"}
    here, there = (
        run(command, cwd=tmp_path, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=HANG)
        for run in (forked.run, subprocess.run)
    )
    assert here.returncode == there.returncode == status
    assert here.stdout == there.stdout
    assert here.stderr.splitlines()[-1:] == there.stderr.splitlines()[-1:]


def test_a_fork_can_be_waited_for_and_killed() -> None:
    """Several may run at a time; nothing is known of how one ends before it does."""
    both = [Forked([sys.executable, "-c", "input()"], stdin=os.pipe()[0]) for _ in range(2)]
    assert both[0].pid != both[1].pid
    with pytest.raises(subprocess.TimeoutExpired):
        both[0].wait(0.05)
    assert both[0].poll() is None
    for each in both:
        each.kill()
        assert each.wait(HANG) == each.poll() == -signal.SIGKILL


@pytest.mark.slow
def test_each_command_and_spider_can_be_imported_first() -> None:
    """Each imports what it needs, whatever is imported before it."""
    names = [module.__name__ for package in PACKAGES for module in modules_of(package)]
    done = subprocess.run([sys.executable, "-c", FIRST, *names], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
