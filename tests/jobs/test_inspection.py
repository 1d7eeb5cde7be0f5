"""Jobs that are looked at, checked and repaired: real ones, with real damage."""

from __future__ import annotations

import json
import logging
import random
import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from scrapy_focus import Budget, Crawl, Policy, ResumeError, StorageError
from scrapy_focus.checks import _Site
from scrapy_focus.jobs.doctor.inspection import look, open_readonly
from scrapy_focus.jobs.doctor.repair import check_job
from scrapy_focus.jobs.doctor.tail import read_tail
from scrapy_focus.jobs.job import Job
from scrapy_focus.jobs.journal import Journal, read_journal
from scrapy_focus.policies.branching.policy import BranchingBandit
from scrapy_focus.policies.orderings import BreadthFirst, Random
from scrapy_focus.policies.tagpath.policy import TagPath
from tests.made import fetch, links

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

POLICIES: dict[str, Callable[[], Policy]] = {
    "bfs": BreadthFirst,
    "random": Random,
    "tagpath": lambda: TagPath(probe=False),
    "probe": TagPath,
    "branching": BranchingBandit,
}
SITE = _Site(300)
FILE = "frontier.sqlite"


def run(jobdir: Path, policy: Policy, steps: int, *, every: int = 25) -> Crawl:
    """Crawl some steps of a site with up to four picks in flight, and return the crawl in mid-course."""
    crawl = Crawl(policy, seed=3, strict=True, job=Job(jobdir / "focus", every=every), budget=Budget(requests=500))
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


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Jobs of crawls that were killed, and as ``logged`` one as it is when its process is gone: with SQLite's log."""
    folders = {}
    for name, policy in POLICIES.items():
        folders[name] = tmp_path_factory.mktemp(name) / "job"
        crawl = run(folders[name], policy(), 150)
        if name == "bfs":
            crawl.job.flush()
            folders["logged"] = shutil.copytree(folders[name], tmp_path_factory.mktemp("logged") / "job")
        kill(crawl)
    return folders


@pytest.fixture(scope="module")
def references(made: dict[str, Path]) -> dict[str, dict[str, Any]]:
    """What the crawls of those jobs begin with when they go on."""
    return {name: resumed(made[name], POLICIES.get(name, BreadthFirst)()) for name in made}


@pytest.fixture
def job(made: dict[str, Path], tmp_path: Path) -> Path:
    """A job of a breadth-first crawl that was killed."""
    return shutil.copytree(made["bfs"], tmp_path / "job")


def resumed(jobdir: Path, policy: Policy) -> dict[str, Any]:
    """Let a copy of a crawl go on, and return what it began with."""
    copy = shutil.copytree(jobdir, jobdir.with_name("resumed"))
    try:
        crawl = Crawl(policy, strict=True, job=Job(copy / "focus"), budget=Budget(requests=500))
        frontier = crawl.frontier
        places = [each for arm in range(len(frontier.waiting)) for each in frontier.scan(arm)]
        state = {
            "waiting": {link.key: (link.url, link.host, link.depth, place.arm, place.rank, place.method) for link, place in places},
            "outcomes": crawl.counts["outcomes"],
            "used": crawl.budget.requests_used,
            "went on": 0,
        }  # fmt: skip
        while state["went on"] < 5 and (pick := crawl.next()) is not None:
            crawl.sent(pick.id)
            crawl.report(*SITE.answer(pick))
            state["went on"] += 1
        frontier.check()
        crawl.checkpoint()
        crawl.close()
        assert check_job(copy, say=str).is_well
        return state
    finally:
        shutil.rmtree(copy)


def contents(jobdir: Path) -> dict[str, bytes]:
    """Return the files of a job, but what SQLite makes for itself, and who had it last."""
    folder = jobdir / "focus"
    return {
        path.name: path.read_bytes() for path in folder.iterdir()
        if path.is_file() and not path.name.endswith("-shm") and path.name not in ("lock", "pid")
    }  # fmt: skip


