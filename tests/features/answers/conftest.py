"""Fixtures of crawls that are killed."""

from __future__ import annotations

from test_kills import english, nursery, whole  # noqa: F401 (pytest finds them here)
