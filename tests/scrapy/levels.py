"""A site whose paths contain the priority of their requests, and its spider, for tests of priorities and kills."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from killer import Hunt, Nursery
from mocksite import MockSite
from scrapy import Request, Spider

from scrapy_focus.core.files import write_atomically

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from killer import Running
    from mocksite import Answer
    from scrapy.http import Response

START = "/20"

#: The priorities of the links on a page of each priority. With these, all allowed orders have the same priorities.
BELOW = {
    20: [10, 5, 0, -3] * 8,
    10: [5],
    5: [7, 0],
    7: [-3],
    0: [1],
    -3: [],
    1: [],
}


class LevelSite(MockSite):
    """A tree: ``/20/5-1/7-0`` has the priority 7, and is linked from ``/20/5-1``, which has 5."""

    @property
    def asks(self) -> list[str]:
        """Paths that were asked for, in order."""
        return [seen.path for seen in self.log]

    def answer(self, path: str) -> Answer:
        links = "".join(f'<a href="{below}">{below}</a>' for below in below_of(path))
        return 200, {"Content-Type": "text/html"}, f"<html><body>{links}</body></html>".encode()


class Levelled(Spider):
    """Follows every link with the priority in its path."""

    name = "levelled"
    custom_settings: ClassVar = {
        "ADDONS": {"scrapy_focus.Addon": 500},
        "FOCUS_PROGRESS": "off",
        "FOCUS_REQUEST_PRIORITY": True,
        "LOG_LEVEL": "INFO",
        "LOGSTATS_INTERVAL": 0,
        "REMOTE_CONTROL_ENABLED": False,
        "ROBOTSTXT_OBEY": False,
        "TELNETCONSOLE_ENABLED": False,
    }

    def __init__(self, root: str, out: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.root, self.out = root, Path(out)

    async def start(self) -> AsyncIterator[Any]:
        yield Request(self.root + START, priority=level_of(START))

    def parse(self, response: Response) -> Iterator[Any]:
        for link in response.css("a"):
            yield response.follow(link, priority=level_of(link.attrib["href"]))

    def closed(self, reason: str) -> None:
        stats = {**self.crawler.stats.get_stats(), "finish_reason": reason}
        write_atomically(self.out / "end", json.dumps(stats, default=str).encode())


class LevelledNursery(Nursery):
    """Starts runs of this spider."""

    def start(self, **run: Any) -> Running:
        return super().start(spider="levels.Levelled", **run)


class LevelHunt(Hunt):
    """Kills early enough that there is something left for three more kills."""

    site: LevelSite

    def after_requests(self, running: Running) -> bool:
        """When the site has got some requests more."""
        enough = len(self.site.log) + self.rng.randint(1, 25)
        return self._until(running, lambda: len(self.site.log) >= enough, self.rng.uniform(0, 0.02))


def level_of(path: str) -> int:
    """Return the priority of a path."""
    return int(re.match(r"-?\d+", path.rpartition("/")[2])[0])


def below_of(path: str) -> list[str]:
    """Return what a page links to."""
    return [f"{path}/{level}-{i}" for i, level in enumerate(BELOW[level_of(path)])]


def all_paths(path: str = START) -> list[str]:
    """Return a path and all below it."""
    return [path, *(each for below in below_of(path) for each in all_paths(below))]
