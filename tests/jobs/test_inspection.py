"""Jobs that are inspected, checked and repaired: real ones, with real damage."""

from __future__ import annotations

import json
import logging
import random
import shutil
import sqlite3
from contextlib import closing
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest

from scrapy_focus import Budget, Crawl, Policy, PolicyTable, ResumeError, StorageError
from scrapy_focus.jobs.doctor.check import check_job
from scrapy_focus.jobs.doctor.cures import repair_job
from scrapy_focus.jobs.doctor.status import read_status
from scrapy_focus.jobs.job import Job
from scrapy_focus.jobs.journal import Journal, read_journal
from scrapy_focus.lab.checks.policy import _Site
from scrapy_focus.policies.branching.policy import BranchingBandit
from scrapy_focus.policies.orderings import BreadthFirst, Random
from scrapy_focus.policies.tagpath.policy import TagPath
from tests.jobs.walks import all_waiting
from tests.made import EachAgain, fetch, links

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

POLICIES: dict[str, Callable[[], Policy]] = {
    "bfs": BreadthFirst,
    "random": Random,
    "tagpath": lambda: TagPath(probe=False),
    "probe": TagPath,
    "branching": BranchingBandit,
    "again": lambda: EachAgain(every=1000.0),
}
SITE = _Site(300)
FILE = "frontier.sqlite"


def run(jobdir: Path, policy: Policy, steps: int = 150) -> Crawl:
    """Crawl some steps of a site with up to four picks in flight, and return the crawl in mid-course."""
    crawl = Crawl(policy, seed=3, strict=True, job=Job(jobdir / "focus", every=25), budget=Budget(requests=500))
    crawl.add([SITE.link(0)])
    out = []
    for _ in range(steps):
        pick = crawl.next({each.host for each in out}) if len(out) < 4 else None
        if pick is not None:
            crawl.sent(pick.id)
            out.append(pick)
        else:
            crawl.report(*SITE.answer(out.pop(0)))
            crawl.job.flush()  # or the next checkpoint would come when the disk is ready for it
    return crawl


def kill(crawl: Crawl) -> None:
    """End a crawl without a checkpoint."""
    crawl.job.flush()
    crawl.job.close()


def to_the_end(crawl: Crawl) -> None:
    """Crawl until no link is left."""
    while pick := crawl.next():
        crawl.sent(pick.id)
        crawl.report(*SITE.answer(pick))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Killed jobs, and as ``logged`` one in the state right after the kill: with SQLite's log."""
    folders = {}
    for name, policy in POLICIES.items():
        folders[name] = tmp_path_factory.mktemp(name) / "job"
        crawl = run(folders[name], policy())
        if name == "bfs":
            folders["logged"] = shutil.copytree(folders[name], tmp_path_factory.mktemp("logged") / "job")
        kill(crawl)
    return folders


@pytest.fixture
def job(made: dict[str, Path], tmp_path: Path) -> Path:
    """A job of a breadth-first crawl that was killed."""
    return shutil.copytree(made["bfs"], tmp_path / "job")


def resumed(jobdir: Path, policy: Policy) -> dict[str, Any]:
    """Resume a copy of a crawl for five pages, and return what it began with."""
    copy = shutil.copytree(jobdir, jobdir.with_name("resumed"))
    try:
        crawl = Crawl(policy, strict=True, job=Job(copy / "focus"), budget=Budget(requests=500))
        frontier = crawl.frontier
        places = list(all_waiting(frontier))
        state = {
            "waiting": {link.key: (link.url, link.host, link.depth, place) for link, place in places},
            "outcomes": crawl.counts["outcomes"],
            "used": crawl.budget.requests_used,
            "recovered": len(crawl.recovered),
            "rewards": crawl.rewards,
        }
        for _ in range(5):
            pick = crawl.next()
            crawl.sent(pick.id)
            crawl.report(*SITE.answer(pick))
        frontier.check()
        crawl.checkpoint()
        crawl.close()
        assert check_job(copy, say=str).is_well
        return state
    finally:
        shutil.rmtree(copy)


