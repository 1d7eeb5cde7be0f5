"""``scrapy focus-train`` and ``scrapy focus-keywords``: their output, files and error messages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scrapy.cmdline import execute

from scrapy_focus.topic.models import load_relevance
from scrapy_focus.topic.relevance import LinearRelevance
from tests.learn.topics import pages

if TYPE_CHECKING:
    from pathlib import Path

TRAIN = ("focus-train", "--positive", "on", "--negative", "off")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with twelve pages on wine and nine others."""
    monkeypatch.chdir(tmp_path)
    for name, n in (("on", 12), ("off", 9)):
        (tmp_path / name).mkdir()
        for i, text in enumerate(pages(n, on=name == "on")):
            if i % 2:
                (tmp_path / name / f"{i}.txt").write_text(text)
            else:
                (tmp_path / name / f"{i}.html").write_text(f"<title>Page</title><script>no</script><p>{text}")
    return tmp_path


def call(capsys: pytest.CaptureFixture[str], *words: str, expect: int = 0) -> str:
    """Run a command in this process, and return its output."""
    with pytest.raises(SystemExit) as ended:
        execute(["scrapy", *words])
    said = "".join(capsys.readouterr())
    assert int(ended.value.code or 0) == expect, said
    return said


def test_a_model_is_trained_judged_and_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A table of both classes over the folds, the words that tell, and a model that scores pages."""
    said = call(capsys, *TRAIN, "--out", "wine.npz")
    assert "12 pages on topic, 9 off topic" in said
    assert "over 5 folds" in said
    for name, count in (("on topic", "12"), ("off topic", "9")):
        assert re.search(rf"{name} *│ *{count} │( *[01]\.\d\d\d ± 0\.\d\d\d │){{3}}", said), said
    assert re.search(r"F-macro.*[01]\.\d\d\d ± 0\.\d\d\d", said)
    assert re.search("Typical words on topic: .*wine", said)
    assert re.search("Typical words off topic: .*steel", said)
    model = load_relevance("wine.npz")
    assert isinstance(model, LinearRelevance)
    assert f"wine.npz (0.0 MB, {model.digest[:12]})" in said
    on, off = model.score([pages(1, on=True, seed=7)[0], pages(1, on=False, seed=7)[0]])
    assert on > 0.5 > off


def test_precision_where_the_topic_is_rare(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is lower for a rarer topic, with a range, and a warning if few misjudged pages are known."""
    said = call(capsys, *TRAIN)
    rows = re.findall(
        r"│ *(0\.\d+) │ *(\d\.\d\d) │ *(\d\.\d\d) │ *(0\.\d\d) to (\d\.\d\d) │ recall \d\.\d\d, precision \d\.\d\d │",
        said,
    )
    assert [row[0] for row in rows] == ["0.01", "0.03", "0.1"]
    precisions = [float(row[2]) for row in rows]
    assert precisions == sorted(precisions)
    assert precisions[0] < 0.5 < precisions[2] + 0.3
    assert all(float(low) <= float(precision) <= float(high) for *_, precision, low, high in rows)
    assert re.search(r"misjudges: \d of 9, too few for a good estimate", said)


