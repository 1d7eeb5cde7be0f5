"""The benchmark of crawls by a sentence: its wordings, the scorers of others, runs that are not repeated, its tables."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import about_topic
from about_sentences import WORDINGS
from about_topic import KnownEmbedding, Run, Tables, examples_of, main, read
from published_scorers import CoverageOrder, QueryShare
from scrapy_focus import Crawl, Link, Outcome, memory_frontier
from wikispeedia import NEW, Page, Topic, Web

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from scrapy_focus.core.policy import Policy

pytestmark = pytest.mark.slow

N = 120
CALLED = {"subject.Religion": "Church", "subject.Everyday_life": "Kitchen"}


def subject_of(number: int) -> str:
    """One article in three is on religion."""
    return [*CALLED][number % 3 > 0]


def web_of(n: int = N) -> Web:
    """Return a web of articles on two subjects, each with eight links."""
    names = [f"{CALLED[subject_of(i)]}_{i}" for i in range(n)]
    rng = np.random.default_rng(0)
    return Web(
        names=names,
        titles=[name.replace("_", " ") for name in names],
        texts=[f"About {name} and others" for name in names],
        targets=[rng.permutation(n)[:8].tolist() for _ in names],
        subjects=[frozenset([subject_of(i)]) for i in range(n)],
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder as that of Wikispeedia, with the same articles."""
    folder = tmp_path_factory.mktemp("wikispeedia")
    (folder / "plaintext_articles").mkdir()
    web = web_of()
    links = [[web.names[i], web.names[k]] for i, targets in enumerate(web.targets) for k in targets]
    tables = {
        "articles": [[name] for name in web.names],
        "links": links,
        "categories": [[name, subject_of(i)] for i, name in enumerate(web.names)],
    }
    for table, rows in tables.items():
        text = "# made\n" + "".join("\t".join(row) + "\n" for row in rows)
        (folder / f"{table}.tsv").write_text(text, encoding="utf-8")
    for name, text in zip(web.names, web.texts, strict=True):
        (folder / "plaintext_articles" / f"{name}.txt").write_text(text, encoding="utf-8")
    return folder


def test_each_subject_has_three_wordings_and_ten_keywords() -> None:
    """The first is a single word, the last has 5 to 12; the new subjects are among them, each named as there."""
    assert len(WORDINGS) == 13
    assert {*NEW} < WORDINGS.keys()
    for wordings in WORDINGS.values():
        assert [len(wordings.word.split()), len({*wordings.keywords})] == [1, 10]
        assert 2 < len(wordings.plain.split()) < 8
        assert 5 <= len(wordings.rich.split()) <= 12


def test_a_share_counts_words_in_the_url_or_the_text() -> None:
    """Parts of longer words count, case does not, and the host does not; among equals the smaller depth is first."""
    policy = QueryShare(["Star", "moon", "rain", "sun"])
    links = [
        Link("http://sun.test/St%61rfish%20Rain", 1, depth=2),
        Link("http://sun.test/a", 2, depth=2, anchor="MOON of the starlit sun"),
        Link("http://sun.test/b", 3, depth=2),
        Link("http://sun.test/c", 4, depth=1),
    ]
    ranks = [placement.rank for placement in policy.place(links, None) if placement is not None]
    assert np.round(ranks, 2).tolist() == [0.5, 0.75, 0.0, 0.0]
    assert ranks[3] > ranks[2]


def crawl_by(policy: Policy, titles: Sequence[str], page: str) -> list[str]:
    """Return the texts of links in the order of a crawl whose start page has the given text and links to all."""
    crawl = Crawl(policy, frontier=memory_frontier, goal=lambda outcome: 0.0, seed=0, strict=True)
    crawl.add([Link("http://a.test/", 0, "a.test")])
    links = [Link(f"http://a.test/{i}", i + 1, "a.test", 1, title) for i, title in enumerate(titles)]
    came: list[str] = []
    while (pick := crawl.next()) is not None:
        crawl.sent(pick.id)
        text = page if pick.key == 0 else ""
        outcome = Outcome(pick=pick, status=200, mime="text/html", page=Page(pick.url, f"<p>{text}</p>"))
        crawl.report(outcome, links if pick.key == 0 else ())
        came += [titles[pick.key - 1]] if pick.key else []
    crawl.close()
    return came


def test_the_released_sum_prefers_words_of_the_query_and_new_words() -> None:
    """Words on the start page are not new; half of the query and all new outweighs all of the query and nothing new."""
    titles = ["seen", "red wine seen", "white wine", "dry wine", "other"]
    came = crawl_by(CoverageOrder("dry wine", formula="released"), titles, "seen dry wine red")
    # 0.5 x share of the query + 0.3 x share of new words: 0, 0.25, 0.25 + 0.15, 0.5, 0.3
    assert came == ["dry wine", "white wine", "other", "red wine seen", "seen"]


def test_the_documented_product_is_zero_without_the_query_or_without_novelty() -> None:
    """Among the others the rarer word of the query counts for more; equal links keep their order."""
    titles = ["bread", "wine", "wine list", "rare list", "dry ice"]
    came = crawl_by(CoverageOrder("dry wine rare"), titles, "wine dry ice")
    assert came == ["rare list", "wine list", "bread", "wine", "dry ice"]


