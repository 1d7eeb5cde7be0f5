"""Avoids repeating requests whose responses had arrived when a crawl was killed."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from scrapy_focus.core.setting import Setting, flag

if TYPE_CHECKING:
    from scrapy_focus.engine.feature import Feature
    from scrapy_focus.engine.host import Host

KILL_SAFE_FETCH = Setting("FOCUS_KILL_SAFE_FETCH", flag(), default=False, in_cluster=False)
SETTINGS = (KILL_SAFE_FETCH,)


def make(host: Host) -> Feature | None:
    """Return the feature if there is a job, and ``FOCUS_KILL_SAFE_FETCH`` is set."""
    if host.job is None:
        return None
    from scrapy_focus.features.answers.feature import ANSWERS, KeepAnswers

    path = host.job.folder / ANSWERS
    if KILL_SAFE_FETCH.of(host.crawler.settings):
        return KeepAnswers(host, path)
    with suppress(OSError):
        path.unlink()  # or a later run would use old responses
    return None
