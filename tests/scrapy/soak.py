"""Soak: many crawls that are killed, run out of disk or have a clock that jumps; counted in the server's log.

``python tests/scrapy/soak.py --kills 100 --seed 1`` (``make soak``) prints a table in Markdown. The exit status is 1 if
a page or an item was lost, a budget was exceeded, or anything else was wrong. Each such fault is printed in words, and
its folder stays. Every crawl runs to its end, two in three with a budget at first. A kill comes at a random instant: at
the start, in the middle, in a checkpoint, near the end, after SIGTERM. In one crawl of four the disk also fills up
mid-crawl, in another the time of day is wrong and jumps.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from soaked import SUBJECTS, Counts, Cradle, Soak, SoakSite, Subject

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

KINDS = [
    "sometime", "at_its_start", "at_its_start", "after_requests", "after_requests", "in_a_checkpoint",
    "at_a_new_journal", "told_to_stop", "near_its_end",
]  # fmt: skip
TITLES = {
    "crawls": "crawls", "runs": "runs", "asked": "requests", "full": "disk full", "jumps": "clocks wrong",
    "lost_pages": "pages lost", "lost_items": "items lost", "doubled_items": "items twice", "odd_items": "items damaged",
    "overshoot": "over budget", "needless": "needless requests", "twice": "asked again", "left": "answer had left", "arrived": "answer had arrived", "unclean": "focus-check unclean",
    "errors": "errors in logs",
}  # fmt: skip


def soak(
    kills: int,
    seed: int,
    *,
    pages: int = 400,
    latency: float = 0.01,
    size: int = 2000,
    subjects: Sequence[Subject] = SUBJECTS,
    settings: dict[str, Any] | None = None,
    out: TextIO | None = None,
    folder: Path | None = None,
    table: dict[str, Counts] | None = None,
) -> dict[str, Counts]:
    """Kill so many times, and return the results by subject; faults go to ``out`` and counts to ``table`` at once."""
    rng = random.Random(seed)
    table = {} if table is None else table
    place = Path(tempfile.mkdtemp(prefix="soak-")) if folder is None else folder
    with Cradle() as cradle:
        plans = _plans(rng)
        for number in range(1_000_000):
            killed = sum(counts.kills.total() for counts in table.values())
            if killed >= kills and number >= len(subjects):
                break
            subject = subjects[number % len(subjects)]
            plan = next(plans)
            here = place / f"{number}"
            with SoakSite(n=pages, seed=rng.randrange(10**6), latency=latency, size=size) as site:
                budget = rng.randint(pages // 4, pages) if number % 3 else 0
                run = Soak(subject, site, here, rng, budget=budget, settings=settings)
                done = run.run(cradle, plan)
            table.setdefault(subject.name, Counts()).add(done)
            if done.faults:
                print(f"{here}: {subject.name}, {run}", *run.problems, sep="\n", file=out, flush=True)
            else:
                shutil.rmtree(here)
    if not any(place.iterdir()):
        place.rmdir()
    return table


def _plans(rng: random.Random) -> Iterator[list[str]]:
    """Yield the events in the runs of each crawl: kills, and in every third crawl a full disk or wrong clocks."""
    while True:
        yield rng.choices(KINDS, k=8)
        yield _mixed(rng, ["full_disk"] * 2)
        yield rng.choices(KINDS, k=8)
        yield _mixed(rng, ["wrong_clock"] * 4)


def _mixed(rng: random.Random, also: list[str]) -> list[str]:
    plan = [*rng.choices(KINDS, k=6), *also]
    rng.shuffle(plan)
    return plan


def table_of(table: dict[str, Counts]) -> str:
    """Return the counts as a table in Markdown, a line each and their sum."""
    total = Counts()
    for counts in table.values():
        total.add(counts)
    rows = [f"| crawl | kills | {' | '.join(TITLES.values())} |", "|---" * (len(TITLES) + 2) + "|"]
    for name, counts in [*table.items(), ("all", total)]:
        numbers = [counts.kills.total(), *(getattr(counts, title) for title in TITLES)]
        rows.append(f"| {name} | {' | '.join(f'{number:,}' for number in numbers)} |")
    kinds = ", ".join(f"{n} {kind}" for kind, n in total.kills.most_common())
    return "\n".join([*rows, f"\nKills: {kinds}."])


def main() -> int:
    """Soak, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pages", type=int, default=400, help="of each site")
    parser.add_argument("--latency", type=float, default=0.01, help="seconds of an answer")
    parser.add_argument("--size", type=int, default=2000, help="bytes of a page")
    parser.add_argument("--subject", action="append", choices=[subject.name for subject in SUBJECTS])
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of all crawls")
    options = parser.parse_args()
    begun = time.monotonic()
    subjects = [
        subject for subject in SUBJECTS if subject.name in (options.subject or [each.name for each in SUBJECTS])
    ]
    table: dict[str, Counts] = {}
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        soak(
            options.kills, options.seed, pages=options.pages, latency=options.latency, size=options.size,
            subjects=subjects, settings=dict(pair.split("=", 1) for pair in options.set), out=sys.stdout, table=table,
        )  # fmt: skip
    except KeyboardInterrupt:
        print("interrupted; what was done until then:")
    print(table_of(table))
    print(f"\nSeed {options.seed}, {options.pages} pages a site, {time.monotonic() - begun:.0f} seconds.")
    return int(any(counts.faults for counts in table.values()))


if __name__ == "__main__":
    sys.exit(main())
