"""The benchmark of Wikispeedia: unions of subjects, runs that are not repeated, and what its tables say."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest

import keyword_expansion
import wikispeedia
from scrapy_focus.learn.vectors import train_vectors
from scrapy_focus.web.words import words_of
from wikispeedia import Topic, main, read_web
from wikispeedia_tables import Run, Tables

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

TOPICS = {
    "Cheese": "gouda brie milk",
    "Wine": "grapes cellar dry",
    "Steel": "iron furnace ore",
    "Sea": "water fish deep",
}
N = 240


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder as that of Wikispeedia: an article in four is on each topic, and says so, and links at random."""
    folder = tmp_path_factory.mktemp("wikispeedia")
    (folder / "plaintext_articles").mkdir()
    names = [f"{[*TOPICS][i % 4]}_{i}" for i in range(N)]
    rng = np.random.default_rng(0)
    tables = {
        "articles": [[name] for name in names],
        "links": [[name, names[int(k)]] for name in names for k in rng.integers(0, N, 8)],
        "categories": [[name, f"subject.Food.{name.split('_')[0]}"] for name in names],
    }
    for table, rows in tables.items():
        text = "# made\n" + "".join("\t".join(row) + "\n" for row in rows)
        (folder / f"{table}.tsv").write_text(text, encoding="utf-8")
    for i, name in enumerate(names):
        text = f"{name} article\n" + f"{[*TOPICS.values()][i % 4]} of number {i}. " * 5
        (folder / "plaintext_articles" / f"{name}.txt").write_text(text, encoding="utf-8")
    return folder


def test_a_union_has_the_articles_of_its_subjects(folder: Path) -> None:
    """With a name or without; what nothing is filed under is refused by its name."""
    web = read_web(folder)
    food, cheese, wine = (web.labels(f"subject.Food{part}") for part in ("", ".Cheese", ".Wine"))
    assert food.all()
    assert (cheese.sum(), wine.sum()) == (N / 4, N / 4)
    assert (web.labels("Dinner=subject.Food.Cheese+subject.Food.Wine") == cheese | wine).all()
    with pytest.raises(SystemExit, match=r"under subject\.Bread"):
        web.labels("Dinner=subject.Food.Cheese+subject.Bread")


def test_policies_and_goals_read_one_model(folder: Path) -> None:
    """Each crawl has a separate goal; the model scores each text once."""
    topic = Topic(read_web(folder), "subject.Food.Cheese", 0)
    goals = [topic.goal("classifier", "linear") for _ in range(2)]
    assert goals[0] is not goals[1]
    policy = topic.policy("BestFirst", "linear", goals[0])
    assert policy.relevance is goals[0].relevance  # type: ignore[attr-defined]
    assert topic.policy("BestFirst", "none", goals[0]).relevance is None  # type: ignore[attr-defined]
    model = topic.classifier("linear")
    assert model is not None
    asked: list[str] = []
    inner = model.model.score  # type: ignore[attr-defined]
    model.model.score = lambda texts: asked.extend(texts) or inner(texts)  # type: ignore[attr-defined]
    for _ in range(2):
        assert model.score(["gouda", "ore", "gouda"]).tolist() == inner(["gouda", "ore", "gouda"]).tolist()
    assert asked == ["gouda", "ore"]


def test_the_asynchronous_method_before_tres(folder: Path) -> None:
    """It reads no keywords, judges links by a cosine, and is rewarded by the linear model as all others."""
    topic = Topic(read_web(folder), "subject.Food.Cheese", 0)
    spec, classifier = wikispeedia.ROWS["asynchronous, own features"]
    goal = topic.goal("classifier", classifier)
    policy = topic.policy(spec, classifier, goal)
    assert (policy.mode, policy.keywords, policy.rules) == ("asynchronous", (), {"hosts": False})  # type: ignore[attr-defined]
    assert goal.relevance is topic.classifier("linear")  # type: ignore[attr-defined]
    brie, ore, nothing = policy.relevance.score(["brie", "ore", "zzz"])  # type: ignore[attr-defined]
    assert brie > 0.2 > ore >= nothing == 0


