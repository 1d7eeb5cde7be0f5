"""Lets the clock of a process be wrong from its start, and jump once: Python imports this before all else.

Only the time of day: what counts seconds (``time.monotonic``) does not jump on a machine either.
"""

import json
import os
import time

_real, _monotonic, _since = time.time, time.monotonic, time.monotonic()
_first, _later, _after = json.loads(os.environ["SOAK_CLOCK"])  # seconds off, then others, from when on


def _time() -> float:
    return _real() + (_first if _monotonic() - _since < _after else _later)


time.time = _time
time.time_ns = lambda: int(_time() * 1e9)
