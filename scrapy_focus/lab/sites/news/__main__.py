"""Serves the synthetic news site, or a web of them, with a clock that may run faster than the machine's."""

from __future__ import annotations

import argparse
from dataclasses import fields
from typing import TYPE_CHECKING, get_args

from scrapy_focus.core.clock import FastClock
from scrapy_focus.core.errors import ConfigError
from scrapy_focus.lab.sites.news.plan import BEGIN, DAY, LastMod, Manner, Validators
from scrapy_focus.lab.sites.news.site import NewsSite
from scrapy_focus.lab.sites.news.web import NewsWeb
from scrapy_focus.lab.sites.server import ProxyServer, SiteServer

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve a synthetic news site until Ctrl-C; the first line printed is its address, the second its clock.

    With ``--hosts``, the address is that of a proxy, and the third line has the front pages that are behind it.
    """
    parser = argparse.ArgumentParser(
        prog="python -m scrapy_focus.lab.sites.news", description="Serve a synthetic news site that changes."
    )
    parser.add_argument("--seed", type=int, default=0, help="another seed is another site (0)")
    parser.add_argument("--days", type=float, default=30.0, help="for how long articles are born (30)")
    parser.add_argument("--speed", type=float, default=1.0, help="seconds of the site in one of this machine (1)")
    parser.add_argument("--from-day", type=float, default=1.0, help="days of the site that have passed at first (1)")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (127.0.0.1)")
    parser.add_argument("--port", type=int, default=8000, help="port, 0 for any free one (8000)")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds to wait before each answer (0)")
    parser.add_argument("--hosts", type=int, help="serve a web of so many different sites, as a proxy")
    parser.add_argument("--per-hour", type=float, default=7.0, help="articles born in an hour (7)")
    parser.add_argument("--archive", type=int, default=5000, help="articles at the start (5000)")
    parser.add_argument("--far", action="store_true", help="new articles are listed four and five clicks away")
    parser.add_argument("--waves", action="store_true", help="articles are born in waves, each on one topic")
    parser.add_argument("--crawl-delay", type=float, default=0.0, help="Crawl-delay of robots.txt in seconds (0)")
    parser.add_argument("--small-world", action="store_true", help="articles link to each other as pages of the Web do")
    parser.add_argument("--rewired", action="store_true", help="links between articles are exchanged at random")
    parser.add_argument("--topical", action="store_true", help="articles use the words of their topics")
    parser.add_argument("--undated", type=float, default=0.0, help="share of the articles without a date (0)")
    parser.add_argument("--validators", choices=get_args(Validators), default="right", help="ETag and Last-Modified")
    parser.add_argument("--noisy", action="store_true", help="pages have a clock and a token")
    parser.add_argument("--lastmod", choices=get_args(LastMod), default="right", help="of sitemaps")
    parser.add_argument("--max-age", action="store_true", help="send Cache-Control")
    options = parser.parse_args(arguments)
    names = {field.name for field in fields(Manner)}
    manner = {name: value for name, value in vars(options).items() if name in names}
    if options.hosts is not None and any(value != parser.get_default(name) for name, value in manner.items()):
        parser.error("with --hosts, all sites differ; omit the options of a single site")
    try:
        clock = FastClock(options.speed, BEGIN + options.from_day * DAY)
        where = (options.host, options.port, options.latency)
        server: SiteServer
        if options.hosts is None:
            site = NewsSite(Manner(**manner), seed=options.seed, days=options.days, clock=clock)
            server = SiteServer(site, *where, validators=True)
        else:
            web = NewsWeb(options.hosts, seed=options.seed, days=options.days, clock=clock)
            server = ProxyServer(web, *where, validators=True)
        server.start()
    except (ValueError, OSError, ConfigError) as error:
        parser.error(str(error))
    if options.hosts is None:
        site.origin = server.url.rstrip("/")
    print(server.url, clock, *([] if options.hosts is None else [",".join(web.roots)]), sep="\n", flush=True)
    server.serve_until_interrupted()


if __name__ == "__main__":
    main()