def test_a_model_knows_how_frequent_its_topic_is(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With --frequency, odds are those of the other model, shifted; the file keeps it, and the table has it."""
    call(capsys, *TRAIN, "--out", "even.npz")
    said = call(capsys, *TRAIN, "--frequency", "0.02", "--out", "rare.npz")
    assert re.search(r"│ *0\.02 │ *\d\.\d\d │ *\d\.\d\d │", said)
    assert "with --frequency" not in said
    even, rare = load_relevance("even.npz"), load_relevance("rare.npz")
    assert isinstance(rare, LinearRelevance)
    assert (rare.frequency, rare.prior) == (0.02, 0.02)
    page = pages(2, on=True, seed=7) + pages(2, on=False, seed=7)
    before, after = even.score(page), rare.score(page)
    shift = np.log(0.02 / 0.98) - np.log(12 / 9)
    logits = [np.log(scores / (1 - scores)) for scores in (before, after)]
    assert logits[1] - logits[0] == pytest.approx(shift, rel=0.2)
    assert rare.score([""])[0] == 0.02


def test_another_linear_model(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With --svm, the file has a support vector machine, and the same tables are printed."""
    assert "F-macro" in call(capsys, *TRAIN, "--svm")
    model = load_relevance("model.npz")
    assert isinstance(model, LinearRelevance)
    assert model.svm


def test_words_of_vectors_are_known_too(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With --vectors, a model judges words that are in no example; the message has their number."""
    pytest.importorskip("gensim")
    words = sorted(set(" ".join(pages(12, on=True)).split()))[:30]
    lines = [f"{word} 1 0.{i:02}" for i, word in enumerate([*words, "unheard"])]
    (folder / "vectors.txt").write_text("\n".join([f"{len(lines)} 2", *lines]))
    said = call(capsys, *TRAIN, "--vectors", "vectors.txt")
    assert "Words known from the vectors only: 1" in said
    model = load_relevance("model.npz")
    assert model.score(["unheard"])[0] != model.score(["nothing"])[0]
    assert "there is no file none.txt" in call(capsys, *TRAIN, "--vectors", "none.txt", expect=1)


def test_misjudged_and_empty_pages_are_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A page in the wrong folder, and one without text, are worth a look."""
    (folder / "off/wrong.txt").write_text(pages(1, on=True, seed=5, length=300)[0])
    (folder / "off/blank.html").write_text("<script>x</script>")
    said = call(capsys, *TRAIN)
    assert re.search(r"Misjudged \d of 22.*\n  0\.\d\d off topic: off/wrong\.txt", said), said
    assert "Skipped, no text in it: off/blank.html" in said


@pytest.mark.parametrize(
    ("n", "folds"), [(3, "over 3 folds"), (2, "over 2 folds"), (1, "One example of a class is not enough")]
)
def test_few_examples(folder: Path, capsys: pytest.CaptureFixture[str], n: int, folds: str) -> None:
    """Fewer folds are used, in the end none; a message says that the numbers are unreliable, but there is a model."""
    for path in sorted((folder / "off").iterdir())[n:]:
        path.unlink()
    said = call(capsys, *TRAIN)
    assert folds in said
    assert "mostly luck" in said
    assert load_relevance("model.npz").digest


def test_folds_can_be_chosen(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As many as there are pages of the smaller class at most."""
    assert "over 3 folds" in call(capsys, *TRAIN, "--folds", "3")
    assert "--folds is 10, and one class has only 9 pages" in call(capsys, *TRAIN, "--folds", "10", expect=1)


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("focus-train",), 2, "--positive DIR and --negative DIR is missing"),
        (("focus-train", "--positive", "on"), 2, "--negative DIR is missing: a model learns how pages"),
        ((*TRAIN, "more"), 2, "unexpected argument more"),
        ((*TRAIN, "--colour"), 2, "unknown option --colour"),
        ((*TRAIN, "--folds", "1"), 2, "--folds is '1'; it takes a number from 2"),
        ((*TRAIN, "--frequency", "3"), 2, "--frequency is '3'; it takes a share of all pages, between 0 and 1"),
        ((*TRAIN, "--frequency", "3 %"), 2, "--frequency is '3 %'; it takes a share"),
        ((*TRAIN, "--neural", "--frequency", "0.03"), 2, "--frequency is for the linear model"),
        ((*TRAIN, "--epochs", "3"), 2, "--epochs needs --neural"),
        ((*TRAIN, "--svm", "--neural"), 2, "give either --svm or --neural"),
        (("focus-train", "--positive", "none", "--negative", "off"), 1, "none is not a folder"),
        ((*TRAIN, "--out", "/proc/no/model.npz"), 1, "--out is /proc/no/model.npz, which cannot be written"),
    ],
)
def test_errors_are_explained(
    folder: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], status: int, said: str
) -> None:
    """What was got, what is expected, what to do; nothing is written."""
    assert said in call(capsys, *words, expect=status)
    assert sorted(path.name for path in folder.iterdir()) == ["off", "on"]


def test_a_neural_model_needs_pytorch(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without it, the extra that brings it is named before anything is read."""
    try:
        import torch  # noqa: F401
    except ImportError:
        assert 'needs PyTorch: pip install "scrapy-focus[neural]"' in call(capsys, *TRAIN, "--neural", expect=2)
    else:
        assert "Typical words" not in call(capsys, *TRAIN, "--neural", "--epochs", "1", "--folds", "2")
        assert type(load_relevance("model.npz")).__name__ == "NeuralRelevance"


# Keywords


def keywords(folder: Path, *first: str) -> tuple[str, ...]:
    (folder / "words.txt").write_text("\n".join(first))
    return ("focus-keywords", "--keywords", "words.txt", "--corpus", "on")


def test_keywords_are_expanded(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Added and rejected words are printed with scores, and all keywords can be written to a file and read again."""
    pytest.importorskip("gensim")
    (folder / "vectors.txt").write_text("5 2\nwine 1 0\ngrape 0 1\nbottle 1 1\nengine -1 0\ncellar 1 0.1\n")
    words = keywords(folder, "wine", "grape", "red wine", "zinfandel")
    said = call(capsys, *words, "--vectors", "vectors.txt", "--out", "more.txt")
    assert "threshold 0.000" in said
    assert "phrases are not used: red wine" in said
    assert "without a vector: zinfandel" in said
    assert "  0.707 bottle (nearest wine 0.707)" in said
    assert "  0.547 cellar (nearest wine 0.995)" in said
    assert "  -0.500 engine: 0.500 short; nearest grape 0.000, but wine -1.000" in said
    added = "bottle  # added, 0.707\ncellar  # added, 0.547\n"
    assert (folder / "more.txt").read_text() == f"wine\ngrape\nred wine\nzinfandel\n{added}"
    said = call(capsys, *words, "--vectors", "vectors.txt", "--limit", "1")
    assert "added 1, of 2 above the threshold" in said
    assert "0.547 cellar (" not in said


def test_vectors_can_be_trained(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On any folder with pages: words of the topic are added, and those of any page are not."""
    pytest.importorskip("gensim")
    for i in range(60):
        for name in ("on", "off"):
            text = pages(1, on=name == "on", seed=i + 1, length=30)[0]
            (folder / name / f"more{i}.txt").write_text(f"the shop {text}")
    said = call(capsys, *keywords(folder, "wine", "grape"), "--train", ".")
    assert "threshold" in said
    assert re.search(r"  -?0\.\d\d\d (vineyard|cellar|harvest|bottle|cork)", said)
    assert "Warning: the vectors are trained on 142 pages" in said
    assert re.search("skipped .* as frequent off the topic, or on few pages: .*shop", said)
    assert not re.search("^  .* (the|shop|steel) ", said, re.MULTILINE)
    assert "contains only pages on the topic" in call(capsys, *keywords(folder, "wine", "grape"), "--train", "on")
    all_words = call(capsys, *keywords(folder, "wine", "grape"), "--train", ".", "--all-words")
    assert "skipped" not in all_words
    judged = [sum(map(int, re.findall(r"^(?:added|rejected) (\d+)", text, re.MULTILINE))) for text in (said, all_words)]
    assert judged[0] < judged[1], "as published, every word is judged"


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("focus-keywords",), 2, "--keywords FILE is missing"),
        (("focus-keywords", "--keywords", "words.txt"), 2, "--corpus DIR is missing"),
        (("focus-keywords", "--keywords", "words.txt", "--corpus", "on"), 2, "give either --vectors FILE, or --train DIR"),
        (
            ("focus-keywords", "--keywords", "words.txt", "--corpus", "on", "--train", "on", "--vectors", "x"), 2,
            "give either --vectors FILE, or --train DIR",
        ),
        (
            ("focus-keywords", "--keywords", "words.txt", "--corpus", "on", "--train", "on", "--limit", "0"), 2,
            "--limit is '0'; it takes a number from 1",
        ),
        (("focus-keywords", "--keywords", "words.txt", "--corpus", "on", "--train", "on"), 1, "words.txt cannot be read"),
    ],
)  # fmt: skip
def test_errors_with_keywords_are_explained(
    folder: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], status: int, said: str
) -> None:
    """What is missing, what belongs together, what cannot be read."""
    assert said in call(capsys, *words, expect=status)
