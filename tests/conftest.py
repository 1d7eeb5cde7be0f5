"""What holds for all tests."""

from __future__ import annotations

import os
import signal
from collections import defaultdict
from typing import TYPE_CHECKING
from zlib import crc32

import pytest
from hypothesis import settings

from tests.examples import n_examples

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

#: Files that take longest. They come first, so that at the end of a run no process is left alone with one of them.
FIRST = (
    "hostile/test_hostile.py", "scrapy/test_find_commands.py", "scrapy/test_kills.py", "scrapy/test_put_off_hosts.py",
    "scrapy/test_limits.py", "scrapy/test_endings.py", "scrapy/test_topic_spider.py", "compare/test_compare.py",
    "scrapy/test_report_page.py", "scrapy/test_storage.py", "scrapy/test_record_command.py", "scrapy/test_crawl_again.py",
    "cluster/test_worker_ends.py", "cluster/test_worker_rules.py", "scrapy/test_request_priority.py", "docs/test_build.py",
    "scrapy/test_reactor.py", "scrapy/test_soak.py", "scrapy/test_compare_command.py", "features/answers/test_kill_safe_fetch.py",
    "policies/test_rendering_choices.py", "policies/test_processes.py", "policies/test_contract.py", "docs/test_snippets.py",
)  # fmt: skip


# Tests run side by side, and threads of linear algebra that wait for each other would take the cores from others. NumPy
# reads this when it is imported.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

# No deadline, as an example may meet a machine that stands still for seconds.
settings.register_profile("unhurried", deadline=None, max_examples=n_examples(100))
settings.load_profile("unhurried")


def pytest_configure() -> None:
    """Let Ctrl-C reach what tests start, where it is ignored: a shell does that to what it runs in the background, and
    whatever is started there inherits it.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files first that take longest, and leave the others in their order; mark the cases beyond ``few``."""
    items.sort(key=lambda item: _place(item.path.as_posix()))
    cases: dict[tuple[str, int], list[pytest.Item]] = defaultdict(list)
    for item in items:
        if (few := item.get_closest_marker("few")) is not None and item.get_closest_marker("slow") is None:
            cases[item.nodeid.partition("[")[0], few.args[0]].append(item)
    for (_, n), same in cases.items():
        for item in _beyond(n, same):
            item.add_marker(pytest.mark.slow)


def _beyond(n: int, cases: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Return all but ``n`` cases of a test. Checksums of their names choose: the same ones in every process, and not
    all with the same value of one parameter.
    """
    return sorted(cases, key=lambda item: crc32(item.name.encode()))[n:]


def _place(path: str) -> int:
    return next((place for place, name in enumerate(FIRST) if path.endswith(name)), len(FIRST))


#: What a file says some of whose tests are slow; ``scrapy/livecrawls.py`` has the rule for ``addon``.
SLOW = ("mark.slow", "mark.few", '"addon", [False, True]')
ALONE = ("mark.alone",)
#: What a file says that has tests for these expressions; no other is imported, as most of the time would go there.
ONLY = {"alone": ALONE, "alone and not slow": ALONE, "slow": SLOW, "slow or hypothesis": (*SLOW, "hypothesis")}


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file whose tests are all deselected, where its text shows that."""
    if collection_path.suffix != ".py":
        return None
    marked = config.option.markexpr
    if marked in ONLY:
        text = collection_path.read_text(encoding="utf-8")
        return not any(word in text for word in ONLY[marked]) or None
    is_named = any(collection_path.match(name.partition("::")[0]) for name in config.args)
    if marked.startswith("not slow") and not is_named:
        return "\npytestmark = pytest.mark.slow\n" in collection_path.read_text(encoding="utf-8") or None
    return None
