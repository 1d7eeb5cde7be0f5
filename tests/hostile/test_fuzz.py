"""Hostile data for every function that reads a site's data: the seeds of ``fuzz.py``, which continues from there."""

from __future__ import annotations

import fuzz
import pytest


@pytest.fixture(scope="module")
def seeds() -> list[bytes]:
    return fuzz.seeds()


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", fuzz.PARSERS)
def test_no_parser_raises(name: str, step: int, seeds: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the hostile sites send, every parser ends without an exception."""
    monkeypatch.setattr("scrapy_focus.lab.recordings.html.LARGEST", 1 << 20)
    for data in seeds[::step]:
        fuzz.PARSERS[name](data)


def test_a_fuzzer_keeps_what_raises_and_continues(tmp_path, monkeypatch) -> None:
    """An exception becomes a finding that can be replayed, once for each place."""

    def raises(data: bytes) -> None:
        if b"bad" in data:
            raise ZeroDivisionError(data)

    monkeypatch.setattr(fuzz, "PARSERS", {"raises": raises})
    fuzzer = fuzz.Fuzzer(tmp_path / "findings")
    for data in (b"\0\0good", b"\0\0bad", b"\0\0bad again", b"\0\0bad once more", b"\0\0bad"):
        fuzzer(data)
    kept = list((tmp_path / "findings").iterdir())
    assert len(kept) == 3
    assert fuzz.unfold(kept[0].read_bytes())[0] == "raises"
    assert "5 calls in all" in fuzzer.report()
    assert "4 times raises-ZeroDivisionError" in fuzzer.report()