def test_the_expansion_of_keywords(folder: Path) -> None:
    """More words are judged than the distinctive ones, and added words are counted in articles outside the sample."""
    web = read_web(folder)
    counts = [Counter(words_of(text)) for text in web.texts]
    all_words, distinctive = keyword_expansion.rows(web, "subject.Food.Cheese", 0, 2, train_vectors(web.texts), counts)
    assert all_words[0] > distinctive[0]
    assert distinctive[2] >= distinctive[3] == 0, "words of another topic are not distinctive"


def test_runs_are_not_repeated(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Those that are in the output stay as they are; another row is added, and a row that is another policy now, too."""
    output = tmp_path / "runs.json"
    command = [str(folder), "--subjects", "subject.Food.Cheese", "--seeds", "1", "--rewards", "labels"]
    command += ["--output", str(output)]
    main([*command, "--policy", "mine=BFS", "--only", "best"])
    first = json.loads(output.read_text())["runs"]
    assert [(run["policy"], run["spec"]) for run in first] == [
        ("best-first by classifier", "BestFirst"),
        ("mine", "mine=BFS"),
    ]
    assert first[0]["rates"]["100"] > first[1]["rates"]["100"]
    first[0]["rates"]["100"] = 0.125  # as no crawl of 100 pages has it
    output.write_text(json.dumps({**json.loads(output.read_text()), "runs": first}))
    capsys.readouterr()
    main([*command, "--policy", "mine=RANDOM", "--only", "best"])
    second = json.loads(output.read_text())["runs"]
    assert second[:2] == first
    assert [run["spec"] for run in second[2:]] == ["mine=RANDOM"]
    out = capsys.readouterr().out
    assert "| best-first by classifier | 0.125 |" in out
    assert f"| mine | {second[2]['rates']['100']:.3f} |" in out
    main([*command, "--policy", "mine=BFS", "--tables-only", "--only", "random"])
    assert json.loads(output.read_text())["runs"] == second
    with pytest.raises(SystemExit):
        main([*command, "--starts", "2"])


def made(policy: str, subject: str, seed: int, rate: float) -> Run:
    """Return a run with one harvest rate."""
    return Run(
        subject=subject, seed=seed, policy=policy, spec="", classifier="", rewards="labels", fetched=100,
        rates={"100": rate}, precision=0.5, recall=0.75,
    )  # fmt: skip


def test_marks_by_hand() -> None:
    """The first row is marked where the best other one is ahead of it by more than half its spread; empty where nothing is."""
    runs = [
        *(made("ours", subject, seed, rate) for subject in ("A", "B=C+D") for seed, rate in ((0, 0.5), (1, 0.7))),
        made("theirs", "A", 0, 0.66), made("theirs", "B=C+D", 1, 0.68), made("none", "A", 1, 0.1),
    ]  # fmt: skip
    report = Tables(runs, ["ours", "theirs", "absent", "none"]).report()
    assert "| A | 0.600 ± 0.141; theirs 0.660 |" in report
    assert "| B | **!** 0.600 ± 0.141; theirs 0.680 |" in report
    assert "Marked: 1 of 2." in report
    assert "absent" not in report
    assert "precision 0.500 ± 0.000, recall 0.750 ± 0.000" in report
    over = report.partition("### Mean over 2 subjects\n")[2].partition("###")[0]
    assert "| ours | 0.600 ± 0.141 |" in over
    assert "| theirs |  |" in over, "no seed has both subjects"


def test_new_subjects_are_of_their_own() -> None:
    """There are eight, each named once."""
    assert len({wikispeedia.name_of(subject) for subject in wikispeedia.NEW}) == len(wikispeedia.NEW) == 8
