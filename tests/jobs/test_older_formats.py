"""Jobs that an earlier version wrote: kept as files, and resumed by this one."""

from __future__ import annotations

import json
import tarfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sklearn

from scrapy_focus.core.abilities import FetchesAgain
from scrapy_focus.core.events import FORMAT, OLDEST_FORMAT
from scrapy_focus.frontiers.sqlite.database import format_of
from scrapy_focus.jobs.doctor.check import check_job
from scrapy_focus.jobs.doctor.cures import repair_job
from scrapy_focus.jobs.doctor.folder import open_readonly
from scrapy_focus.jobs.doctor.status import read_status
from tests.jobs.olderjobs import FACTS, POLICIES, SITE, facts_of, opened, step

DATA = Path(__file__).parent / "data"


@pytest.fixture(params=range(OLDEST_FORMAT, FORMAT))
def jobs(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of the jobs of one format."""
    with tarfile.open(DATA / f"format-{request.param}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


def format_in(job: Path) -> int:
    with closing(open_readonly(job / "focus" / "frontier.sqlite")) as database:
        return format_of(database)


def test_the_format_before_can_be_read() -> None:
    """A change of the format keeps a job of the previous one, and reads it."""
    assert OLDEST_FORMAT < FORMAT
    assert {path.name for path in DATA.iterdir()} == {
        f"format-{number}.tar.xz" for number in range(OLDEST_FORMAT, FORMAT)
    }


@pytest.mark.few(4)
@pytest.mark.parametrize("name", POLICIES)
def test_a_job_of_an_earlier_format_resumes(name: str, jobs: Path) -> None:
    """It knows what it knew when it was killed, crawls to its end, and has the current format from then on."""
    facts: dict[str, Any] = json.loads((jobs / FACTS).read_text())[name]
    if (needed := facts.pop("needs", sklearn.__version__)) != sklearn.__version__:
        pytest.skip(f"scikit-learn {needed} wrote its classifier, and this is {sklearn.__version__}")
    before = format_in(jobs / name)
    crawl = opened(jobs / name, name)
    assert facts_of(crawl) == facts
    comes_back = crawl.policy.never_ends or isinstance(crawl.policy, FetchesAgain)
    for _ in range(40 if comes_back else 1000):
        if not step(crawl):
            break
    crawl.frontier.check()
    crawl.checkpoint()
    crawl.close()
    assert check_job(jobs / name, say=str).is_well
    assert before < format_in(jobs / name) == FORMAT
    again = opened(jobs / name, name)
    assert again.counts["outcomes"] > facts["outcomes"]
    if not comes_back:
        urls = {SITE.link(page).url for page, state in enumerate(facts_of(again)["states"]) if state != "NEW"}
        assert urls == SITE.reachable
    again.close()


@pytest.mark.parametrize("look", [read_status, check_job])
def test_who_looks_at_it_changes_nothing(look: Any, jobs: Path) -> None:
    """It is still what the earlier version wrote, so that version can still resume it."""
    job = jobs / "branching"
    before = (job / "focus" / "frontier.sqlite").read_bytes()
    look(job)
    assert (job / "focus" / "frontier.sqlite").read_bytes() == before


def test_a_malformed_one_is_rebuilt(jobs: Path) -> None:
    """Its rows have no checksums, and are accepted without."""
    job = jobs / "breadth"
    path = job / "focus" / "frontier.sqlite"
    with closing(open_readonly(path)) as database:
        (page,) = database.execute("SELECT rootpage FROM sqlite_master WHERE name = 'seen'").fetchone()
        (size,) = database.execute("PRAGMA page_size").fetchone()
    content = bytearray(path.read_bytes())
    content[(page - 1) * size] = 0xFF  # no page of SQLite begins so
    path.write_bytes(content)
    done = repair_job(job, say=str)
    assert done.is_well
    assert format_in(job) == FORMAT
    crawl = opened(job, "breadth")
    while step(crawl):
        pass
    assert crawl.counts["outcomes"] >= json.loads((jobs / FACTS).read_text())["breadth"]["outcomes"]
    crawl.close()
