"""Serves a synthetic web of many hosts on this machine, as a proxy that answers for ``http://some.example/``.

No name has to be resolved and no address faked: with ``http_proxy=http://127.0.0.1:8000/`` in the environment, as Scrapy
reads it, a crawler finds all hosts there and nothing else. In a clone of the repository::

    PYTHONPATH=benchmarks python -m manyhosts.server --topic beekeeping --folder bees
    cd example_project
    http_proxy=http://127.0.0.1:8000/ scrapy crawl topic -a seeds=../bees/seeds.txt -a examples=../bees
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from manyhosts.markup import SETTINGS
from manyhosts.web import TOPICS, MadeUpWeb
from scrapy_focus.lab.sites.portal.portal import Page
from scrapy_focus.lab.sites.server import ProxyServer

if TYPE_CHECKING:
    from collections.abc import Sequence


class _Hosts:
    """Answers whole URLs from a web."""

    def __init__(self, web: MadeUpWeb, pace: float) -> None:
        self.web = web
        self.pace = pace

    def fetch(self, url: str) -> Page:
        if not url.startswith("http://"):
            text = "This is a proxy for made-up hosts: ask it for whole URLs, as in http://some.example/\n"
            return Page.of(text.encode(), status=400, mime="text/plain")
        page = self.web.page(url)
        if self.pace:
            time.sleep(page.seconds * self.pace)
        if not page.status:
            return Page.of(f"No such host: {page.host}\n".encode(), status=502, mime="text/plain")
        mime = f"{page.mime}; charset=utf-8"
        return Page.of(page.html.encode(), status=page.status, mime=mime, location=page.location or None)


class WebServer(ProxyServer):
    """An HTTP proxy behind which there is a made-up web and nothing else; used as :class:`SiteServer` is.

    Hosts that do not exist are answered with 502, as proxies do. The ``log`` has whole URLs.

    Parameters
    ----------
    web : MadeUpWeb
        What to serve.
    host : str
        Address to listen on.
    port : int
        0 for any free one.
    pace : float
        Of the seconds that a host takes for an answer (0.1 to 12), the share that is waited for: 0 for none, 1 for all.

    Raises
    ------
    ValueError
        If `pace` is negative.
    """

    def __init__(self, web: MadeUpWeb, host: str = "127.0.0.1", port: int = 0, pace: float = 0.0) -> None:
        if pace < 0:
            raise ValueError(
                f"pace is a share of the time that hosts take, but pace={pace!r} was given; use 0 for no wait"
            )
        super().__init__(_Hosts(web, pace), host, port)
        self.web = web

    @property
    def requests_by_host(self) -> Counter[str]:
        """How many requests were answered for each host."""
        return Counter(request.host for request in self.log)


def write_examples(
    web: MadeUpWeb, topic: str, folder: Path, *, seeds: int = 10, examples: int = 300, seed: int = 0
) -> None:
    """Write what a crawl by topic is given, as files.

    Parameters
    ----------
    web : MadeUpWeb
        Where the topic is.
    topic : str
        One of ``web.topics``.
    folder : Path
        Gets ``seeds.txt`` with a URL on each line, ``keywords.txt`` with a word on each, and the folders ``positive`` and
        ``negative`` with a text in each file, of pages that no crawl finds.
    seeds, examples : int
        How many URLs, and how many texts of each kind.
    seed : int
        Another one gives other pages.
    """
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "seeds.txt").write_text("\n".join(web.seeds(topic, seeds, rng)) + "\n", encoding="utf-8")
    (folder / "keywords.txt").write_text("\n".join(web.keywords(topic)) + "\n", encoding="utf-8")
    for kind, texts in zip(("positive", "negative"), web.examples(topic, examples, rng), strict=True):
        (folder / kind).mkdir(exist_ok=True)
        for k, text in enumerate(texts):
            (folder / kind / f"{k:04}.txt").write_text(text + "\n", encoding="utf-8")


def write_seeds(web: MadeUpWeb, folder: Path, *, seeds: int = 50, seed: int = 0) -> None:
    """Write ``seeds.txt`` into a folder, with the URLs of some pages, a line each; another seed gives others."""
    folder.mkdir(parents=True, exist_ok=True)
    urls = web.some_pages(seeds, np.random.default_rng(seed))
    (folder / "seeds.txt").write_text("\n".join(urls) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve a made-up web until Ctrl-C; the first line printed is the address of the proxy."""
    parser = argparse.ArgumentParser(
        prog="python -m manyhosts.server", description="Serve a synthetic web of many hosts, as a proxy."
    )
    parser.add_argument("--seed", type=int, default=0, help="another seed is another web (0)")
    parser.add_argument("--hosts", type=int, default=20_000, help="number of hosts, 2000 to 250000 (20000)")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (127.0.0.1)")
    parser.add_argument("--port", type=int, default=8000, help="port, 0 for any free one (8000)")
    parser.add_argument("--pace", type=float, default=0.0, help="share of the time of slow hosts to wait, 0 to 1 (0)")
    parser.add_argument(
        "--markup", choices=[*SETTINGS], help="a web in which as many pages describe things to machines"
    )
    parser.add_argument("--pages", type=int, help="with --markup: about how many pages there are (no bound)")
    parser.add_argument("--topic", choices=TOPICS, help="what --folder is about")
    parser.add_argument(
        "--folder",
        type=Path,
        help="where to write seeds, keywords and examples of the topic; seeds alone with --markup",
    )
    options = parser.parse_args(arguments)
    if options.topic is not None and options.folder is None:
        parser.error("--topic and --folder belong together: give both, or neither")
    if options.folder is not None and options.topic is None and options.markup is None:
        parser.error("--topic and --folder belong together: give both, or neither; with --markup, --folder is enough")
    try:
        web = MadeUpWeb(seed=options.seed, hosts=options.hosts, markup=options.markup, pages=options.pages)
        server = WebServer(web, options.host, options.port, options.pace)
        if options.topic is not None:
            write_examples(web, options.topic, options.folder)
        elif options.folder is not None:
            write_seeds(web, options.folder)
        server.start()
    except (ValueError, OSError) as error:
        parser.error(str(error))
    print(f"{server.url} {web.hosts} hosts", flush=True)
    server.serve_until_interrupted()


if __name__ == "__main__":
    main()