def sql(jobdir: Path, *statements: str) -> None:
    """Change the file of a frontier."""
    with closing(sqlite3.connect(jobdir / "focus" / FILE, isolation_level=None)) as database:
        for statement in statements:
            database.execute(statement)


def ask(jobdir: Path, question: str) -> Any:
    """Return the first value of an answer."""
    with closing(open_readonly(jobdir / "focus" / FILE)) as database:
        return database.execute(question).fetchone()[0]


def fixed(jobdir: Path) -> list[str]:
    """Repair a job, and return what was done; what was there before is in the copies, and a second check is content."""
    before = contents(jobdir)
    checkup = check_job(jobdir, fix=True, say=str)
    assert checkup.is_well, checkup.left
    after = contents(jobdir)
    changed = {name for name in before if before[name] != after.get(name)} - {f"{FILE}-wal"}
    assert changed <= {path.name for path in checkup.copies.iterdir()}
    for path in checkup.copies.iterdir():
        assert path.read_bytes() == before[path.name]
    again = check_job(jobdir, say=str)
    assert again.is_well
    return checkup.done


# Looking


@pytest.mark.parametrize("name", [*POLICIES, "logged"])
def test_a_job_says_what_a_resume_would_find(name: str, made: dict[str, Path], tmp_path: Path) -> None:
    """Outcomes, requests, rewards and picks in flight are those of the recovered crawl; nothing is changed."""
    jobdir = shutil.copytree(made[name], tmp_path / "job")
    before = contents(jobdir)
    found = look(jobdir)
    assert check_job(jobdir, say=str).is_well
    assert contents(jobdir) == before
    crawl = Crawl(POLICIES.get(name, BreadthFirst)(), strict=True, job=Job(jobdir / "focus"))
    assert found["state"] == "killed"
    assert found["outcomes"] == crawl.counts["outcomes"]
    assert found["rewards"] == crawl.rewards
    assert found["used"]["requests"] == crawl.budget.requests_used
    assert found["left"]["requests"] == 500 - crawl.budget.requests_used
    assert found["links"]["in_flight"] == len(crawl.recovered)
    assert found["policy"].endswith(type(crawl.policy).__name__)
    assert found["best_arms"] == [] or found["best_arms"][0]["pulls"] > 0
    assert json.loads(json.dumps(found)) == found
    kill(crawl)


@pytest.mark.parametrize("name", POLICIES)
def test_the_counts_are_those_of_the_frontier(name: str, tmp_path: Path) -> None:
    """After a clean stop, waiting, arms, fetched and probed are what the frontier has, and nothing flies."""
    crawl = run(tmp_path, POLICIES[name](), 150)
    for pick in list(crawl._flying.values()):
        crawl.release(pick.id)
    crawl.checkpoint()
    crawl.job.flush()
    frontier = crawl.frontier
    found = look(tmp_path)
    assert found["state"] == "in use"
    assert found["links"]["waiting"] == len(frontier)
    assert found["links"]["arms"] == (frontier.waiting > 0).sum()
    known = [state for state in frontier.states(range(301)) if state > 2]
    assert found["links"]["fetched"] >= sum(state == 3 for state in known)
    assert found["links"]["in_flight"] == found["events_since_checkpoint"] == 0
    crawl.close()
    assert look(tmp_path)["state"] == "stopped"
    assert not (tmp_path / "focus" / f"{FILE}-wal").exists(), "looking leaves nothing behind"


def test_a_running_crawl_can_be_looked_at(tmp_path: Path) -> None:
    """At each step, with a checkpoint after every third outcome, what is said adds up; and the crawl is not disturbed."""
    crawl = Crawl(BreadthFirst(), strict=True, job=Job(tmp_path / "focus", every=3))
    crawl.add(links(*range(40)))
    for n in range(30):
        fetch(crawl)
        found = look(tmp_path)
        assert (found["state"], found["outcomes"]) == ("in use", n + 1)
        assert found["links"]["waiting"] - found["links"]["picked_since"] <= 40 - n
    with pytest.raises(ResumeError, match="in use by process"):
        check_job(tmp_path, say=str)
    crawl.close()


