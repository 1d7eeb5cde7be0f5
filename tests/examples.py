"""How many examples Hypothesis tries: a quarter by default, and all where ``FOCUS_TEST_EXAMPLES`` is ``full``."""

from __future__ import annotations

import os


def n_examples(full: int) -> int:
    """Return how many examples to try of as many as a thorough run tries, at least ten."""
    return full if os.environ.get("FOCUS_TEST_EXAMPLES") == "full" else max(10, full // 4)