def contents(jobdir: Path) -> dict[str, bytes]:
    """Return the files of a job, except SQLite's temporary ones and the last owner."""
    return {
        path.name: path.read_bytes() for path in (jobdir / "focus").iterdir()
        if path.is_file() and not path.name.endswith("-shm") and path.name not in ("lock", "pid")
    }  # fmt: skip


def sql(jobdir: Path, statement: str) -> Any:
    """Change the file of a frontier, or return the first value of an answer."""
    with closing(sqlite3.connect(jobdir / "focus" / FILE, isolation_level=None)) as database:
        return (database.execute(statement).fetchone() or [None])[0]


def fixed(jobdir: Path) -> list[str]:
    """Repair a job, and return the repairs; the copies have the former state, and a second check finds nothing."""
    before = contents(jobdir)
    checkup = repair_job(jobdir, say=str)
    assert checkup.is_well, checkup.found
    after = contents(jobdir)
    changed = {name for name in before if before[name] != after.get(name)} - {f"{FILE}-wal"}
    assert changed <= {path.name for path in checkup.copies.iterdir()}
    assert all(path.read_bytes() == before[path.name] for path in checkup.copies.iterdir())
    assert check_job(jobdir, say=str).is_well
    return checkup.done


# Looking


@pytest.mark.parametrize("name", [*POLICIES, "logged"])
def test_a_job_says_what_a_resume_would_find(name: str, made: dict[str, Path], tmp_path: Path) -> None:
    """Outcomes, requests, rewards and picks in flight are those of the recovered crawl; nothing is changed."""
    jobdir = shutil.copytree(made[name], tmp_path / "job")
    before = contents(jobdir)
    found = read_status(jobdir)
    assert check_job(jobdir, say=str).is_well
    assert contents(jobdir) == before
    policy = POLICIES.get(name, BreadthFirst)()
    state = resumed(jobdir, policy)
    assert found["state"] == "killed"
    assert (found["outcomes"], found["rewards"]) == (state["outcomes"], state["rewards"])
    assert (found["used"]["requests"], found["left"]["requests"]) == (state["used"], 500 - state["used"])
    assert found["links"]["in_flight"] == state["recovered"]
    assert found["policy"].endswith(type(policy).__name__)
    assert found["best_arms"] == [] or found["best_arms"][0]["pulls"] > 0
    assert json.loads(json.dumps(found)) == found


@pytest.mark.parametrize("name", POLICIES)
def test_the_counts_are_those_of_the_frontier(name: str, tmp_path: Path) -> None:
    """After a clean stop, waiting, arms, fetched and probed equal those of the frontier, and nothing is in flight."""
    crawl = run(tmp_path, POLICIES[name]())
    for pick_id in list(crawl.frontier.flying):
        crawl.release(pick_id)
    crawl.checkpoint()
    crawl.job.flush()
    frontier, found = crawl.frontier, read_status(tmp_path)
    assert found["state"] == "in use"
    assert found["links"]["waiting"] == len(frontier)
    assert found["links"]["asleep"] == crawl.sleepers.asleep
    assert (crawl.sleepers.asleep > 0) == (name == "again")
    due = found["links"]["next_due"]
    assert (
        due is None
        if not crawl.sleepers.asleep
        else datetime.fromisoformat(due).timestamp() == int(crawl.sleepers.next_due)
    )
    assert found["links"]["arms"] == (frontier.waiting > 0).sum()
    known = [state.name for state in frontier.states([SITE.link(number).key for number in range(300)])]
    assert found["links"]["fetched"] == sum(state in ("FETCHED", "GIVEN_UP") for state in known)
    assert found["links"]["probed"] == known.count("PROBED")
    assert found["links"]["in_flight"] == found["events_since_checkpoint"] == 0
    crawl.close()
    assert read_status(tmp_path)["state"] == "stopped"
    assert not (tmp_path / "focus" / f"{FILE}-wal").exists(), "looking leaves nothing behind"