def test_the_relevance_of_a_text_is_its_bm25() -> None:
    """By hand, for one text with one of the words, among three texts of two words in the mean."""
    policy = CoverageOrder("wine")
    policy.place(
        [Link(f"http://a.test/{i}", i, anchor=text) for i, text in enumerate(["wine", "red bread", "a1b c1d e1f"])],
        None,
    )
    rarity = math.log(1 + (3 - 1 + 0.5) / (1 + 0.5))
    assert policy.score(0) == pytest.approx(rarity * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 1 / 2)))
    assert policy.score(1) == 0


class Counted:
    """An embedding that keeps the texts it was asked for."""

    def __init__(self, digest: str = "counted") -> None:
        self.digest = digest
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return length and number of vowels of each text."""
        self.asked += texts
        return np.array([[len(text), sum(text.count(v) for v in "aeiou")] for text in texts], np.float32).reshape(-1, 2)


def test_each_text_is_embedded_once(tmp_path: Path) -> None:
    """Also by a process that reads the file of another; a file of another embedding is not read."""
    inner = Counted()
    embedding = KnownEmbedding(inner)
    assert embedding.embed(["wine", "a", "wine"]).tolist() == [[4, 2], [1, 1], [4, 2]]
    assert embedding.embed([]).shape == (0, 2)
    assert inner.asked == ["wine", "a"]
    embedding.store(tmp_path / "known.npz")
    for digest, asked in (("counted", ["new"]), ("other", ["wine", "new"])):
        other = KnownEmbedding(inner := Counted(digest))
        other.load(tmp_path / "known.npz")
        assert other.embed(["wine", "new"]).tolist() == [[4, 2], [3, 1]]
        assert inner.asked == asked


def test_examples_come_from_the_sample() -> None:
    """Of each kind as many as asked for, or all that the sample has; another seed draws others."""
    topic = Topic(web_of(600), "subject.Religion", 0)
    given = examples_of(topic, 3, 0)
    assert [len(texts) for texts in given] == [3, 3]
    sample = {f"{topic.web.titles[i]}\n{topic.web.texts[i]}": bool(topic.labels[i]) for i in topic.sample}
    for texts, kind in zip(given, (True, False), strict=True):
        assert [sample[text] for text in texts] == [kind] * 3
    assert examples_of(topic, 3, 1) != given
    assert [len(texts) for texts in examples_of(topic, 1000, 0)] == [sum(sample.values()), 60 - sum(sample.values())]


def test_runs_are_added_and_not_repeated(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A subset of rows and subjects is crawled; a second call does what is missing, and leaves the lines as they are."""
    output = tmp_path / "about.jsonl"
    command = ["crawl", str(folder), "--output", str(output), "--seeds", "1", "--budget", "100"]
    rows = ["--rows", "breadth-first", "share of the sentence's words"]
    main([*command, "--subjects", "Religion", *rows])
    first = output.read_text(encoding="utf-8")
    assert [(run.row, run.wording, run.budget) for run in sorted(read(output), key=lambda run: run.task)] == [
        ("breadth-first", "", 100),
        *(("share of the sentence's words", wording, 100) for wording in ("plain", "rich", "word")),
    ]
    assert all(0 < run.rates["100"] < 1 and run.judgement == {} for run in read(output))
    assert read(output)[0].share == pytest.approx(1 / 3, abs=0.1)
    main([*command, "--subjects", "Religion", "Everyday_life", *rows, "--wordings", "rich"])
    second = output.read_text(encoding="utf-8")
    assert second.startswith(first)
    assert len(read(output)) == 6
    capsys.readouterr()
    main(["tables", "--output", str(output)])
    out = capsys.readouterr().out
    assert "| | Everyday_life | Religion |" in out
    assert "| breadth-first | 0." not in out, "no run has 200 pages"
    with pytest.raises(SystemExit, match="no wordings for Bread"):
        main([*command, "--subjects", "Bread"])


def made(subject: str, wording: str, rate: float, **fields: Any) -> Run:
    """Return a run of a sentence alone with one harvest rate at all points."""
    values: dict[str, Any] = {
        "subject": subject, "seed": 0, "row": "sentence", "wording": wording, "variant": "", "budget": 500,
        "fetched": 500, "rates": {str(n): rate for n in about_topic.SHOWN}, "seconds": 1.0, "share": 0.03,
        "judgement": {"precision": 0.5, "recall": 0.25, "pages": 0.9, "titles": 0.8},
    }  # fmt: skip
    return Run(**values | fields)


def test_tables_by_hand() -> None:
    """Means need all subjects of a seed; the poorest wording is compared with the richest; rare topics have a mean."""
    runs = [
        made(subject, wording, rate)
        for subject in about_topic.NINE
        for wording, rate in (("word", 0.2), ("plain", 0.3), ("rich", 0.4))
    ]
    report = Tables([*runs, made("subject.Science", "word", 0.9, share=0.2, judgement={})]).report()
    nine = report.partition("### Mean over the nine\n")[2].partition("###")[0]
    assert "| *goal of a sentence* | *0.600* | *0.490* | *0.340* | |\n" in nine
    assert "| sentence | 0.300 | 0.300 | 0.300 | 1 |" in nine
    assert "| sentence, rich | 0.400 | 0.400 | 0.400 | 1 |" in nine
    assert "Mean over all thirteen" not in report
    assert "| Religion | 0.200 | 0.300 | 0.400 | 0.50 |" in report
    assert "| mean of topics of about 3 % | 0.030 | 0.500 | 0.250 | 0.900 | 0.800 |  |" in report
    fewer = Tables([*runs[:-1], made("subject.Religion", "rich", 0.9, seed=1)]).report()
    assert "| sentence, rich |" not in fewer.partition("### Mean over the nine\n")[2].partition("###")[0]
