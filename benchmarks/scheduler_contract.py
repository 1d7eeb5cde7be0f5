"""Runs small crawls with Scrapy's scheduler, with ours and with our add-on, and compares the observations.

Each case shows one thing that a project may expect of a scheduler: priorities, start requests, dupefilters, idle
spiders, closing, several crawlers, requests of all kinds, with and without ``JOBDIR``. What differs must be in
``BY_DESIGN``, with its reason. Any other difference is a failure, and so is a case of ``BY_DESIGN`` that is equal in a
run of all cases, unless that is a matter of chance: then it is to be removed. The order of requests is free. Log lines
are compared where a case is about them, and speed loosely. A case that fails is run once more, as other programs may
have been in its way. Run it before a release, when nothing else runs; it takes ten minutes::

    python benchmarks/scheduler_contract.py [--modes scheduler,addon] [--output FILE.json] [CASE...]

The cases are the functions of ``contract/cases.py``.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

Seen = dict[str, Any]

_LONGEST = 120  # seconds for one crawl; it stops itself a little earlier
_SHOWN = 200  # characters of a value
_FREE = {"seconds", "log"}
_SLOWER = 0.75  # of the rate of stock Scrapy is as good as it
_LATER = 0.5  # maximum extra delay of a request in seconds, compared with stock Scrapy
#: Cases that need an optional package; without it they are skipped.
NEEDS = {"uvloop": "uvloop"}

_ANSWERED = {
    "downloader/request_count", "downloader/response_status_count/200", "item_scraped_count", "items", "requests",
    "scheduler/dequeued", "scheduler/dequeued/memory", "spider_exceptions/count", "spider_exceptions/ValueError",
}  # fmt: skip
_PLACED = {"scheduler/enqueued", "scheduler/enqueued/memory", "request_depth_max"}
_KNOWN = {"dupefilter/filtered", "request_depth_max"}

_CLOSED = "what is in flight when it closes is still answered, and links of other pages are known by then"
_DROPPED = "links to known URLs are dropped before the scheduler, its signals and the dupefilter meet them"
_EMPTY = "scheduler_empty is sent whenever nothing may be sent now, also while links wait for a host"
_META = "meta has the id of a pick, too"
_QUEUES = "Scrapy's queues and dupefilter are no attributes of ours, and settings of queues do nothing"
_TAKEN = "how many start requests Scrapy takes before the first answer depends on how fast that comes"
_BOTH: dict[str, tuple[set[str], str]] = {
    "async_long_callback": ({"lags"}, "requests of a callback that runs on are placed when it ends, or after 5 s"),
    "close_errorcount": (_ANSWERED | _PLACED, _CLOSED),
    "close_in_callback": (_ANSWERED | _PLACED, _CLOSED),
    "close_itemcount": (_ANSWERED | _PLACED, _CLOSED),
    "close_pagecount": (_ANSWERED | _PLACED, _CLOSED),
    "close_pagecount_no_item": (_ANSWERED | _PLACED, _CLOSED),
    "close_timeout": (_ANSWERED | _PLACED, _CLOSED),
    "close_timeout_no_item": (_ANSWERED | _PLACED, _CLOSED),
    "concurrency": ({"most", "rate"}, "Scrapy 2.19 sends more than CONCURRENT_REQUESTS_PER_DOMAIN with asyncio"),
    "errbacks": ({"items"}, _META),
    "frontier_of_hosts": ({"most"}, "little is handed out while little is known (FOCUS_MOST_OUT)"),
    "generator_of_requests": (_ANSWERED, _CLOSED),
    "meta_as_item": ({"first", "header"}, _META),
    "meta_mutated_later": ({"items"}, "requests are stored, so that response.request is another object"),
    "meta_visible": ({"meta_keys", "meta_of_last", "values"}, _META),
    "pause_unpause": ({"sent"}, _CLOSED),
    "periodic_log": (_ANSWERED | _PLACED | {"lines"}, _CLOSED),
    "queue_settings_said": (_ANSWERED | _PLACED | {"reason"}, _QUEUES),
    "scheduler_api": (_ANSWERED | _PLACED | {"api", "dupefilter/filtered", "est"}, _QUEUES),
    "scheduler_empty_docs": ({"empties", "starts_at"}, _EMPTY),
    "start_dupes_filtered": ({"signals"}, _EMPTY),
    "start_flood": (_ANSWERED, _CLOSED),
    "start_infinite": (_ANSWERED | _PLACED, _CLOSED),
    "start_lazy_pull": ({"pulled_when_sent"}, _TAKEN),
    "stop_by_crawler": (_ANSWERED | _PLACED, _CLOSED),
}
#: Differences that are intended: for each mode, the cases, what may differ, and why.
BY_DESIGN: dict[str, dict[str, tuple[set[str], str]]] = {
    "scheduler": _BOTH,
    "addon": _BOTH
    | {
        "cached_by_middleware": (_KNOWN, _DROPPED),
        "callback_none_and_noparse": (_KNOWN, _DROPPED),
        "dedup_seen_by_outer_middleware": ({"mw"} | _KNOWN, _DROPPED),
        "dont_filter": (_KNOWN, _DROPPED),
        "signals_of_tree": ({"signals"} | _KNOWN, _DROPPED),
        "start_dupes_filtered": ({"signals"} | _KNOWN, f"{_EMPTY}; {_DROPPED}"),
    },
}
#: Reasons for differences that occur only in some runs.
_BY_CHANCE = {_CLOSED, _TAKEN}


def run(case: str, mode: str, folder: Path) -> Seen:
    """Run a case in a separate process, and return the observations, including its stats."""
    here = Path(__file__).parent
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(here), str(here.parent)])}
    command = [sys.executable, "-m", "contract.cases", case, mode, str(folder)]
    folder.mkdir(parents=True)
    try:
        done = subprocess.run(
            command, cwd=folder, env=env, capture_output=True, text=True, timeout=_LONGEST, check=False
        )
        found: Seen = json.loads(done.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        return {"broken": f"no end in {_LONGEST} s"}
    except (IndexError, ValueError):
        return {"broken": f"status {done.returncode}, {done.stderr[-_SHOWN:]}"}
    stats: Seen = found.pop("stats", {})
    return found | stats


def plain(value: Any) -> str:
    """Return a value as text without the order of lists and the port of the site."""
    ordered = sorted(value, key=str) if isinstance(value, list) else value
    return re.sub(r"127\.0\.0\.1:\d+", "HOST", json.dumps(ordered, sort_keys=True))


def is_equal(name: str, stock: Any, ours: Any) -> bool:
    """Whether two values are equal, or as good as equal where they are about time."""
    if stock is not None and ours is not None:
        if name == "rate":
            return bool(ours >= _SLOWER * stock)
        if name == "lag":
            return bool(max(ours) <= max(stock) + _LATER)
        if name == "slow_gap":
            return bool(abs(ours - stock) < 0.1)
    return plain(stock) == plain(ours)


def differences(stock: Seen, ours: Seen) -> dict[str, tuple[str, str]]:
    """Return what differs, each with its two values."""
    names = sorted((stock.keys() | ours.keys()) - _FREE)
    return {
        name: (plain(stock.get(name)), plain(ours.get(name)))
        for name in names
        if not is_equal(name, stock.get(name), ours.get(name))
    }


def unexpected(stock: Seen, ours: Seen, allowed: set[str]) -> list[str]:
    """Return what is wrong with a case, in words: differences that are not intended, and crawls that show nothing."""
    wrong = [
        f"{name} is {our[:_SHOWN]}, with stock Scrapy {their[:_SHOWN]}"
        for name, (their, our) in differences(stock, ours).items()
        if name not in allowed
    ]
    for name in ("broken", "raised"):
        if name in stock and stock.get(name) == ours.get(name):
            wrong.append(f"{name} in both: {stock[name]}")
    if None in stock.get("reason", []) and "reason" not in allowed:
        wrong.append("the crawl does not start with stock Scrapy, so that there is nothing to compare")
    return wrong


def names_of_cases() -> list[str]:
    """Return the cases, in the order of their file."""
    text = (Path(__file__).parent / "contract" / "cases.py").read_text(encoding="utf-8")
    return re.findall(r"^@case\ndef (\w+)", text, re.MULTILINE)


def compare(case: str, modes: list[str], folder: Path) -> tuple[dict[str, Seen], dict[str, list[str]]]:
    """Run a case with stock Scrapy and in other modes, and return what was seen and what is wrong, by mode."""
    seen = {mode: run(case, mode, folder / mode) for mode in ("stock", *modes)}
    allowed = {mode: BY_DESIGN[mode].get(case, (set[str](), ""))[0] for mode in modes}
    return seen, {mode: unexpected(seen["stock"], seen[mode], allowed[mode]) for mode in modes}


def report(mode: str, seen: dict[str, dict[str, Seen]], wrong: dict[str, list[str]], *, is_whole: bool) -> bool:
    """Print what one mode showed, by case, and return whether that is a failure."""
    by_design = BY_DESIGN[mode]
    differing = {case for case, results in seen.items() if differences(results["stock"], results[mode])}
    intended = sorted(case for case in differing if not wrong[case])
    equal = len(seen) - len(intended) - sum(map(bool, wrong.values()))
    print(f"\n{mode}: {len(seen)} cases; {equal} equal, {len(intended)} differ by design")
    reasons = defaultdict(list)
    for case in intended:
        reasons[by_design[case][1]].append(case)
    for reason, cases in reasons.items():
        print(f"  {', '.join(cases)}: {reason}")
    print(f"unexpected differences: {sum(map(bool, wrong.values()))}")
    for case, words in wrong.items():
        for each in words:
            print(f"  {case}: {each}")
    mended = [
        case for case in by_design if case in seen and case not in differing and by_design[case][1] not in _BY_CHANCE
    ]
    if mended and is_whole:
        print("equal now, remove from BY_DESIGN:", *mended)
    return any(wrong.values()) or bool(mended and is_whole)


def main() -> int:
    """Compare, and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help="(default: all)")
    parser.add_argument("--modes", default="scheduler,addon", help="(default: %(default)s)")
    parser.add_argument("--output", type=Path, help="where to write all that was seen, as JSON")
    options = parser.parse_args()
    known = names_of_cases()
    modes = options.modes.split(",")
    for name in {*options.cases} - {*known}:
        parser.error(f"no such case: {name}")
    for name in {*modes} - {*BY_DESIGN}:
        parser.error(f"no such mode: {name}; there are {', '.join(BY_DESIGN)}")
    for name in {case for each in BY_DESIGN.values() for case in each} - {*known}:
        parser.error(f"{name} is in BY_DESIGN, but no case")
    seen: dict[str, dict[str, Seen]] = {}
    wrong: dict[str, dict[str, list[str]]] = {mode: {} for mode in modes}
    with tempfile.TemporaryDirectory() as name:
        for case in options.cases or known:
            if case in NEEDS and importlib.util.find_spec(NEEDS[case]) is None:
                print(f"{case}: skipped, as {NEEDS[case]} is not installed")
                continue
            seen[case], found = compare(case, modes, Path(name, case))
            if any(found.values()):
                print(f"{case}: once more")
                seen[case], found = compare(case, modes, Path(name, case, "again"))
            for mode in modes:
                wrong[mode][case] = found[mode]
            print(f"{case}: {'differs' if any(found.values()) else 'as expected'}", flush=True)
            if options.output is not None:
                options.output.write_text(json.dumps(seen, indent=1), encoding="utf-8")
    failures = [report(mode, seen, wrong[mode], is_whole=not options.cases) for mode in modes]
    return int(any(failures))


if __name__ == "__main__":
    sys.exit(main())
