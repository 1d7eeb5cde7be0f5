"""Runs small crawls with Scrapy's scheduler, with ours and with our add-on, and compares what they did.

Each case shows one thing that a project may expect of a scheduler: priorities, start requests, dupefilters, idle
spiders, closing, several crawlers, requests of all kinds, with and without ``JOBDIR``. What differs must be in
``BY_DESIGN``, with its reason; any other difference is a failure. The order of requests is free. Run it before a
release::

    python benchmarks/scheduler_contract.py [--modes scheduler,addon] [--output FILE] [CASE...]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

_LIMIT = 120  # seconds for one crawl
_SHOWN = 200  # characters of a value
#: What is not compared: how long it took, what was logged, counts of what was in flight when a crawl was closed.
_FREE = {"seconds", "log", "stats", "lag", "rate", "rss_mb", "slow_gap"}

_IN_FLIGHT = "other requests are in flight when the crawl is closed or paused"
_EMPTY = "scheduler_empty is sent whenever nothing may be sent now, also while links wait for a host"
_DROPPED = f"{_EMPTY}; with the add-on known links are dropped before any signal of theirs"
_QUEUES = "Scrapy's queues and its dupefilter are not there, and settings of theirs do nothing"
_MOST = "no more is handed out than can start, and little while little is known (FOCUS_MOST_OUT)"
_META = "meta has the id of a pick, too"
#: Differences that are intended: by case, what may differ, and why.
BY_DESIGN: dict[str, tuple[set[str], str]] = {
    "async_long_callback": ({"lags"}, "requests of a callback that runs on are placed when it ends, or after five seconds"),
    "close_in_callback": ({"items"}, _IN_FLIGHT),
    "close_itemcount": ({"items", "requests"}, _IN_FLIGHT),
    "close_pagecount": ({"items", "requests"}, _IN_FLIGHT),
    "close_pagecount_no_item": ({"requests"}, _IN_FLIGHT),
    "concurrency": ({"most"}, "Scrapy 2.19 sends more than CONCURRENT_REQUESTS_PER_DOMAIN with asyncio"),
    "dedup_seen_by_outer_middleware": ({"mw"}, _DROPPED),
    "dupefilter_debug": ({"lines"}, "the log has another name"),
    "errbacks": ({"items"}, _META),
    "frontier_of_hosts": ({"most"}, _MOST),
    "meta_as_item": ({"first", "header"}, _META),
    "meta_mutated_later": ({"items"}, "a request is stored as a record: response.request is another object"),
    "meta_visible": ({"meta_keys", "meta_of_last", "values"}, _META),
    "pause_unpause": ({"at_unpause"}, _IN_FLIGHT),
    "per_ip": ({"items", "most", "reason"}, "Scrapy's own priority queue refuses CONCURRENT_REQUESTS_PER_IP"),
    "periodic_log": ({"lines"}, _IN_FLIGHT),
    "queue_settings_said": ({"items", "reason"}, _QUEUES),
    "scheduler_api": ({"api", "est", "items"}, _QUEUES),
    "scheduler_empty_docs": ({"empties", "starts_at"}, _EMPTY),
    "signals_of_tree": ({"signals"}, _DROPPED),
    "splash_like": ({"cls"}, "the policy decides which page comes second"),
    "start_dupes_filtered": ({"signals"}, _DROPPED),
    "start_infinite": ({"requests"}, _IN_FLIGHT),
    "start_lazy_pull": ({"pulled_when_sent"}, "one start request after the other is placed before the next is chosen"),
    "stats_keys": ({"keys"}, "there are counts of ours, too"),
    "stats_keys_jobdir": ({"keys"}, "there are counts of ours, too"),
    "stop_by_crawler": ({"requests"}, _IN_FLIGHT),
}  # fmt: skip


def run(case: str, mode: str, folder: Path) -> dict[str, Any]:
    """Run a case in a process of its own, and return what was seen, as a mapping that can be compared."""
    here = Path(__file__).parent
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(here), str(here.parent)])}
    command = [sys.executable, "-m", "contract.cases", case, mode, str(folder)]
    folder.mkdir(parents=True)
    try:
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=_LIMIT, check=False)
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        return {"broken": f"no end in {_LIMIT} s"}
    except (IndexError, ValueError):
        return {"broken": done.stderr[-_SHOWN:]}
    return found


def plain(value: Any) -> str:
    """Return a value as text in which neither the order of lists nor the port of the site shows."""
    ordered = sorted(value, key=str) if isinstance(value, list) else value
    text = json.dumps(ordered, sort_keys=True)
    return re.sub(r"127\.0\.0\.1:\d+", "HOST", text)


def differences(stock: dict[str, Any], ours: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Return what differs, each with its two values."""
    names = (stock.keys() | ours.keys()) - _FREE
    pairs = {name: (plain(stock.get(name)), plain(ours.get(name))) for name in sorted(names)}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def names_of_cases() -> list[str]:
    """Return the cases, in the order of their file."""
    text = (Path(__file__).parent / "contract" / "cases.py").read_text(encoding="utf-8")
    return re.findall(r"^@case\ndef (\w+)", text, re.MULTILINE)


def main() -> int:
    """Compare, and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("cases", nargs="*", help="(default: all)")
    parser.add_argument("--modes", default="scheduler,addon", help="(default: %(default)s)")
    parser.add_argument("--output", type=Path, help="where to write all that was seen, as JSON")
    options = parser.parse_args()
    modes = options.modes.split(",")
    cases = options.cases or names_of_cases()
    seen: dict[str, dict[str, dict[str, Any]]] = {}
    unexpected = 0
    counts = {mode: {"equal": 0, "by design": 0, "unexpected": 0} for mode in modes}
    with tempfile.TemporaryDirectory() as name:
        for case in cases:
            results = seen[case] = {mode: run(case, mode, Path(name, case, mode)) for mode in ("stock", *modes)}
            for mode in modes:
                found = differences(results["stock"], results[mode])
                allowed, reason = BY_DESIGN.get(case, (set(), ""))
                wrong = {key: pair for key, pair in found.items() if key not in allowed}
                kind = "unexpected" if wrong else "by design" if found else "equal"
                counts[mode][kind] += 1
                if kind == "by design":
                    print(f"{mode} {case}: by design, {reason}")
                for key, (stock, ours) in wrong.items():
                    print(f"{mode} {case}: {key} is {ours[:_SHOWN]}, with stock {stock[:_SHOWN]}")
                unexpected += bool(wrong)
            if options.output is not None:
                options.output.write_text(json.dumps(seen, indent=1), encoding="utf-8")
    for mode, each in counts.items():
        print(f"{mode}: {len(cases)} cases;", ", ".join(f"{n} {kind}" for kind, n in each.items()))
    return int(unexpected > 0)


if __name__ == "__main__":
    sys.exit(main())
