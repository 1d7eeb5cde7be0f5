"""The made-up web over HTTP: a proxy that ordinary clients and Scrapy find many hosts behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from manyhosts.server import WebServer, main, write_examples
from manyhosts.web import MadeUpWeb
from tests.made import HANG

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SPIDER = """
import json, sys
import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.linkextractors import LinkExtractor

class Broad(scrapy.Spider):
    name = "broad"
    start_urls = json.loads(sys.argv[1])
    custom_settings = {
        "ROBOTSTXT_OBEY": True, "CLOSESPIDER_PAGECOUNT": 60, "DEPTH_LIMIT": 3, "RETRY_ENABLED": False, "LOG_LEVEL": "ERROR",
        "CONCURRENT_REQUESTS": 8, "DOWNLOAD_DELAY": 0, "TELNETCONSOLE_ENABLED": False,
        "FEEDS": {sys.argv[2]: {"format": "json"}},
    }

    def parse(self, response):
        links = [link.url for link in LinkExtractor().extract_links(response)]
        yield {"url": response.url, "title": response.css("title::text").get(), "links": links}
        for url in links[::4] + [url for url in links if "/private/" in url]:
            yield scrapy.Request(url)

process = CrawlerProcess()
process.crawl(Broad)
process.start()
"""


@pytest.fixture(scope="module")
def web() -> MadeUpWeb:
    return MadeUpWeb(seed=4, hosts=3_000)


@pytest.fixture
def server(web: MadeUpWeb) -> Iterator[WebServer]:
    with WebServer(web) as running:
        yield running


def ask(server: WebServer, url: str) -> tuple[int, str, str]:
    """Return status, final URL and text of an ordinary client's request through the proxy."""
    client = urllib.request.build_opener(urllib.request.ProxyHandler({"http": server.url}))
    try:
        with client.open(url, timeout=HANG) as answer:
            return answer.status, answer.url, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.url, error.read().decode()


def test_an_ordinary_client_gets_pages_of_many_hosts(web: MadeUpWeb, server: WebServer) -> None:
    """Through the proxy, each host answers with its own pages; the log has their URLs."""
    urls = web.seeds("beekeeping", 6, np.random.default_rng(0))
    for url in urls:
        assert ask(server, url) == (200, url, web.page(url).html)
    assert [request.path for request in server.log] == urls
    assert server.requests_by_host == Counter(url.split("/")[2] for url in urls)
    assert len(server.requests_by_host) == 6


def test_redirects_robots_and_failures(web: MadeUpWeb, server: WebServer) -> None:
    """A host that moved redirects to another, robots.txt exists, a gone page is 404, and an unknown host is 502."""
    urls = [link.url for url in web.seeds("astronomy", 40, np.random.default_rng(1)) for link in web.page(url).links]
    kinds = {web.page(url).status: url for url in urls}
    status, final, _ = ask(server, kinds[301])
    assert (status, final) == (200, web.page(kinds[301]).location)
    assert ask(server, kinds[403])[0] == 403
    assert ask(server, kinds[404])[0] == 404
    assert ask(server, kinds[0])[0] == 502
    assert ask(server, "http://no.such.host/")[0] == 502
    assert "Disallow: /private/" in ask(server, f"http://{kinds[200].split('/')[2]}/robots.txt")[2]


def test_who_takes_it_for_a_site_is_told(server: WebServer) -> None:
    """A path without a host is answered with 400 and a sentence."""
    with pytest.raises(urllib.error.HTTPError) as error:
        urllib.request.urlopen(server.url + "page", timeout=HANG)
    assert error.value.code == 400
    assert "http://some.example/" in error.value.read().decode()


def test_scrapy_crawls_it(web: MadeUpWeb, server: WebServer, tmp_path: Path) -> None:
    """Scrapy crawls several hosts with nothing but a variable in the environment, finds the links of the simulation, and obeys."""
    seeds = web.seeds("beekeeping", 5, np.random.default_rng(2))
    done = subprocess.run(
        [sys.executable, "-c", SPIDER, json.dumps(seeds), str(tmp_path / "items.json")],
        env={**os.environ, "http_proxy": server.url, "no_proxy": ""}, cwd=tmp_path, capture_output=True, text=True, check=False,
        timeout=HANG,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    items = json.loads((tmp_path / "items.json").read_text())
    assert len(items) >= 25
    assert len({item["url"].split("/")[2] for item in items}) >= 5
    for item in items:
        page = web.page(item["url"])
        assert item["title"] == page.title
        assert item["links"] == [link.url for link in page.links]
    asked = {request.path for request in server.log}
    assert any("/private/" in url for item in items for url in item["links"])
    assert not [url for url in asked if "/private/" in url]
    assert {f"http://{item['url'].split('/')[2]}/robots.txt" for item in items} <= asked


def test_slow_hosts_take_their_time(web: MadeUpWeb, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a pace, an answer waits that share of the host's time; without, it does not wait."""
    waits: list[float] = []
    monkeypatch.setattr("manyhosts.server.time.sleep", waits.append)
    url = web.seeds("beekeeping", 1, np.random.default_rng(0))[0]
    for pace in (0.0, 0.5):
        with WebServer(web, pace=pace) as server:
            ask(server, url)
    assert waits == [pytest.approx(web.page(url).seconds / 2)]
    with pytest.raises(ValueError, match="pace=-1"):
        WebServer(web, pace=-1)


def test_writes_what_a_crawl_is_given(web: MadeUpWeb, tmp_path: Path) -> None:
    """Seeds, keywords and examples are files, in the folders that the training command reads."""
    write_examples(web, "sailing", tmp_path / "sails", examples=7)
    seeds = (tmp_path / "sails" / "seeds.txt").read_text().split()
    assert len(seeds) == 10
    assert all(web.is_relevant(url, "sailing") for url in seeds)
    assert (tmp_path / "sails" / "keywords.txt").read_text().split() == web.keywords("sailing")
    texts = [[path.read_text() for path in (tmp_path / "sails" / kind).iterdir()] for kind in ("positive", "negative")]
    assert [len(of) for of in texts] == [7, 7]
    assert not {*texts[0]} & {*texts[1]}


def test_serves_from_the_command_line(tmp_path: Path) -> None:
    """The command writes its files, says its address first, and answers."""
    command = [sys.executable, "-m", "manyhosts.server", "--port", "0", "--hosts", "2000", "--seed", "4"]
    with subprocess.Popen(
        [*command, "--topic", "beekeeping", "--folder", str(tmp_path)],
        cwd=BENCHMARKS,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().split()[0]
            url = (tmp_path / "seeds.txt").read_text().split()[0]
            client = urllib.request.build_opener(urllib.request.ProxyHandler({"http": address}))
            with client.open(url, timeout=HANG) as answer:
                assert answer.read().decode() == MadeUpWeb(seed=4, hosts=2_000).page(url).html
        finally:
            process.terminate()


def test_the_command_line_says_what_is_wrong(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Incomplete options, and an invalid web, end with a sentence."""
    for arguments, said in (
        (["--folder", str(tmp_path)], "belong together"),
        (["--hosts", "5"], "hosts=5"),
    ):
        with pytest.raises(SystemExit):
            main(arguments)
        assert said in capsys.readouterr().err
