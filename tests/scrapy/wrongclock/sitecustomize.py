"""Makes the clock of a process wrong from its start, and jump once: Python imports this first.

It affects only the time of day: on a real machine, ``time.monotonic`` does not jump, either.
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