def test_a_running_crawl_can_be_inspected(tmp_path: Path) -> None:
    """At each step, with a checkpoint after every third outcome, the counts add up; the crawl is not disturbed."""
    crawl = Crawl(BreadthFirst(), strict=True, job=Job(tmp_path / "focus", every=3))
    crawl.add(links(*range(40)))
    for n in range(30):
        fetch(crawl)
        found = read_status(tmp_path)
        assert (found["state"], found["outcomes"]) == ("in use", n + 1)
        assert found["links"]["waiting"] - found["links"]["picked_since"] <= 40 - n
    for command in (check_job, repair_job):
        with pytest.raises(ResumeError, match="in use by process"):
            command(tmp_path, say=str)
    crawl.close()


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (None, "does not exist"),
        ([], "not a JOBDIR of scrapy_focus"),
        (["requests.seen"], "a JOBDIR of Scrapy's own scheduler"),
        (["focus/crawl.json"], "scrapy_focus 0.1.0"),
        (["focus/lock"], "nothing is stored in"),
        (["focus/journal.3"], "frontier.sqlite is missing, and cannot be rebuilt"),
        (["focus/frontier.sqlite"], "frontier.sqlite is empty"),
    ],
)
@pytest.mark.parametrize("command", [read_status, check_job, repair_job])
def test_what_is_no_job_is_refused(
    command: Callable[[Path], object], names: list[str] | None, message: str, tmp_path: Path
) -> None:
    """A folder without a crawl is distinguished from an older format and from damage, and nothing is created in it."""
    jobdir = tmp_path / "job"
    for name in names or []:
        (jobdir / name).parent.mkdir(parents=True, exist_ok=True)
        (jobdir / name).touch()
    if names is not None:
        jobdir.mkdir(exist_ok=True)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises((ResumeError, StorageError), match=message):
        command(jobdir)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("command", [read_status, check_job, repair_job])
def test_another_format_is_refused_in_one_line(command: Callable[[Path], object], job: Path) -> None:
    """This is not damage: the message names both formats, and nothing is changed."""
    sql(job, "PRAGMA user_version = 1")
    before = contents(job)
    with pytest.raises(
        ResumeError, match=r"has format 1, of an earlier state of scrapy_focus; this one reads \d+ to \d+"
    ):
        command(job)
    assert contents(job) == before


# One wrong letter


def test_a_wrong_letter_in_a_url_is_found(job: Path) -> None:
    """The check names row and URL, a crawl stops before it asks for another page, and a repair drops that link alone."""
    row = sql(job, "SELECT max(row) FROM links WHERE row NOT IN (SELECT row FROM flying)")
    url = sql(job, f"SELECT url FROM links WHERE row = {row}")
    waiting = sql(job, "SELECT count(*) FROM links")
    wrong = url[:-1] + chr(ord(url[-1]) ^ 1)
    sql(job, f"UPDATE links SET url = '{wrong}' WHERE row = {row}")
    (found,) = check_job(job, say=str).found
    assert found == f"1 link (row {row}, '{wrong}'): wrong checksum"
    crawl = Crawl(BreadthFirst(), strict=True, job=Job(job / "focus"), budget=Budget(requests=500))
    with pytest.raises(StorageError, match=rf"row {row} of its links is not what was stored.*focus check"):
        to_the_end(crawl)
    kill(crawl)
    (done,) = [said for said in fixed(job) if "dropped" in said]
    assert done == f"dropped 1 link with a wrong checksum: '{wrong}'"
    assert sql(job, "SELECT count(*) FROM links") == waiting - 1
    assert resumed(job, BreadthFirst())


@pytest.mark.parametrize(
    ("damage", "said", "repair"),
    [
        (
            "UPDATE links SET payload = payload || x'00' WHERE row = (SELECT max(row) FROM links)",
            "1 link (row",
            "dropped",
        ),
        ("UPDATE links SET key = key + 1 WHERE row = (SELECT max(row) FROM links)", "1 link (row", "dropped"),
        (
            "UPDATE links SET url = CAST(x'68ff' AS TEXT) WHERE row = (SELECT max(row) FROM links)",
            "1 link (row",
            "dropped",
        ),
        ("UPDATE links SET url = x'00ff' WHERE row = (SELECT max(row) FROM links)", "1 link (row", "dropped"),
        (
            "UPDATE seen SET keys = zeroblob(length(keys))",
            "of known keys: wrong checksum",
            "of known keys with wrong checksums",
        ),
    ],
)
def test_other_wrong_rows_are_found(damage: str, said: str, repair: str, job: Path) -> None:
    """So they are in the request or the key of a link, and in keys of fetched pages; then all is well again."""
    sql(job, damage)
    assert any(said in each for each in check_job(job, say=str).found)
    assert any(repair in each for each in fixed(job))


