"""Crawls each scenario by itself, with each of its spiders, and prints a table: memory, CPU, what was found, what fails. ::

python tests/hostile/table.py [--spider datasets] [SCENARIO ...]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from hostilecrawls import Nursery, crawl, serve_all
from scenarios import GOOD, SCENARIOS


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument("names", nargs="*", metavar="SCENARIO", help="all by default")
    parser.add_argument("--spider", action="append", help="datasets, topic, stock, sitemaps; all by default")
    options = parser.parse_args()
    print(
        "| scenario | spider | requests | found | MB | CPU ms a page | loop held ms | s | result |\n|---|---|---|---|---|---|---|---|---|",
        flush=True,
    )
    with tempfile.TemporaryDirectory() as folder, Nursery() as nursery, serve_all() as server:
        for scenario in SCENARIOS:
            if options.names and scenario.name not in options.names:
                continue
            for spider in scenario.spiders:
                if options.spider and spider not in options.spider:
                    continue
                begun = time.monotonic()
                done = crawl(nursery, server, scenario, spider, Path(folder, f"{scenario.name}-{spider}"))
                failures = "; ".join(done.failures()).replace("|", "\\|").replace("\n", " ")
                print(
                    f"| {scenario.what} (`{scenario.name}`) | {spider} | {len(done.asked)} | {len(done.found())} of {len(GOOD)} | "
                    f"{done.memory / 1e6:.0f} | {1000 * done.cpu:.0f} | {1000 * done.held:.0f} | {time.monotonic() - begun:.1f} | {failures or 'holds'} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
