"""Draw what was found against the number of requests."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy_focus.finders.kit.records.notes import Answer

WIDTH, HEIGHT = 560.0, 280.0  # of the drawing
_LEFT, _RIGHT, _TOP, _BOTTOM = 62.0, 16.0, 30.0, 44.0  # margins
_POINTS = 240  # of the line at most
_STEPS = (1, 2, 5)


class Tick(NamedTuple):
    """A number on an axis."""

    at: float  # along the axis, in units of the drawing
    text: str


class Curve(NamedTuple):
    """The curve as coordinates."""

    points: str  # of a polyline
    area: str  # below it, as the points of a polygon
    across: list[Tick]  # requests
    up: list[Tick]  # finds
    requests: int  # at the end
    found: int
    half: int  # requests after which half of that was found
    half_at: tuple[float, float]  # that point of the line


def curve(answers: Sequence[Answer], worth: Sequence[float]) -> Curve | None:
    """Return the harvest curve of a crawl, given what each outcome brought; ``None`` if it found nothing."""
    requests = [0, *accumulate(max(0, answer.sent) for answer in answers)]
    found = [0.0, *accumulate(worth)]
    if found[-1] <= 0 or not requests[-1]:
        return None
    half, height = next((n, much) for n, much in zip(requests, found, strict=True) if 2 * much >= found[-1])
    kept = sorted({round(i * (len(requests) - 1) / _POINTS) for i in range(_POINTS + 1)})
    wide, high = (WIDTH - _LEFT - _RIGHT) / requests[-1], (HEIGHT - _TOP - _BOTTOM) / found[-1]
    base = HEIGHT - _BOTTOM
    points = " ".join(f"{_LEFT + wide * requests[i]:.1f},{base - high * found[i]:.1f}" for i in kept)
    return Curve(
        points=points, area=f"{points} {WIDTH - _RIGHT:.1f},{base:.1f} {_LEFT:.1f},{base:.1f}",
        across=[Tick(_LEFT + wide * n, f"{n:,}") for n in ticks(requests[-1])],
        up=[Tick(base - high * n, f"{n:,}") for n in ticks(max(1, int(found[-1])))],
        requests=requests[-1], found=round(found[-1]), half=half,
        half_at=(round(_LEFT + wide * half, 1), round(base - high * height, 1)),
    )  # fmt: skip


def ticks(largest: int) -> list[int]:
    """Return round numbers from 0 to a maximum, five or six where possible.

    Examples
    --------
    >>> ticks(1234), ticks(3)
    ([0, 500, 1000], [0, 1, 2, 3])
    """
    step = next(step for power in range(20) for each in _STEPS if (step := each * 10**power) * 5 >= largest)
    return [*range(0, largest + 1, step)]
