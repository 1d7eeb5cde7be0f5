"""Answers that had arrived when a crawl was killed are not asked for again."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy_focus.engine.feature import Feature
    from scrapy_focus.engine.host import Host


def make(host: Host) -> Feature | None:
    """Return the feature where there is a job, and ``FOCUS_KILL_SAFE_FETCH`` asks for it."""
    if host.job is None:
        return None
    from scrapy_focus.features.answers.feature import ANSWERS, KeepAnswers

    path = host.job.folder / ANSWERS
    if host.config.kill_safe_fetch:
        return KeepAnswers(host, path)
    with suppress(OSError):
        path.unlink()  # or a later run would take them for new
    return None
