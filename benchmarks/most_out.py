"""Requests a second of live crawls with and without the limit of picks in flight, side by side in one run.

Measured: pages of a tree over HTTP on 127.0.0.1, from the first answer to the last, and the CPU of the crawling
process per page. The site answers after 20 to 50 ms, in a process of its own; the policy is the default one. Crawls
with and without the bound (``FOCUS_MOST_OUT`` unset, and 0) take turns, each in a new process; the median over the
rounds is given, and the range. Not measured: what is found by when (``branching.py``), and real networks. ::

    python benchmarks/most_out.py --rounds 5
    python benchmarks/most_out.py --rounds 5 --only "callbacks"
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import subprocess
import sys
from multiprocessing import Pipe, Process
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter
    from collections.abc import Sequence
    from multiprocessing.connection import Connection

LEAST, MOST = 0.02, 0.05  # seconds until an answer
BRANCHES = 10
SCENARIOS: dict[str, dict[str, Any]] = {
    "16 at once": {"at_once": 16, "pages": 3000},
    "64 at once": {"at_once": 64, "pages": 3000},
    "16 at once, 0.4 s more to each answer": {"at_once": 16, "pages": 900, "more": 0.4},
    "16 at once, callbacks of half a second": {"at_once": 16, "pages": 2000, "callback": 0.5},
    "64 at once, callbacks of half a second": {"at_once": 64, "pages": 2000, "callback": 0.5},
    "100 hosts with a delay of two seconds, 100 at once": {"at_once": 100, "pages": 8, "hosts": 100, "delay": 2.0},
    "100 hosts, 64 at once": {"at_once": 64, "pages": 30, "hosts": 100},
}


async def serve(pipe: Connection) -> None:
    """Answer on all loopback addresses: page K of N links to those below it; the path gives an additional delay, in
    s.
    """

    async def answer(reader: StreamReader, writer: StreamWriter) -> None:
        while line := await reader.readline():
            while (await reader.readline()).strip():
                pass
            _, k, n, more = line.split()[1].decode().split("/")
            await asyncio.sleep(random.uniform(LEAST, MOST) + float(more))
            below = range(BRANCHES * int(k) + 1, min(BRANCHES * int(k) + BRANCHES + 1, int(n)))
            body = "".join(f'<li><a href="/{j}/{n}/{more}">page {j}</a></li>' for j in below).encode()
            head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)
        writer.close()

    server = await asyncio.start_server(answer, "0.0.0.0", 0, backlog=512)
    pipe.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()


def crawl(port: int, how: dict[str, Any], most_out: str) -> None:
    """Crawl once, and print how long that took."""
    from time import monotonic, process_time

    from scrapy import Request, Spider
    from scrapy.crawler import AsyncCrawlerProcess

    class Timed(Spider):
        name = "timed"

        async def start(self) -> Any:
            self.pages, self.cpu = 0, process_time()
            for number in range(how.get("hosts", 1)):
                yield Request(f"http://127.0.0.{number + 1}:{port}/0/{how['pages']}/{how.get('more', 0)}")

        async def parse(self, response: Any) -> Any:
            self.pages += 1
            now = monotonic()
            self.first = getattr(self, "first", now)
            if callback := how.get("callback"):
                await asyncio.sleep(callback)
            for each in response.follow_all(css="a"):
                yield each
            self.seconds = monotonic() - self.first

        def closed(self, reason: str) -> None:
            cpu = (process_time() - self.cpu) / self.pages
            print(json.dumps({"rate": self.pages / self.seconds, "cpu": cpu, "pages": self.pages, "reason": reason}))

    process = AsyncCrawlerProcess(
        {
            "SCHEDULER": "scrapy_focus.FocusScheduler", "LOG_LEVEL": "ERROR", "CONCURRENT_REQUESTS": how["at_once"],
            "CONCURRENT_REQUESTS_PER_DOMAIN": how["at_once"], "DOWNLOAD_DELAY": how.get("delay", 0.0), "FOCUS_SEED": 1,
            "FOCUS_PROGRESS": "off", "TELNETCONSOLE_ENABLED": False, "CONCURRENT_ITEMS": 4, "FOCUS_MOST_OUT": most_out,
            "REMOTE_CONTROL_ENABLED": False,
        }
    )  # fmt: skip
    process.crawl(Timed)
    process.start()


def measure(port: int, name: str, rounds: int) -> None:
    """Print a row for a scenario."""
    runs: dict[str, list[dict[str, Any]]] = {"0": [], "": []}
    for number in range(rounds):
        for most_out in (("0", ""), ("", "0"))[number % 2]:
            command = [sys.executable, __file__, "--crawl", str(port), json.dumps(SCENARIOS[name]), most_out]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            runs[most_out].append(json.loads(done.stdout.splitlines()[-1]))
    pages = {each["pages"] for both in runs.values() for each in both}
    if pages != {SCENARIOS[name]["pages"] * SCENARIOS[name].get("hosts", 1)}:
        raise SystemExit(f"{name}: {pages} pages were crawled")
    without, bounded = runs["0"], runs[""]
    print(
        f"| {name} | {_of(without, 'rate')} | {_of(bounded, 'rate')} | {_cpu(without)} | {_cpu(bounded)} |", flush=True
    )


def _of(runs: Sequence[dict[str, Any]], what: str) -> str:
    values = [each[what] for each in runs]
    return f"{statistics.median(values):.0f} ({min(values):.0f} to {max(values):.0f})"


def _cpu(runs: Sequence[dict[str, Any]]) -> str:
    return f"{1000 * statistics.median(each['cpu'] for each in runs):.2f}"


def _serve(pipe: Connection) -> None:
    asyncio.run(serve(pipe))


def main() -> None:
    """The command line, see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="scenarios whose names have this in them")
    parser.add_argument("--crawl", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.crawl:
        port, how, most_out = options.crawl
        crawl(int(port), json.loads(how), most_out)
        return
    mine, its = Pipe()
    server = Process(target=_serve, args=(its,), daemon=True)
    server.start()
    port = mine.recv()
    print("| crawl | requests a second, unbounded | bounded | CPU ms per page, unbounded | bounded |")
    print("|---|--:|--:|--:|--:|")
    for name in SCENARIOS:
        if options.only in name:
            measure(port, name, options.rounds)
    server.terminate()


if __name__ == "__main__":
    main()