def test_a_wrong_name_of_a_host_is_found(job: Path) -> None:
    """Its links would be fetched at the pace of another host. The right name is unknown."""
    sql(job, "UPDATE hosts SET name = 'h9' WHERE host = 1")
    assert any("the name of host 1 is not what was stored" in each for each in check_job(job, say=str).found)
    assert not repair_job(job, say=str).is_well


# Damage to journals


def journal_of(jobdir: Path) -> Path:
    """Return the one journal of a job."""
    (path,) = (jobdir / "focus").glob("journal.*")
    return path


def damage(path: Path, how: str, draw: random.Random) -> range:
    """Do something bad to a file, and return which bytes are wrong or gone."""
    data = bytearray(path.read_bytes())
    at, size = draw.randrange(1, len(data)), len(data)
    if how == "cut":
        path.write_bytes(data[:at])
        return range(at, size)
    new = {"flip": bytes([data[at] ^ 1 << draw.randrange(8)]), "zeros": bytes(64), "garbage": draw.randbytes(64)}[how]
    data[at : at + len(new)] = new
    path.write_bytes(data[:size])
    return range(at, at + len(new))


@pytest.mark.few(4)
@pytest.mark.parametrize("how", ["cut", "flip", "zeros", "garbage"])
@pytest.mark.parametrize("seed", range(6))
def test_a_journal_is_cut_where_it_is_damaged(how: str, seed: int, job: Path) -> None:
    """Wrong bytes anywhere are found; the whole events after them are counted, and the crawl resumes without them."""
    path = journal_of(job)
    ends = [0, *(end for _, end in read_journal(path))]
    bad = damage(path, how, random.Random(seed))
    whole = sum(end <= bad.start for end in ends) - 1
    behind = sum(start >= bad.stop for start in ends[:-1])
    checkup = check_job(job, say=str)
    assert checkup.events == whole
    assert checkup.is_well == (how == "cut" and bad.start in ends)
    if not checkup.is_well:
        assert f"at byte {ends[whole]:,} of {path.stat().st_size:,}" in checkup.found[0]
        assert f"{behind:,} whole event" in checkup.found[0]
        assert f"{whole:,} event" in fixed(job)[0]
    assert len(list(read_journal(path))) == whole
    resumed(job, BreadthFirst())


def test_zeros_behind_a_journal_do_not_stop_a_resume(job: Path) -> None:
    """The zeros that a file system leaves after a power failure are skipped, like any cut end."""
    with journal_of(job).open("ab") as file:
        file.write(bytes(4096))
    assert not check_job(job, say=str).is_well
    assert resumed(job, BreadthFirst())["outcomes"] == 74


@pytest.mark.parametrize("event", [(), ("outcome", 7), ("release", 99), ("add",), ("sing", 1)])
def test_events_that_make_no_sense_are_found(event: tuple[Any, ...], job: Path) -> None:
    """A repair cuts the journal at a whole record that does not fit those before it."""
    path = journal_of(job)
    events = list(read_journal(path))
    journal = Journal(path, keep=events[40][1])
    for each in (event, *(later for later, _ in events[41:50])):
        journal.append(each)
    journal.close()
    checkup = check_job(job, say=str)
    assert "cannot be used from byte" in checkup.found[0]
    assert checkup.events == 41
    assert "10 whole events" in fixed(job)[0]
    resumed(job, BreadthFirst())


def test_a_missing_journal_is_created(job: Path) -> None:
    """The content of the checkpoint stays, and later events are reported as lost."""
    path = journal_of(job)
    path.rename(path.with_suffix(".4"))
    with pytest.raises(StorageError, match=r"journal\.3 is missing"):
        resumed(job, BreadthFirst())
    assert "journal.3 is missing" in check_job(job, say=str).found[0]
    (done,) = fixed(job)
    assert "is lost" in done
    assert "72 whole events in them (24 outcome, 24 pick, 24 sent)" in done
    state = resumed(job, BreadthFirst())
    assert len(state["waiting"]) == sql(job, "SELECT count(*) FROM links")
    assert state["outcomes"] == 50


