"""Fixtures of crawls of several workers."""

from __future__ import annotations

from tests.cluster.conftest import _no_leaders, sites  # noqa: F401 (pytest finds them here)