def test_a_policy_that_cannot_be_read_is_no_obstacle(job: Path) -> None:
    """Everything else is said."""
    sql(job, "UPDATE notes SET value = x'80' WHERE name = 'policy'")
    found = look(job)
    assert found["best_arms_error"].startswith("the policy cannot be read")
    assert found["outcomes"] == 74


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (None, "does not exist"),
        ([], "no JOBDIR of scrapy_focus"),
        (["requests.seen"], "a JOBDIR of Scrapy's own scheduler"),
        (["focus/crawl.json"], "scrapy_focus 0.1.0"),
        (["focus/lock"], "nothing is stored in"),
        (["focus/journal.3"], "frontier.sqlite is missing, and cannot be made again"),
        (["focus/frontier.sqlite"], "frontier.sqlite is empty"),
    ],
)
@pytest.mark.parametrize("command", [look, check_job])
def test_what_is_no_job_is_refused(
    command: Callable[[Path], object], names: list[str] | None, message: str, tmp_path: Path
) -> None:
    """A folder without a crawl is told apart from an older format and from damage, and nothing is made in it."""
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


# Damage to journals


def _journal(jobdir: Path) -> Path:
    (path,) = (jobdir / "focus").glob("journal.*")
    return path


@pytest.mark.parametrize("seed", range(12))
def test_a_journal_is_cut_at_its_last_whole_record(seed: int, job: Path) -> None:
    """Cut anywhere, it is found, and repaired: what stands before is gone through, and what is lost is said."""
    path = _journal(job)
    data = path.read_bytes()
    ends = [end for _, end in read_journal(path)]
    at = random.Random(seed).randrange(1, len(data))
    path.write_bytes(data[:at])
    whole = sum(end <= at for end in ends)
    checkup = check_job(job, say=str)
    assert checkup.is_well == (at in ends)
    assert checkup.events == whole
    if not checkup.is_well:
        assert "is cut off at byte" in checkup.found[0]
        done = fixed(job)
        assert f"{whole:,} event" in done[0]
        assert len(list(read_journal(path))) == whole
    assert resumed(job, BreadthFirst())["went on"] == 5


@pytest.mark.parametrize("how", ["flip", "zeros", "garbage"])
@pytest.mark.parametrize("seed", range(6))
def test_damage_in_a_journal_is_found(how: str, seed: int, job: Path) -> None:
    """Wrong bytes anywhere are found; the whole events behind them are counted, and the crawl goes on without them."""
    path, draw = _journal(job), random.Random(seed)
    data = bytearray(path.read_bytes())
    ends = [0, *(end for _, end in read_journal(path))]
    at = draw.randrange(len(data))
    n = {"flip": 1, "zeros": 64, "garbage": 64}[how]
    data[at : at + n] = {
        "flip": bytes([data[at] ^ 1 << draw.randrange(8)]),
        "zeros": bytes(64),
        "garbage": draw.randbytes(64),
    }[how]
    data = data[: ends[-1]]
    path.write_bytes(data)
    whole = sum(end <= at for end in ends) - 1
    behind = sum(start >= at + n for start in ends[:-1])
    checkup = check_job(job, say=str)
    assert not checkup.is_well
    assert checkup.events == whole
    tail = read_tail(path.parent, int(path.suffix[1:]), _flying(job))
    assert tail.lost.total() == behind
    assert f"{behind:,} whole event" in checkup.found[0]
    fixed(job)
    assert resumed(job, BreadthFirst())["went on"] == 5


def _flying(jobdir: Path) -> list[int]:
    with closing(open_readonly(jobdir / "focus" / FILE)) as database:
        return [pick_id for (pick_id,) in database.execute("SELECT id FROM flying")]


def test_zeros_behind_a_journal_do_not_stop_a_resume(job: Path) -> None:
    """What a file system leaves after a power failure is left out, as any other end that is cut off."""
    path = _journal(job)
    events = len(list(read_journal(path)))
    path.write_bytes(path.read_bytes() + bytes(4096))
    assert len(list(read_journal(path))) == events
    assert not check_job(job, say=str).is_well
    assert resumed(job, BreadthFirst())["outcomes"] == 74