def test_journals_that_nothing_needs_do_no_harm(job: Path) -> None:
    """They are mentioned, and removed by a repair; those after a gap are damage."""
    (job / "focus" / "journal.1").write_bytes(b"old")
    checkup = check_job(job, say=str)
    assert checkup.is_well
    assert checkup.harmless == ["journal.1 is no longer needed"]
    assert fixed(job) == ["removed journal.1, no longer needed"]
    (job / "focus" / "journal.9").write_bytes(journal_of(job).read_bytes())
    assert "journal.4 is missing" in check_job(job, say=str).found[0]
    fixed(job)
    assert resumed(job, BreadthFirst())["outcomes"] == 74


# Damage to the content of the tables


@pytest.mark.few(4)
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE notes SET value = x'8005' WHERE name = 'policy'",
        "UPDATE notes SET value = zeroblob(length(value)) WHERE name = 'policy'",
        "DELETE FROM notes WHERE name = 'policy'",
        "UPDATE notes SET value = x'00' WHERE name = 'sums'",
    ],
)
@pytest.mark.parametrize("name", POLICIES)
def test_a_lost_policy_learns_again(
    name: str, statement: str, made: dict[str, Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """All links are still queued, including those in flight; later events are read again; a later kill is survived."""
    jobdir = shutil.copytree(made[name], tmp_path / "job")
    reference = resumed(jobdir, POLICIES[name]())
    sql(jobdir, statement)
    with pytest.raises(StorageError, match=r"is damaged; see focus check"):
        resumed(jobdir, POLICIES[name]())
    assert check_job(jobdir, say=str).found[0].startswith("the policy is unreliable")
    assert "dropped the policy" in fixed(jobdir)[0]
    assert "there is no policy: the next run places" in check_job(jobdir, say=str).harmless[0]
    assert read_status(jobdir)["outcomes"] == reference["outcomes"]
    caplog.set_level(logging.WARNING)
    crawl = Crawl(POLICIES[name](), strict=True, job=Job(jobdir / "focus"))
    assert "starts to learn again" in caplog.text
    assert crawl.counts["outcomes"] == reference["outcomes"]
    waiting = {link.key for link, _ in all_waiting(crawl.frontier)}
    assert waiting == reference["waiting"].keys()
    crawl.sent(crawl.next().id)
    kill(crawl)
    assert check_job(jobdir, say=str).is_well
    assert resumed(jobdir, POLICIES[name]())["outcomes"] == reference["outcomes"]


@pytest.mark.parametrize(
    ("statement", "finding"),
    [
        ("UPDATE links SET sum = NULL, key = (SELECT min(key) FROM links)", "links are inconsistent"),
        ("UPDATE links SET arm = -1 WHERE row % 2", "or no arm"),
        ("UPDATE links SET rank = 'x' WHERE row % 5 = 0", "could not convert"),
        ("UPDATE links SET memo = x'000102'", "links are inconsistent"),
        ("DELETE FROM hosts WHERE host = 0", "host 1 is not where it should be"),
        ("UPDATE links SET sum = NULL, host = 77", "a host that is not there"),
        ("DELETE FROM links WHERE row IN (SELECT row FROM flying)", "of its links is missing"),
        ("UPDATE seen SET sum = NULL, keys = substr(keys, 1, length(keys) - 3)", "links are inconsistent"),
        ("DELETE FROM counters", "counters are too low"),
        ("UPDATE counters SET value = 1 WHERE name = 'row'", "counters are too low"),
        ("UPDATE counters SET value = 1 WHERE name = 'id'", "counters are too low"),
        ("DELETE FROM notes WHERE name = 'journal'", "the journal of the last checkpoint is unreliable"),
        ("UPDATE notes SET value = CAST('2' AS BLOB) WHERE name = 'journal'", "the journal of the last checkpoint"),
        ("UPDATE notes SET value = 'text' WHERE name = 'journal'", "the journal of the last checkpoint"),
        ("DELETE FROM notes WHERE name = 'crawl'", "the crawl of the last checkpoint is unreliable"),
        ("UPDATE notes SET value = CAST(replace(CAST(value AS TEXT), ': 1', ': 2') AS BLOB) WHERE name = 'crawl'",
         "the crawl of the last checkpoint is unreliable"),
    ],
)  # fmt: skip
def test_values_that_nobody_wrote_are_found_and_left_alone(statement: str, finding: str, job: Path) -> None:
    """There is no cure for them: the advice is to start again, and nothing is changed."""
    sql(job, statement)
    before = contents(job)
    (what,) = check_job(job, say=str).found
    assert finding in what
    assert "start again with another JOBDIR" in what
    repaired = repair_job(job, say=str)
    assert (repaired.found, repaired.done, repaired.copies) == ([what], [], None)
    assert contents(job) == before


class Homeless(Random):
    """Can no longer be imported when its job is inspected."""

    def best_arms(self, k: int) -> list[tuple[str, float, int]]:
        return [("the only one", self.earned, 7)]

    def tables(self) -> list[PolicyTable]:
        return [PolicyTable("Arms", ("arm", "earned"), [(f"arm {i}", self.earned) for i in range(30)])]

    earned = 2.5


def test_a_job_can_be_inspected_without_the_class_of_its_policy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outside of the project the status has the best arms and the first rows of tables, and a check finds all well;
    nothing is changed.
    """
    kill(run(tmp_path, Homeless(), 60))
    with monkeypatch.context() as patch:
        patch.delattr(f"{__name__}.Homeless")
        assert read_status(tmp_path)["best_arms"] == [{"arm": "the only one", "earned": 2.5, "pulls": 7}]
        rows = [[f"arm {i}", 2.5] for i in range(20)]
        found = read_status(tmp_path)["tables"]
        assert json.loads(json.dumps(found)) == [{"title": "Arms", "columns": ["arm", "earned"], "rows": rows}]
        assert repair_job(tmp_path, say=str).is_well


class Confused(BreadthFirst):
    """Returns invalid best arms."""

    answer: Any = None

    def best_arms(self, k: int) -> list[tuple[str, float, int]]:
        return self.answer

    def tables(self) -> list[PolicyTable]:
        return self.answer


@pytest.mark.parametrize("answer", [None, "abc", [1], [("a", "b", "c")], [("a", float("inf"), float("nan"))]])
def test_a_policy_that_cannot_show_itself_is_stored_all_the_same(answer: object, tmp_path: Path) -> None:
    """Invalid tables do not prevent a checkpoint; the status says where they came from."""
    policy = Confused()
    policy.answer = answer
    kill(run(tmp_path, policy, 60))
    found = read_status(tmp_path)
    assert found["best_arms_error"].startswith("Confused.best_arms failed: ")
    assert found["tables_error"].startswith("Confused.tables failed: ")
    assert found["tables"] == []
    assert resumed(tmp_path, Confused())["outcomes"] > 20


def test_a_policy_is_dropped_where_that_is_asked_for(job: Path) -> None:
    """Even an undamaged one is dropped, for example if it cannot be read where the crawl resumes."""
    outcomes = read_status(job)["outcomes"]
    assert not repair_job(job, say=str).done
    checkup = repair_job(job, anew=True, say=str)
    assert "dropped the policy: what it learned" in checkup.done[0]
    assert checkup.is_well
    assert not repair_job(job, anew=True, say=str).done
    assert resumed(job, BreadthFirst())["outcomes"] == outcomes


# Damage to the file


def repaired_or_refused(jobdir: Path) -> bool:
    """Repair a job, and return whether it is intact now; if it cannot be, nothing is changed, and that is reported."""
    before = contents(jobdir)
    try:
        checkup = repair_job(jobdir, say=str)
    except StorageError as error:
        said = str(error)
    else:
        if checkup.is_well:
            return True
        said = checkup.found[0]
    assert "start again with another JOBDIR" in said
    assert contents(jobdir) == before
    assert not list((jobdir / "focus").glob("damaged-*"))
    return False


@pytest.mark.few(8)
@pytest.mark.parametrize("how", ["flip", "zeros", "garbage", "cut"])
@pytest.mark.parametrize("name", ["bfs", "tagpath", "probe", "again", "logged"])
@pytest.mark.parametrize("seed", range(3))
def test_damage_anywhere_is_found_or_harmless(
    name: str, how: str, seed: int, made: dict[str, Path], tmp_path: Path
) -> None:
    """What is called well resumes with the same links; what is not is repaired, or says that it cannot be.

    Where a link is queued has no checksum, as it changes.
    """
    policy = POLICIES.get(name, BreadthFirst)
    jobdir = shutil.copytree(made[name], tmp_path / "job")
    reference = resumed(jobdir, policy())
    damage(jobdir / "focus" / (f"{FILE}-wal" if name == "logged" else FILE), how, random.Random(f"{name} {how} {seed}"))
    before = contents(jobdir)
    try:
        checkup = check_job(jobdir, say=str)
    except ResumeError as error:
        checkup = None
        refused = str(error)
    assert contents(jobdir) == before
    if checkup is None:
        assert "has format" in refused
    elif checkup.is_well:
        found = resumed(jobdir, policy())
        assert (found["outcomes"], found["used"]) == (reference["outcomes"], reference["used"])
        links, places = (
            [{key: link[part] for key, link in run["waiting"].items()} for run in (found, reference)]
            for part in (slice(3), 3)
        )
        assert links[0] == links[1]
        differing = [key for key in places[0] if str(places[0][key]) != str(places[1][key])]
        assert len(differing) <= (2 if how == "flip" else 30)
    elif repaired_or_refused(jobdir):
        resumed(jobdir, policy())


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A job with 5000 links on some hundred pages."""
    jobdir = tmp_path_factory.mktemp("large") / "job"
    crawl = Crawl(BreadthFirst(), strict=True, job=Job(jobdir / "focus"))
    crawl.add(links(*range(5000), url=""))
    fetch(crawl)
    crawl.checkpoint()
    crawl.close()
    return jobdir


# Pages of the file -> whether a repair keeps the links; the first ones locate the tables, some of which have one page.
PAGES = {(1,): False, (2,): False, (3,): False, (4,): True, (5,): True, (6,): False, (7,): False, (20, 70): True}


@pytest.mark.few(1)
@pytest.mark.parametrize("pages", PAGES)
def test_rows_around_damage_are_kept(pages: tuple[int, ...], large: Path, tmp_path: Path) -> None:
    """Of a file with destroyed pages, the rows of all others are kept; without links, hosts, notes or counters nothing is repaired."""
    jobdir = shutil.copytree(large, tmp_path / "job")
    path = jobdir / "focus" / FILE
    data = bytearray(path.read_bytes())
    for page in pages:
        data[(page - 1) * 4096 : page * 4096] = bytes(4096)
    path.write_bytes(data)
    assert "malformed" in check_job(jobdir, say=str).found[0]
    if not PAGES[pages]:
        assert not repaired_or_refused(jobdir)
        return
    done = fixed(jobdir)
    kept = sql(jobdir, "SELECT count(*) FROM links")
    assert kept > 4600
    assert f"{kept:,} rows of links" in done[0]
    assert kept == 4999 or "of links, rows in" in done[0]
    crawl = Crawl(BreadthFirst(), strict=True, job=Job(jobdir / "focus"))
    assert len(crawl.frontier) == kept
    fetch(crawl)
    crawl.frontier.check()
    crawl.close()


def test_a_repair_that_cannot_be_copied_changes_nothing(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the copies cannot be written, the files are unchanged."""
    sql(job, "UPDATE notes SET value = x'80' WHERE name = 'policy'")
    before = contents(job)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("scrapy_focus.jobs.doctor.cures.shutil.copy2", full)
    with pytest.raises(StorageError, match="a copy of it cannot be written"):
        repair_job(job, say=str)
    assert contents(job) == before


@pytest.mark.parametrize("name", [FILE, "journal.3", "lock", "pid"])
def test_each_file_can_be_missing(name: str, job: Path) -> None:
    """The frontier cannot be rebuilt, and the message says so; the others can."""
    (job / "focus" / name).unlink()
    if name == FILE:
        with pytest.raises(StorageError, match="cannot be rebuilt"):
            repair_job(job, say=str)
        return
    assert repair_job(job, say=str).is_well
    resumed(job, BreadthFirst())
