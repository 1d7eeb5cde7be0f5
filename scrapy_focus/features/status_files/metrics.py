"""The state of a crawl as metrics, in the OpenMetrics text format 1.0."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Type = Literal["counter", "gauge", "info"]
_SUFFIX: dict[Type, str] = {"counter": "_total", "gauge": "", "info": "_info"}
_ESCAPED = {"\\": r"\\", "\n": r"\n", '"': r"\""}


class Metric(NamedTuple):
    """A metric family."""

    name: str  # without the suffix of its type; it ends with its unit, if any
    type: Type
    help: str
    samples: Sequence[tuple[Mapping[str, str], float]]  # further labels, and the value
    unit: str = ""


def metrics_of(status: Mapping[str, Any]) -> str:
    """Return the metrics of a crawl, from its :func:`~scrapy_focus.engine.live_status.live_status`.

    Each sample has the labels ``spider`` and ``crawl``: the JOBDIR or, without one, the process.
    """
    labels = {"spider": status["spider"], "crawl": status["jobdir"] or f"process {status['process']}"}
    lines: list[str] = []
    for metric in _metrics(status):
        if not metric.samples:
            continue
        lines += [f"# TYPE {metric.name} {metric.type}"]
        lines += [f"# UNIT {metric.name} {metric.unit}"] if metric.unit else []
        lines += [f"# HELP {metric.name} {escaped(metric.help)}"]
        for more, value in metric.samples:
            said = ",".join(f'{name}="{escaped(text)}"' for name, text in (labels | dict(more)).items())
            lines.append(f"{metric.name}{_SUFFIX[metric.type]}{{{said}}} {_number(value)}")
    return "\n".join([*lines, "# EOF", ""])


def escaped(text: str) -> str:
    r"""Return a text as the value of a label.

    Examples
    --------
    >>> escaped('a "b" \\ c')
    'a \\"b\\" \\\\ c'
    """
    return re.sub(r'[\\\n"]', lambda found: _ESCAPED[found[0]], text)


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))


def _metrics(status: Mapping[str, Any]) -> Iterator[Metric]:
    used, links, counts, ending = status["used"], status["links"], status["counts"], status["ending"]
    yield _counter("focus_requests", "Requests sent, of all kinds.", used["requests"])
    yield _counter("focus_received_bytes", "Bytes received, headers and bodies.", used["bytes"], unit="bytes")
    yield _counter("focus_run_seconds", "Time that the crawl ran, in all its runs.", used["seconds"], unit="seconds")
    yield _counter("focus_finds", "Sum of the rewards of all finds.", max(0.0, status["rewards"]))
    yield _counter("focus_items", "Items of this run.", status["items"])
    yield _by("focus_outcomes", "Links followed, by how that ended.", "outcome", _below(counts, "outcome/"))
    yield _by("focus_failed_connections", "Links without an answer, by kind.", "kind", _below(counts, "failure/"))
    yield _by("focus_errors", "Internal errors, by part.", "part", _below(counts, "error/"))
    yield _gauge("focus_waiting_links", "Links that wait to be followed.", links["waiting"])
    yield _gauge("focus_sleeping_links", "Links that wait for their time, or come last.", links["asleep"])
    yield _gauge("focus_in_flight_links", "Links that are being followed.", links["in_flight"])
    expected = [({"bound": bound}, value) for bound, value in (status["expected"] or {}).items()]
    yield Metric("focus_expected_finds", "gauge", "Finds expected to be left: 90 % interval and middle.", expected)
    limits = [({"budget": name}, limit) for name, limit in status["limits"].items() if limit is not None]
    yield Metric("focus_budget", "gauge", "Limits of requests, bytes and seconds.", limits)
    yield _gauge("focus_running", "1 until the crawl has ended.", float(status["state"] != "ended"))
    updated = datetime.fromisoformat(status["updated"]).timestamp()
    yield _gauge("focus_updated_timestamp_seconds", "When this file was written.", updated, unit="seconds")
    if ending is not None:
        yield _gauge("focus_exit_status", "Exit status that belongs to the ending.", ending["status"])
        told = {"ending": ending["kind"], "reason": ending["reason"]}
        yield Metric("focus_ending", "info", "How the crawl ended.", [(told, 1)])


def _counter(name: str, help: str, value: float, *, unit: str = "") -> Metric:
    return Metric(name, "counter", help, [({}, value)], unit)


def _gauge(name: str, help: str, value: float, *, unit: str = "") -> Metric:
    return Metric(name, "gauge", help, [({}, value)], unit)


def _by(name: str, help: str, label: str, values: Mapping[str, float]) -> Metric:
    return Metric(name, "counter", help, [({label: each}, value) for each, value in sorted(values.items())])


def _below(counts: Mapping[str, float], prefix: str) -> dict[str, float]:
    """Return the counts whose names begin with a prefix, without it."""
    return {name.removeprefix(prefix): value for name, value in counts.items() if name.startswith(prefix)}
