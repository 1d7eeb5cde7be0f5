"""What works without Ray: the package imports, and explains what is wrong with a cluster."""

from __future__ import annotations

import random
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from scrapy_focus.cluster.ray import RayEngine, _explained, check_address
from scrapy_focus.core.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

WITHOUT = """
import sys

class Nowhere:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "ray":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Nowhere())
import scrapy_focus, scrapy_focus.making
from importlib.metadata import entry_points
for command in entry_points(group="scrapy.commands"):
    if command.module.startswith("scrapy_focus."):
        __import__(command.module)
"""
SAID = 'a crawl on several machines needs Ray: pip install "scrapy-focus[cluster]"'
CRAWL = """
from scrapy import Spider
from scrapy.crawler import AsyncCrawlerProcess

process = AsyncCrawlerProcess({
    "TWISTED_REACTOR_ENABLED": False, "REMOTE_CONTROL_ENABLED": False, "TELNETCONSOLE_ENABLED": False,
    "ADDONS": {"scrapy_focus.Addon": 500}, "FOCUS_CLUSTER": "auto", "JOBDIR": sys.argv[1],
})
process.crawl(type("Quiet", (Spider,), {"name": "quiet"}))
process.start()
"""


def test_the_package_imports_without_ray_and_a_crawl_in_a_cluster_names_what_to_install(tmp_path: Path) -> None:
    """Nothing is written then."""
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT + CRAWL, str(tmp_path / "job")], capture_output=True, text=True, check=False
    )
    assert SAID in run.stderr
    assert not (tmp_path / "job" / "focus").exists()


@pytest.mark.slow
@pytest.mark.parametrize("words", [["stop"], ["stop", "found"], ["status", "--cluster"]])
def test_a_command_about_a_cluster_names_what_to_install(words: list[str], tmp_path: Path) -> None:
    """One line, and no traceback."""
    command = f"from scrapy_focus.__main__ import main\nmain({words})"
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT + command], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert run.returncode == 2
    assert run.stderr.count("\n") == 1
    assert SAID in run.stderr


@pytest.mark.parametrize(
    "address", ["", "head", "head:", ":6379", "head:port", "ray://head:10001", "http://head:6379", "AUTO"]
)
def test_an_address_that_is_none_is_refused_with_an_example(address: str) -> None:
    with pytest.raises(ConfigError, match=r"it takes 'auto' .* as in 'head.example:6379'"):
        RayEngine(address, "crawl")


@pytest.mark.parametrize("address", ["auto", "head.example:6379", "10.0.0.1:1", "[::1]:6379"])
def test_an_address_is_accepted(address: str) -> None:
    check_address(address)


def test_a_plan_that_ray_would_forget_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """It keeps small plans for as long as the leader lives, and large ones only as long as their sender."""
    monkeypatch.setattr("scrapy_focus.core.extras.find_spec", lambda name: name)
    words = [f"{random.getrandbits(64):x}" for _ in range(20_000)]
    RayEngine("auto", "crawl", {"words": words[:2000]})
    with pytest.raises(ConfigError, match=r"take [\d,]+ bytes, compressed; Ray keeps at most 90,000"):
        RayEngine("auto", "crawl", {"words": words})


@pytest.mark.parametrize(
    ("cause", "is_final", "said"),
    [
        ("RPC error: InvalidAuthToken: Authentication token is missing", True, "copy ~/.ray/auth_token of its head"),
        ("Version mismatch: The cluster was started with Ray 2.50.0", True, "the same versions of Ray and Python"),
        ("No node info found matching attributes: '10.0.0.2'", True, "run ray start --address head:6379 --num-cpus 0"),
        ("RPC error: deadline exceeded", False, "the cluster at head:6379 cannot be reached: Failed to connect"),
    ],
)
def test_what_ray_says_is_said_with_what_to_do(cause: str, is_final: bool, said: str) -> None:
    """Ray gives the reason as the cause of an error without a message."""
    error = ConnectionError("Failed to connect to Ray cluster at head:6379")
    error.__cause__ = RuntimeError(cause)
    found = _explained(error, "head:6379")
    assert said in str(found)
    assert isinstance(found, ConfigError) == is_final
