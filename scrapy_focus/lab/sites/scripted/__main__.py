"""Serves the synthetic scripted site."""

from __future__ import annotations

import argparse
from itertools import cycle
from typing import TYPE_CHECKING

from scrapy_focus.lab.sites.scripted.plan import MAKES, MIXES, SHAPES, Api
from scrapy_focus.lab.sites.scripted.site import APIS, ScriptedSite
from scrapy_focus.lab.sites.server import SiteServer

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve a synthetic scripted site until Ctrl-C; the first line printed is its address and its size."""
    parser = argparse.ArgumentParser(
        prog="python -m scrapy_focus.lab.sites.scripted",
        description="Serve a synthetic site with parts behind scripts.",
    )
    parser.add_argument(
        "--mix", type=int, choices=MIXES, default=72, help="percentage of the files behind scripts (72)"
    )
    parser.add_argument("--seed", type=int, default=0, help="another seed is another site (0)")
    parser.add_argument(
        "--api", action="append", choices=MAKES, metavar="MAKE",
        help=f"a section of the app whose API is of this make: {', '.join(MAKES)}; may be repeated (pages, next)",
    )  # fmt: skip
    parser.add_argument(
        "--forbid", action="append", default=[], metavar="PATH", help="a path that robots.txt forbids; may be repeated"
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (127.0.0.1)")
    parser.add_argument("--port", type=int, default=8000, help="port, 0 for any free one (8000)")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds to wait before each answer (0)")
    options = parser.parse_args(arguments)
    apis = [Api(make, shape) for make, shape in zip(options.api or (), cycle(SHAPES))] or APIS
    try:
        site = ScriptedSite(mix=MIXES[options.mix], seed=options.seed, apis=apis, forbidden=options.forbid)
        server = SiteServer(site, options.host, options.port, options.latency, validators=True)
        server.start()
    except (ValueError, OSError) as error:
        parser.error(str(error))
    try:
        print(f"{server.url} {site.n_pages} pages {site.n_targets} targets {site.n_blobs} blobs", flush=True)
        server.serve_until_interrupted()
    except KeyboardInterrupt:  # before it blocks
        server.stop()


if __name__ == "__main__":
    main()
