"""A crawl of the synthetic portal without network or Scrapy: the smallest driver of ``Crawl``."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urljoin

from lxml import html

from scrapy_focus import Budget, Crawl, FilesGoal, Link, Outcome
from scrapy_focus.core.html import tag_path
from scrapy_focus.replay.synthetic import HTML, TARGET_MIMES, StatisticsPortal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy_focus import Pick, Policy
    from scrapy_focus.replay.synthetic import Page

HOST = "http://portal.example"


def share_found(policy: Policy, site: StatisticsPortal, *, share: float, in_flight: int) -> float:
    """Return the share of the targets found with a share of the requests that the whole site would take.

    Answers come back in the order in which their picks were made, each when ``in_flight`` are out. Redirects are
    followed and counted.
    """
    requests = int(share * (site.n_pages + site.n_targets))
    crawl = Crawl(
        policy, goal=FilesGoal(types=TARGET_MIMES), budget=Budget(requests=requests), seed=site.seed, strict=True
    )
    keys: dict[str, int] = {}
    crawl.add([_link(keys, f"{HOST}/", "")])
    out: list[Pick] = []
    while True:
        pick = crawl.next() if len(out) < in_flight else None
        if pick is not None:
            out.append(pick)
        elif out:
            _answer(crawl, site, out.pop(0), keys)
        else:
            return crawl.rewards / site.n_targets


def _answer(crawl: Crawl, site: StatisticsPortal, pick: Pick, keys: dict[str, int]) -> None:
    if not crawl.sent(pick.id):
        crawl.release(pick.id)
        return
    url = pick.url
    page = site.fetch(url.removeprefix(HOST))
    while page.location and crawl.sent(pick.id):
        url = urljoin(url, page.location)
        page = site.fetch(url.removeprefix(HOST))
    links = list(_links(page, url, keys)) if pick.method == "GET" else []
    error = "" if page.status == 200 else "http_error"
    crawl.report(Outcome(pick=pick, status=page.status, mime=page.mime, size=page.size, error=error), links)


def _links(page: Page, base: str, keys: dict[str, int]) -> Iterator[Link]:
    if page.status == 200 and page.mime == HTML:
        paths: dict = {}
        for element in html.document_fromstring(page.body).iter("a"):
            url = urljoin(base, element.get("href", "")).partition("#")[0]
            if url.startswith(f"{HOST}/"):
                yield _link(keys, url, tag_path(element, paths))


def _link(keys: dict[str, int], url: str, path: str) -> Link:
    return Link(url, keys.setdefault(url, len(keys)), "portal.example", tag_path=path)
