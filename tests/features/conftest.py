"""Features are tested in live crawls, with the fixtures of other tests that crawl."""

from __future__ import annotations

from livecrawls import (  # noqa: F401 (pytest finds them here)
    _fast_heartbeat,
    _no_freeze,
    pytest_collection_modifyitems,
    pytest_configure,
    site,
)
