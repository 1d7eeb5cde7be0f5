"""More keywords: the published rule on vectors made by hand, files of vectors, and vectors trained on pages."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from scrapy_focus import ConfigError
from scrapy_focus.learn.vectors import entry_of, load_vectors, train_vectors
from scrapy_focus.topic.expansion import expand, read_keywords, telling
from tests.learn.topics import pages

models = pytest.importorskip("gensim.models")

# In the plane: the cosine of two words is that of the angle between them, whatever the lengths.
ANGLES = {"wine": 0, "grape": 60, "cellar": -30, "bottle": 10, "cork": 65, "steel": 180, "barrel": 100}
DIGEST = """
import zlib
from scrapy_focus.learn.vectors import train_vectors
from tests.learn.topics import pages
vectors = train_vectors(pages(10, on=True) + pages(10, on=False))
print(zlib.crc32(vectors.vectors.tobytes()), *vectors.index_to_key)
"""


def plane(angles: dict[str, float]) -> models.KeyedVectors:
    """Return vectors in the plane, of different lengths."""
    vectors = models.KeyedVectors(2)
    rows = [
        [i * np.cos(np.radians(angle)), i * np.sin(np.radians(angle))] for i, angle in enumerate(angles.values(), 1)
    ]
    vectors.add_vectors(list(angles), np.array(rows, np.float32))
    return vectors


def cos(*degrees: float) -> float:
    """Return the mean of the cosines of some angles."""
    return float(np.cos(np.radians(degrees)).mean())


def test_one_keyword_set_by_hand() -> None:
    """The threshold is the mean over pairs of keywords; a word needs a higher mean to these, not to those added before.

    Keywords stand at 0, 60 and -30 degrees: pairs 60, 30 and 90 apart, so that the threshold is (0.5 + 0.866 + 0) / 3.
    ``bottle`` at 10 degrees is 10, 50 and 40 from them: (0.985 + 0.643 + 0.766) / 3 = 0.798. ``cork`` at 65 degrees is 65, 5
    and 95 from them: (0.423 + 0.996 - 0.087) / 3 = 0.444, too little; with ``bottle`` among the keywords it would be
    (3 * 0.444 + 0.574) / 4 = 0.476, enough.
    """
    words = ["cork", "bottle", "wine", "steel", "unheard", "barrel", "bottle"]
    found = expand(["Wine", " grape", "cellar", "red  wine", "zinfandel", "wine"], words, plane(ANGLES))
    assert found.keywords == ["wine", "grape", "cellar", "red wine", "zinfandel"]
    assert found.threshold == pytest.approx(0.455342, abs=1e-6)
    assert [each.word for each in found.added] == ["bottle"]
    assert found.added[0].score == pytest.approx((0.984808 + 0.642788 + 0.766044) / 3, abs=1e-6)
    assert (found.added[0].nearest, found.added[0].farthest) == ("wine", "grape")
    assert found.added[0].nearest_score == pytest.approx(0.984808, abs=1e-6)
    assert [each.word for each in found.rejected] == ["cork", "barrel", "steel"]
    assert found.rejected[0].score == pytest.approx(cos(65, 5, 95), abs=1e-6)
    assert found.rejected[0].farthest == "cellar"
    assert (found.phrases, found.without_vector, found.unknown) == (["red wine"], ["zinfandel"], 1)
    assert found.all_keywords == [*found.keywords, "bottle"]


def test_a_word_at_the_threshold_is_not_added() -> None:
    """It must be above: with two keywords, a word as far from them as they are from each other is not added."""
    vectors = plane({"a1": 0, "a2": 90, "b": 90, "c": 45})
    vectors.vectors[:] = [[1, 0], [0, 1], [0, 1], [1, 1]]
    found = expand(["a1", "a2"], ["b", "c"], vectors)
    assert found.threshold == 0
    assert [each.word for each in found.added] == ["c", "b"]  # 0.707 and 0.5, both above
    opposite = plane({"a1": 0, "a2": 60, "d": -30})
    opposite.vectors[:] = [[1, 0], [0, 1], [-1, 1]]
    assert not expand(["a1", "a2"], ["d"], opposite).added  # (-0.707 + 0.707) / 2 = 0 = the threshold


def test_too_few_keywords_with_a_vector() -> None:
    """One is not enough for a threshold; the message says which is known."""
    with pytest.raises(ConfigError, match="know wine of the keywords wine, zinfandel, red wine"):
        expand(["wine", "zinfandel", "red wine"], ["grape"], plane(ANGLES))


def test_parts_of_speech_are_tried_in_order() -> None:
    """Where words are marked with their part of speech, nouns come before adverbs, proper nouns, verbs, adjectives."""
    names = ("run_VERB", "run_NOUN", "fast_ADJ", "fast_ADV", "paris_PROPN", "go_VERB", "go")
    vectors = plane(dict.fromkeys(names, 0))
    assert [entry_of(word, vectors) for word in ("run", "fast", "paris", "go", "none")] == [
        "run_NOUN",
        "fast_ADV",
        "paris_PROPN",
        "go",
        "",
    ]
    assert not expand(["run", "fast"], ["paris"], vectors).added  # all point the same way


def test_keywords_from_a_file(tmp_path: Path) -> None:
    """One on each line, phrases too; comments, blank lines, case, blanks and repetitions do not matter."""
    path = tmp_path / "keywords.txt"
    path.write_text("\ufeff# of wine\nWine\n\n red   wine  # a phrase\nwine\nweingärten\n", encoding="utf-8")
    assert read_keywords(path) == ["wine", "red wine", "weingärten"]
    path.write_text("# nothing\n")
    with pytest.raises(ConfigError, match="has no keyword"):
        read_keywords(path)
    path.write_bytes("Gärten".encode("latin-1"))
    with pytest.raises(ConfigError, match="not UTF-8"):
        read_keywords(path)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_keywords(tmp_path / "none.txt")


def test_files_of_vectors(tmp_path: Path) -> None:
    """word2vec's text and binary, GloVe's, gensim's, and compressed ones are recognised by their contents."""
    vectors = plane({**ANGLES, "naïve": 5})
    vectors.save_word2vec_format(str(tmp_path / "text"))
    vectors.save_word2vec_format(str(tmp_path / "binary"), binary=True)
    vectors.save(str(tmp_path / "own"))
    text = (tmp_path / "text").read_bytes()
    (tmp_path / "glove").write_bytes(text.partition(b"\n")[2])
    (tmp_path / "text.gz").write_bytes(gzip.compress(text))
    (tmp_path / "binary.gz").write_bytes(gzip.compress((tmp_path / "binary").read_bytes()))
    for name in ("text", "binary", "own", "glove", "text.gz", "binary.gz"):
        found = load_vectors(tmp_path / name)
        assert set(found.key_to_index) == {*ANGLES, "naïve"}, name
        np.testing.assert_allclose(found["cork"], vectors["cork"], rtol=1e-5)