@pytest.mark.parametrize(
    "event",
    [
        (),
        (
            "outcome",
            (99, "GET", 200, "", 0, 0.0, 0, "", 0.0, None),
            [],
            [],
            {"requests": 1, "bytes": 0, "seconds": 0},
            {},
        ),
        ("outcome", 7),
        ("release", 99),
        ("used", -1),
        ("used", None),
        ("add", [(1, 2)], None),
        ("add", [], (99,)),
        ("pick", "1", 2, []),
        ("sing", 1),
    ],
)
def test_events_that_do_not_fit_are_found(event: tuple[Any, ...], job: Path) -> None:
    """A record that is whole and makes no sense is where a repair cuts the journal."""
    path = _journal(job)
    events = list(read_journal(path))
    journal = Journal(path, keep=events[40][1])
    journal.append(event)
    for later, _ in events[41:50]:
        journal.append(later)
    journal.close()
    checkup = check_job(job, say=str)
    assert "cannot be used from byte" in checkup.found[0]
    assert checkup.events == 41
    assert "10 whole events" in fixed(job)[0]
    assert resumed(job, BreadthFirst())["went on"] == 5


def test_a_missing_journal_is_begun_anew(job: Path) -> None:
    """What the checkpoint has stays, and what came since is said to be lost."""
    number = int(_journal(job).suffix[1:])
    checkpoint = ask(job, "SELECT count(*) FROM links")
    _journal(job).rename(job / "focus" / f"journal.{number + 1}")
    with pytest.raises(StorageError, match=r"journal\.\d is missing"):
        resumed(job, BreadthFirst())
    assert f"journal.{number} is missing" in check_job(job, say=str).found[0]
    (done,) = fixed(job)
    assert "is lost" in done
    assert "72 whole events in them (24 outcome, 24 pick, 24 used)" in done
    state = resumed(job, BreadthFirst())
    assert len(state["waiting"]) == checkpoint
    assert state["outcomes"] == 50


def test_journals_that_nothing_needs_do_no_harm(job: Path) -> None:
    """They are mentioned, and removed by a repair; those behind a gap are damage."""
    (job / "focus" / "journal.1").write_bytes(b"old")
    checkup = check_job(job, say=str)
    assert checkup.is_well
    assert checkup.harmless == ["journal.1 is needed no more"]
    assert fixed(job) == ["removed journal.1, needed no more"]
    (job / "focus" / "journal.9").write_bytes(_journal(job).read_bytes())
    assert "journal.4 is missing" in check_job(job, say=str).found[0]
    fixed(job)
    assert resumed(job, BreadthFirst())["outcomes"] == 74


# Damage to what is in the tables


