"""The best-first strategy of crawl4ai with its keyword scorer, and its HTTP strategy, which needs no browser.

``first_requests.py`` runs it with the Python of an environment that has crawl4ai and need not have this package. All
settings but the following are the defaults of crawl4ai. Its pauses are off, robots.txt is obeyed, its cache is
bypassed, and the depth is not limited. It takes links from its queue in batches, each of which ends before the next
begins. A batch has as many links as may be in flight, in place of 10, so each choice knows as much as possible. Files
are downloaded, and so are followed by default; a filter skips the same extensions as the other crawlers. ::

    python benchmarks/other_crawlers/crawl4ai_best_first.py URL FOLDER BUDGET IN_FLIGHT SKIPPED,EXTENSIONS WANTED,WORDS
"""

from __future__ import annotations

import asyncio
import os
import sys
from urllib.parse import urlsplit


async def crawl(url: str, out: str, budget: int, in_flight: int, skip: list[str], words: list[str]) -> None:
    """Crawl the host of `url` until `budget` pages and files are fetched, or no link is queued."""
    os.environ |= {"HOME": out, "CRAWL4_AI_BASE_DIRECTORY": out}  # it keeps copies of robots.txt there for a week
    from crawl4ai import AsyncWebCrawler, CacheMode, CrawlerRunConfig, HTTPCrawlerConfig
    from crawl4ai.async_crawler_strategy import AsyncHTTPCrawlerStrategy
    from crawl4ai.deep_crawling import BestFirstCrawlingStrategy, bff_strategy
    from crawl4ai.deep_crawling.filters import FilterChain, URLFilter
    from crawl4ai.deep_crawling.scorers import KeywordRelevanceScorer

    class SkipExtensions(URLFilter):  # type: ignore[misc]
        def apply(self, url: str) -> bool:
            name = urlsplit(url).path.rpartition("/")[2]
            return "." not in name or name.rpartition(".")[2].lower() not in skip

    bff_strategy.BATCH_SIZE = in_flight
    config = CrawlerRunConfig(
        deep_crawl_strategy=BestFirstCrawlingStrategy(
            max_depth=1_000_000,
            max_pages=budget,
            url_scorer=KeywordRelevanceScorer(keywords=words),
            filter_chain=FilterChain([SkipExtensions()]),
        ),
        semaphore_count=in_flight,
        mean_delay=0.0,
        max_range=0.0,
        check_robots_txt=True,
        cache_mode=CacheMode.BYPASS,
        stream=True,
        verbose=False,
    )
    strategy = AsyncHTTPCrawlerStrategy(HTTPCrawlerConfig(downloads_path=os.path.join(out, "downloads")))  # noqa: PTH118
    async with AsyncWebCrawler(crawler_strategy=strategy) as crawler:
        async for result in await crawler.arun(url, config=config):
            if not result.success:
                print(result.url, result.status_code, (result.error_message or "")[:200], flush=True)


if __name__ == "__main__":
    start, folder, most, flight, skipped, wanted = sys.argv[1:]
    asyncio.run(crawl(start, folder, int(most), int(flight), skipped.split(","), wanted.split(",")))