def test_files_without_vectors(tmp_path: Path) -> None:
    """No file, an empty one, a text, bytes: each with its name and the supported formats."""
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "text").write_text("wine is made\nof grapes, mostly\n")
    (tmp_path / "bytes").write_bytes(bytes(range(256)) * 9)
    (tmp_path / "cut").write_text("3 2\nwine 1 2\n")
    for name in ("none", "empty", "text", "bytes", "cut"):
        with pytest.raises(ConfigError) as raised:
            load_vectors(tmp_path / name)
        assert str(tmp_path / name) in str(raised.value)


def test_vectors_of_ones_own_pages() -> None:
    """Words of the topic are added to its first keywords, and no word of the other pages."""
    texts = [*pages(100, on=True), *pages(100, on=False)]
    vectors = train_vectors(texts)
    found = expand(["wine", "grape", "vineyard"], {word for text in texts for word in text.split()}, vectors)
    near = {each.word for each in [*found.added, *found.rejected][:4]}
    assert near == {"cellar", "harvest", "bottle", "cork"}


@pytest.mark.slow
def test_training_is_the_same_in_every_process() -> None:
    """Vectors and their order depend on the texts alone."""
    root = Path(__file__).parents[2]
    said = {
        subprocess.run(
            [sys.executable, "-c", DIGEST], capture_output=True, text=True, check=True, cwd=root,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("0", "1")
    }  # fmt: skip
    assert len(said) == 1


def test_too_little_to_train_on() -> None:
    """Where no word comes five times there is nothing to learn."""
    with pytest.raises(ConfigError, match="3 words, none of them five times"):
        train_vectors(["one two three"])


# Words that tell


def test_words_of_any_page_do_not_tell() -> None:
    """A word on as many pages off the topic is rejected, and so is one on too few pages to decide."""
    pages = [f"the shop sells honey of bees hive{i}" + " nectar" * (i < 6) + " fresh" * (i % 2) for i in range(10)]
    others = ["the shop sells steel" + " fresh" * (i % 2) for i in range(10)]
    found = telling(["honey", "bees"], pages, others)
    assert found.words == ["bees", "honey", "nectar", "of"]
    assert found.common[:3] == ["sells", "shop", "the"]
    assert {"fresh", "hive0"} < {*found.common}


def test_words_must_tell_as_keywords_do() -> None:
    """If keywords are on no other page, a word on a third as many others is rejected; if they are, it is accepted."""
    pages = ["honey season"] * 90 + ["honey"] * 10
    others = ["season", "steel"] * 15 + ["steel"] * 70
    assert telling(["honey"], pages, others).common == ["season"]
    both = [*others[:-30], *["honey"] * 30]
    assert telling(["honey"], pages, both).common == []


def test_without_other_pages() -> None:
    """Words on one page, and on more than half of them and more than any keyword, are rejected."""
    pages = ["the honey of bees", "the honey and wax", "the bees and wax", "the drone"]
    found = telling(["honey", "queen"], pages, [])
    assert found.common == ["the", "drone", "of"]
    assert telling(["the"], pages, []).words == ["and", "bees", "honey", "the", "wax"]


def test_what_may_be_chance_does_not_tell() -> None:
    """Five of ten pages against none of ten are 8.63 on the scale of chi-square, four are 6.56, and 6.63 are needed."""

    def tells(n: int) -> bool:
        pages = [f"honey {'wax' if i < n else ''}" for i in range(10)]
        return "wax" in telling(["honey"], pages, ["steel"] * 10).words

    assert [tells(n) for n in (3, 4, 5, 6)] == [False, False, True, True]
