"""The early files of simulated crawls, with priors that were fitted to other sites, on small synthetic sites."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

import early_files
import prior
from scrapy_focus.lab.recordings.importers.folder import record_site
from scrapy_focus.lab.sites.portal.portal import StatisticsPortal
from scrapy_focus.policies.branching.prior import read_prior

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def call(module: object, monkeypatch: pytest.MonkeyPatch, *args: object) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmark", *map(str, args)])
    module.main()  # type: ignore[attr-defined]


def test_priors_of_other_sites_are_fitted_and_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sites = [tmp_path / f"site{seed}.sqlite" for seed in range(4)]
    for seed, path in enumerate(sites):
        record_site(StatisticsPortal(pages=200, seed=seed, endless=False), path, root="http://portal.example/")
    watched, priors, runs = tmp_path / "watched", tmp_path / "priors", tmp_path / "runs.jsonl"
    call(prior, monkeypatch, "watch", *sites, "--out", watched, "--seeds", 1, "--budget", 150)
    call(prior, monkeypatch, "leave-one-out", watched, "--out", priors)
    call(prior, monkeypatch, "fit", watched, "--out", tmp_path / "all.npz")
    of_site, of_all = read_prior(str(priors / "site0.npz")), read_prior(str(tmp_path / "all.npz"))
    assert len(of_all[0]) > 100
    assert not np.array_equal(of_site[1], of_all[1]), "a site has no part in its own prior"

    judged = ("run", sites[0], "--priors", priors, "--seeds", 2, "--processes", 1, "--out", runs)
    call(early_files, monkeypatch, *judged)
    found = [json.loads(line) for line in runs.read_text().splitlines()]
    assert len(found) == 2 * 2 + 3
    floor = next(run for run in found if run["policy"] == early_files.FLOOR)
    for run in found:
        assert run["found_100"] <= run["found_300"] <= run["targets"]
        assert run["tenth"] <= run["half"] <= run["most"]
        assert run["most"] >= floor["most"]
    call(early_files, monkeypatch, *judged)
    assert len(runs.read_text().splitlines()) == len(found), "finished runs are not repeated"

    capsys.readouterr()
    call(early_files, monkeypatch, "tables", runs)
    said = capsys.readouterr().out
    assert "Files after 100 requests" in said
    assert f"| {floor['most']:,} |" in said.partition("Requests to 90 %")[2]