@pytest.mark.parametrize(
    ("statement", "finding", "repair"),
    [
        ("INSERT INTO links SELECT row + 1000, key, url, host, depth, origin, payload, arm, rank, method, memo FROM links",
         "wait twice", "second rows of links that waited twice"),
        ("UPDATE links SET arm = -1 WHERE row % 2", "impossible arm", "which is 0 from now on"),
        ("UPDATE links SET rank = 'x' WHERE row % 5 = 0", "impossible rank", "which is 0.0"),
        ("UPDATE links SET method = 'POST'", "impossible method", "which is 'GET'"),
        ("UPDATE links SET memo = x'000102'", "impossible memo", "which is NULL"),
        ("UPDATE links SET depth = -3, origin = 'y' WHERE row % 3 = 0", "impossible depth", "which is 0"),
        ("UPDATE links SET url = x'00' WHERE row = (SELECT min(row) FROM links WHERE row NOT IN (SELECT row FROM flying))",
         "1 link is stored without a readable URL", "1 lost"),
        ("UPDATE links SET url = CAST(x'68ff' AS TEXT) WHERE row = (SELECT max(row) FROM links)", "without a readable URL", "1 lost"),
        ("DELETE FROM hosts WHERE host = 0", "hosts have gaps", "anew"),
        ("UPDATE hosts SET name = (SELECT name FROM hosts WHERE host = 0)", "come twice", "numbered 1 host anew"),
        ("UPDATE hosts SET name = CAST(x'ff' AS TEXT) WHERE host = 1", "without a readable name", "removed 1 host"),
        ("UPDATE links SET host = 77", "on a host that is not there", "the host that the URL has"),
        ("INSERT INTO flying VALUES (5000, 99999, NULL)", "1 pick in flight without its link", "removed 1 pick"),
        ("INSERT INTO flying SELECT id + 500, row, NULL FROM flying", "in flight twice", "wait again"),
        ("UPDATE seen SET keys = substr(keys, 1, length(keys) - 3)", "ends within one", "behind the last whole one"),
        ("UPDATE seen SET keys = x'00'", "cannot be read", "may be fetched again"),
        ("UPDATE seen SET state = 9", "impossible state", "for fetched"),
        ("DELETE FROM counters", "counters disagree", "counted anew"),
        ("UPDATE counters SET value = 1", "counters disagree", "counted anew"),
        ("DELETE FROM notes WHERE name = 'journal'", "number of its journal: there is journal.3", "took journal.3"),
        ("UPDATE notes SET value = CAST('2' AS BLOB) WHERE name = 'journal'", "number of its journal", "took journal.3"),
        ("DELETE FROM notes WHERE name = 'crawl'", "numbers of the crawl are damaged", "its budget begins anew"),
        ("UPDATE notes SET value = substr(value, 1, 50) WHERE name = 'crawl'", "numbers of the crawl are damaged", "set"),
        ("UPDATE notes SET value = CAST(replace(CAST(value AS TEXT), '\"requests\": ', '\"requests\": 1') AS BLOB) WHERE name = 'crawl'",
         "description cannot be relied on", "took its other numbers as they are"),
        ("UPDATE notes SET value = x'80' WHERE name = 'policy'", "the policy cannot be read", "dropped the policy"),
        ("UPDATE notes SET value = zeroblob(length(value)) WHERE name = 'policy'", "the policy cannot be read", "50 outcomes is lost"),
        ("UPDATE notes SET value = x'00' WHERE name = 'sums'", "checksum", "as it is"),
        ("UPDATE notes SET value = 'text' WHERE name = 'journal'", "number of its journal", "took journal.3"),
        ("UPDATE notes SET name = CAST(x'ff' AS TEXT) WHERE name = 'policy'", "cannot be read", "dropped the policy"),
        ("UPDATE counters SET name = CAST(x'ff' AS TEXT) WHERE name = 'id'", "cannot be read", "counted anew"),
        ("UPDATE links SET method = CAST(x'ff' AS TEXT)", "impossible method", "which is 'GET'"),
        ("UPDATE notes SET value = x'80' WHERE name IN ('policy', 'crawl', 'journal')", "the policy cannot be read", "dropped the policy"),
    ],
)  # fmt: skip
def test_damage_in_the_tables_is_found_and_repaired(statement: str, finding: str, repair: str, job: Path) -> None:
    """Each kind is named, and after the repair the crawl goes on with all links that can be read."""
    before = ask(job, "SELECT count(*) FROM links")
    sql(job, statement)
    checkup = check_job(job, say=str)
    assert any(finding in what for what in checkup.found), checkup.found
    done = fixed(job)
    assert any(repair in sentence for sentence in done), done
    assert ask(job, "SELECT count(*) FROM links") == before - ("1 lost" in repair)
    assert resumed(job, BreadthFirst())["went on"] == 5


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_that_is_lost_begins_anew(
    name: str, made: dict[str, Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """All links wait still, those that were in flight too; what came since is gone through again; a kill later is survived."""
    jobdir = shutil.copytree(made[name], tmp_path / "job")
    reference = resumed(jobdir, POLICIES[name]())
    sql(jobdir, "UPDATE notes SET value = x'8005' WHERE name = 'policy'")
    with pytest.raises(StorageError, match=r"the policy in .* is damaged; see scrapy focus-check"):
        resumed(jobdir, POLICIES[name]())
    assert "dropped the policy" in fixed(jobdir)[-1]
    assert check_job(jobdir, say=str).harmless == [
        "there is no policy: the next run places all links anew and begins to learn"
    ]
    assert look(jobdir)["outcomes"] == reference["outcomes"]
    caplog.set_level(logging.WARNING)
    crawl = Crawl(POLICIES[name](), strict=True, job=Job(jobdir / "focus"))
    assert "begins to learn anew" in caplog.text
    assert crawl.counts["outcomes"] == reference["outcomes"]
    waiting = {link.key for arm in range(len(crawl.frontier.waiting)) for link, _ in crawl.frontier.scan(arm)}
    assert waiting == reference["waiting"].keys()
    crawl.frontier.check()
    for _ in range(5):
        pick = crawl.next()
        crawl.sent(pick.id)
        crawl.report(*SITE.answer(pick))
    crawl.next()
    kill(crawl)
    assert check_job(jobdir, say=str).is_well
    state = resumed(jobdir, POLICIES[name]())
    assert state["outcomes"] == reference["outcomes"] + 5


class Homeless(BreadthFirst):
    """Cannot be imported any more when its job is checked."""


def test_a_policy_whose_class_is_elsewhere_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside of its project a policy cannot be read, which is no damage: it is not dropped, and the message says why."""
    kill(run(tmp_path, Homeless(), 60))
    monkeypatch.delattr(f"{__name__}.Homeless")
    checkup = check_job(tmp_path, fix=True, say=str)
    assert not checkup.is_well
    assert "run this where the crawl runs" in checkup.left[0]
    assert not checkup.done
    monkeypatch.undo()
    assert check_job(tmp_path, say=str).is_well


# Damage to the file


def damage(path: Path, how: str, draw: random.Random) -> None:
    """Do something bad to a file."""
    data = bytearray(path.read_bytes())
    at = draw.randrange(len(data))
    if how == "cut":
        del data[at:]
    else:
        new = {"flip": bytes([data[at] ^ 1 << draw.randrange(8)]), "zeros": bytes(512), "garbage": draw.randbytes(64)}[
            how
        ]
        data[at : at + len(new)] = new
    path.write_bytes(data)


@pytest.mark.parametrize("how", ["flip", "zeros", "garbage", "cut"])
@pytest.mark.parametrize("name", ["bfs", "tagpath", "probe", "logged"])
@pytest.mark.parametrize("seed", range(5))
def test_damage_anywhere_is_found_or_harmless(
    name: str, how: str, seed: int, made: dict[str, Path], references: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    """What is called well resumes with at most one link or key different; what is not is repaired, or says that it cannot be.

    SQLite has no checksums, so that a letter of a URL may change unseen.
    """
    policy, reference = POLICIES.get(name, BreadthFirst), references[name]
    jobdir = shutil.copytree(made[name], tmp_path / "job")
    damage(jobdir / "focus" / (f"{FILE}-wal" if name == "logged" else FILE), how, random.Random(f"{name} {how} {seed}"))
    before = contents(jobdir)
    try:
        checkup = check_job(jobdir, say=str)
    except ResumeError as error:
        refused = str(error)
    else:
        refused = ""
    assert contents(jobdir) == before
    if refused:
        assert "has format" in refused
        return
    if checkup.is_well:
        found = resumed(jobdir, policy())
        assert (found["outcomes"], found["used"]) == (reference["outcomes"], reference["used"])
        differing = {
            key
            for key in {**found["waiting"], **reference["waiting"]}
            if found["waiting"].get(key) != reference["waiting"].get(key)
        }
        assert len(differing) <= (2 if how == "flip" else 30)
        return
    if "the last checkpoint is lost" in checkup.found[0]:
        assert check_job(jobdir, fix=True, say=str).left == checkup.found
        assert contents(jobdir) == before
        return
    try:
        fixed(jobdir)
    except StorageError as error:
        refused = str(error)
    if refused:
        assert "cannot be repaired: no link can be read" in refused
        assert contents(jobdir) == before
    else:
        resumed(jobdir, policy())


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A job with 5000 links on some hundred pages."""
    jobdir = tmp_path_factory.mktemp("large") / "job"
    crawl = Crawl(BreadthFirst(), strict=True, job=Job(jobdir / "focus"))
    crawl.add(links(*range(5000), url=""))
    fetch(crawl)
    crawl.checkpoint()
    crawl.job.flush()
    crawl.close()
    return jobdir


@pytest.mark.parametrize("seed", range(6))
def test_rows_around_damage_are_salvaged(seed: int, large: Path, tmp_path: Path) -> None:
    """Of a file with two destroyed pages, the rows of all others are kept, and no more is lost than what is said."""
    jobdir = shutil.copytree(large, tmp_path / "job")
    path = jobdir / "focus" / FILE
    data, draw = bytearray(path.read_bytes()), random.Random(seed)
    for page in draw.sample(range(8, len(data) // 4096), 2):
        data[page * 4096 : page * 4096 + 4096] = draw.randbytes(4096)
    path.write_bytes(data)
    assert "malformed" in check_job(jobdir, say=str).found[0]
    done = fixed(jobdir)
    kept = ask(jobdir, "SELECT count(*) FROM links")
    assert kept > 4600
    said = next(
        sentence
        for sentence in done
        if sentence.endswith("at most were there") or "read 4,999 links" in sentence or " lost" in sentence
    )
    if "more at most" in said:
        assert int(said.split("; ")[1].split(" ")[0].replace(",", "")) >= 4999 - kept
    crawl = Crawl(BreadthFirst(), strict=True, job=Job(jobdir / "focus"))
    assert len(crawl.frontier) == kept
    fetch(crawl)
    crawl.frontier.check()
    crawl.close()


@pytest.mark.parametrize("page", range(1, 8))
def test_the_first_pages_can_be_lost(page: int, large: Path, tmp_path: Path) -> None:
    """Without the page that says where the tables are, everything is read; without one of them, the others are."""
    jobdir = shutil.copytree(large, tmp_path / "job")
    path = jobdir / "focus" / FILE
    data = bytearray(path.read_bytes())
    data[(page - 1) * 4096 : page * 4096] = bytes(4096)
    path.write_bytes(data)
    if page == 2:
        before = contents(jobdir)
        with pytest.raises(StorageError, match="cannot be repaired: no link can be read"):
            check_job(jobdir, fix=True, say=str)
        assert contents(jobdir) == before
        assert not list((jobdir / "focus").glob("damaged-*"))
        return
    fixed(jobdir)
    assert ask(jobdir, "SELECT count(*) FROM links") == 4999
    crawl = Crawl(BreadthFirst(), strict=True, job=Job(jobdir / "focus"))
    assert len(crawl.frontier) == 4999
    fetch(crawl)
    crawl.frontier.check()
    crawl.close()


def test_a_repair_that_cannot_be_copied_changes_nothing(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without room for copies, the files stay as they are."""
    sql(job, "UPDATE notes SET value = x'80' WHERE name = 'policy'")
    before = contents(job)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("scrapy_focus.jobs.doctor.repair.shutil.copy2", full)
    with pytest.raises(StorageError, match="no room for a copy"):
        check_job(job, fix=True, say=str)
    assert contents(job) == before


@pytest.mark.parametrize("name", [FILE, "journal.3", "lock", "pid"])
def test_each_file_can_be_missing(name: str, job: Path) -> None:
    """The frontier cannot be made again, and that is said; the others can."""
    (job / "focus" / name).unlink()
    if name == FILE:
        with pytest.raises(StorageError, match="cannot be made again"):
            check_job(job, fix=True, say=str)
        return
    assert check_job(job, fix=True, say=str).is_well
    assert resumed(job, BreadthFirst())["went on"] == 5
