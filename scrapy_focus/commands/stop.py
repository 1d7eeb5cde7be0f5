"""``focus stop``: end a crawl on several machines, for all of its workers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from scrapy.exceptions import UsageError

from scrapy_focus.core.errors import ConfigError, FocusError, FolderInUseError
from scrapy_focus.core.printable import inflected, reason_of
from scrapy_focus.finders.kit.commands.base import FocusCommand, add_cluster, called, cluster_of, say

if TYPE_CHECKING:
    import argparse

_PAUSE = 0.5  # seconds between two questions


class StopCommand(FocusCommand):
    """Ends a crawl on several machines."""

    command = "focus-stop"
    arguments = "[NAME] [--cluster ADDRESS]"
    summary = "End a crawl on several machines for all of its workers"
    details = (
        "End a crawl on several machines: no further link is chosen, requests in flight are completed, all workers "
        "stop, and the crawl is stored in its JOBDIR. Waits until that is done. The command that started the crawl "
        "resumes it. NAME is the name of the crawl (FOCUS_CLUSTER_NAME, or the name of the spider), and is optional if "
        "only one crawl is running."
    )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        add_cluster(parser, "use this cluster")

    def check(self, args: list[str], opts: argparse.Namespace) -> None:
        if len(args) > 1:
            raise UsageError(f"name one crawl: {called(self.command)} NAME; got {' '.join(args)}")

    def work(self, args: list[str], opts: argparse.Namespace) -> int:
        from scrapy_focus.cluster.messages import LeaderClosed
        from scrapy_focus.cluster.ray import RayEngine, crawls_of

        address = cluster_of(self.settings, opts.cluster)
        name = _chosen(args, crawls_of(address), address)
        engine = RayEngine(address, name)
        said = ""
        try:
            while not engine.call_now("stop"):
                status = engine.call_now("status")
                if (now := _standing(name, status["workers"], status["out"])) != said:
                    say(said := now)
                time.sleep(_PAUSE)
        except LeaderClosed:
            pass
        except (ConnectionError, FolderInUseError) as error:
            say(f"its leader does not answer: {reason_of(error)}; give the same command again")
            return 1
        except FocusError as error:
            say(f"its leader failed: {reason_of(error)}")
        engine.wait_until_gone()
        say(f"{name} is closed; the command that started it resumes it")
        return 0


def _chosen(args: list[str], names: list[str], address: str) -> str:
    """Return the name of the crawl to end."""
    running = "none is running"
    if names:
        running = f"there {inflected(len(names), 'is', 'are')} {', '.join(names)}"
    if args and args[0] not in names:
        raise ConfigError(f"no crawl {args[0]!r} runs in the cluster ({address}): {running}")
    if not args and len(names) != 1:
        raise ConfigError(f"name the crawl to end in the cluster ({address}): {running}")
    return args[0] if args else names[0]


def _standing(name: str, workers: dict[str, object], out: int) -> str:
    return f"{name} is ending: {len(workers)} {inflected(len(workers), 'worker', 'workers')}, {out} in flight"
