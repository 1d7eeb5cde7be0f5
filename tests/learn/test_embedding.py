"""Embeddings: the table of the extra, folders, files of word vectors, import paths; what is read, stored and refused."""

from __future__ import annotations

import json
import math
import os
import pickle
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from scrapy_focus import ConfigError
from scrapy_focus.core.errors import MissingPackageError
from scrapy_focus.jobs.pickles import Classes, RefusedName
from scrapy_focus.learn import embedding as module
from scrapy_focus.learn.embedding import load_embedding
from tests.made import HANG

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from scrapy_focus.learn.embedding import Embedding

tokenizers = pytest.importorskip("tokenizers")
save_file = pytest.importorskip("safetensors.numpy").save_file

WORDS = ["[UNK]", "[CLS]", "honey", "bees", "town", "budget", "!"]
TABLE = np.array([[9, 9, 9], [9, 9, 9], [1, 0, 0], [1, 2, 0], [0, 0, 4], [0, 1, 4], [9, 9, 9]], np.float32)


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    """Load each embedding again: what a process loaded once, it keeps."""
    module._load.cache_clear()
    yield
    module._load.cache_clear()


def save(
    folder: Path, arrays: dict[str, NDArray[Any]], words: list[str] = WORDS, table: str = "model.safetensors"
) -> Path:
    """Write a folder in Model2Vec's format, with a tokenizer that splits at blanks and adds [CLS]."""
    folder.mkdir(parents=True, exist_ok=True)
    made = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({word: i for i, word in enumerate(words)}, unk_token=words[0])
    )
    made.normalizer = tokenizers.normalizers.Lowercase()
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.add_special_tokens(["[CLS]"])
    made.post_processor = tokenizers.processors.TemplateProcessing("[CLS] $A", special_tokens=[("[CLS]", 1)])
    made.enable_padding(length=16, pad_id=2, pad_token="honey")
    made.enable_truncation(2)
    made.save(str(folder / "tokenizer.json"))
    save_file(arrays, folder / table)
    (folder / "config.json").write_text(json.dumps({"normalize": True}))
    return folder


def cosine(embedding: Embedding, one: str, other: str) -> float:
    a, b = embedding.embed([one, other])
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def test_the_default_table_knows_what_is_close() -> None:
    """A word of the same subject is closer than one of another; vectors have 256 numbers."""
    found = load_embedding()
    assert found.embed(["honey"]).shape == (1, 256)
    assert found.embed(["honey"]).dtype == np.float32
    assert (
        cosine(found, "municipal budgets", "town finances") > cosine(found, "municipal budgets", "football clubs") + 0.1
    )
    assert load_embedding() is found


def test_the_default_table_gives_the_means_of_its_package() -> None:
    """The vector of a text is the mean of the rows of its tokens, as its own package computes it."""
    folder = Path(str(find_spec("wordllama").submodule_search_locations[0]))  # type: ignore[union-attr,index]
    table = np.fromfile(folder / "weights" / "l2_supercat_256.safetensors", np.float16)[-32_000 * 256 :]
    file = folder / "tokenizers" / "l2_supercat_tokenizer_config.json"
    ids = tokenizers.Tokenizer.from_file(str(file)).encode("Annual accounts of the town", add_special_tokens=False).ids
    expected = table.reshape(32_000, 256)[ids].astype(np.float32).mean(axis=0)
    assert load_embedding().embed(["Annual accounts of the town"])[0] == pytest.approx(expected, abs=1e-6)


def test_a_text_without_a_known_word_is_a_row_of_zeros() -> None:
    """Neither an unknown script, whose characters are split into bytes, nor punctuation or a special token has a word."""
    unknown = ["", "   ", "ሰላም ለዓለም", "... !?", "<s>", "</s><unk>", "\x00"]
    found = load_embedding().embed([*unknown, "honey"])
    assert not found[: len(unknown)].any()
    assert found[-1].any()


def test_a_batch_equals_its_texts_one_by_one() -> None:
    """To the bit, with long, empty and unknown texts between others, and more of them than are averaged at once."""
    texts = ["honey and bees", "", "ሰላም", "budget " * 3_000, *(f"page {i} of the report" for i in range(2_000))]
    found = load_embedding()
    together = found.embed(texts)
    assert together.shape == (len(texts), 256)
    for i in [*range(10), 1_000, len(texts) - 1]:
        assert (found.embed([texts[i]])[0] == together[i]).all(), texts[i][:20]
    assert found.embed([]).shape == (0, 256)


def test_the_beginning_of_a_long_text_is_read() -> None:
    """4,000 characters."""
    found = load_embedding()
    start = "honey " * 700
    assert (found.embed([start + "budget"]) == found.embed([start + "bees"])).all()
    assert (found.embed([start[:3_900] + "budget"]) != found.embed([start[:3_900] + "bees"])).any()


def test_a_text_may_have_characters_that_utf_8_cannot_encode() -> None:
    """A lone surrogate is unknown, and the words around it are read."""
    assert load_embedding().embed(["honey \ud800", "bees"])[0].any()


def test_a_folder_is_read(tmp_path: Path) -> None:
    """The mean of the rows, not normalized; unknown and special tokens and punctuation do not count, nor a limit."""
    found = load_embedding(save(tmp_path / "model", {"embeddings": TABLE}))
    texts = ["Honey bees", "honey xyz !", "town budget honey bees", "xyz [CLS]"]
    assert found.embed(texts).tolist() == [[1, 1, 0], [1, 0, 0], [0.5, 0.75, 2], [0, 0, 0]]


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int8])
def test_tables_of_other_numbers_are_read(tmp_path: Path, dtype: type) -> None:
    """Of 16 and 64 bits, and whole ones."""
    found = load_embedding(save(tmp_path / "model", {"embeddings": TABLE.astype(dtype)}))
    assert found.embed(["honey bees"]).tolist() == [[1, 1, 0]]


def test_weights_and_a_mapping_are_used(tmp_path: Path) -> None:
    """Tokens share a row by the mapping, and each has its weight; a later token without either has none."""
    mapping = np.array([0, 0, 0, 0, 1, 1, 0], np.int64)
    weights = np.array([1, 1, 2, 4, 1, 0.5, 1], np.float32)
    arrays = {"embeddings": np.array([[1, 0], [0, 2]], np.float32), "mapping": mapping, "weights": weights}
    found = load_embedding(save(tmp_path / "model", arrays))
    assert found.embed(["honey bees", "town budget"]).tolist() == [[3, 0], [0, 1.5]]


def test_a_static_embedding_of_sentence_transformers_is_read(tmp_path: Path) -> None:
    """Its files are in a folder within, and its table has another name."""
    save(tmp_path / "model" / "0_StaticEmbedding", {"embedding.weight": TABLE})
    assert load_embedding(str(tmp_path / "model")).embed(["honey bees"]).tolist() == [[1, 1, 0]]


def test_a_folder_within_a_package_is_named_by_dots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package is not imported."""
    save(tmp_path / "shipping_package" / "model", {"embeddings": TABLE})
    (tmp_path / "shipping_package" / "__init__.py").write_text("raise RuntimeError")
    monkeypatch.syspath_prepend(tmp_path)
    assert load_embedding("shipping_package.model").embed(["honey bees"]).tolist() == [[1, 1, 0]]


def test_word_vectors_of_gensim_are_read(tmp_path: Path) -> None:
    """Words are found in lower case, with or without their part of speech; others do not count.

    By Zipf's law the three words have 6, 3 and 2 elevenths of all words, and by those their weights.
    """
    pytest.importorskip("gensim")
    (tmp_path / "vectors.txt").write_text("3 2\nhoney 1 0\nbees_NOUN 0 2\ntown 3 3\n")
    honey, bees, town = (1e-3 / (1e-3 + share / 11) for share in (6, 3, 2))
    found = load_embedding(tmp_path / "vectors.txt").embed(["Honey, bees!", "the TOWN", "of"])
    assert found == pytest.approx(np.array([[honey / 2, bees], [3 * town, 3 * town], [0, 0]]), rel=1e-5)


def test_frequent_words_count_for_less(tmp_path: Path) -> None:
    """The words of a file of vectors are in the order of frequency: among a hundred thousand, the first ones hardly count."""
    models = pytest.importorskip("gensim.models")
    vectors = models.KeyedVectors(2)
    rows = np.tile(np.array([[0, 1]], np.float32), (100_000, 1))
    rows[0] = 1, 0
    vectors.add_vectors(["the", *(f"word{i}" for i in range(1, 100_000))], rows)
    vectors.save(str(tmp_path / "vectors.kv"))
    found = load_embedding(tmp_path / "vectors.kv").embed(["the word50000"])[0]
    assert found[1] > 50 * found[0]


OWN = """
import numpy as np

class Lengths:
    digest = "lengths 1"
    def embed(self, texts):
        return np.array([[len(text), 1] for text in texts])

class Encoder:
    def encode(self, sentences):
        return [[float(len(text)), 2.0, float("nan") if text == "bad" else 0.0] for text in sentences]

class Flat:
    def encode(self, sentences):
        return [1.0 for _ in sentences]

def made():
    return Encoder()

def broken():
    raise OSError("no weights,\\nand no table")

ready = Lengths()
nothing = 5
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a module with embeddings of a user."""
    (tmp_path / "own_embeddings.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_embeddings", raising=False)


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize("path", ["own_embeddings:Lengths", "own_embeddings.Lengths", "own_embeddings:ready"])
def test_an_object_or_a_class_is_imported(path: str) -> None:
    """Its digest is its own."""
    found = load_embedding(path)
    assert found.embed(["ab", "abc"]).tolist() == [[2, 1], [3, 1]]
    assert found.embed(["ab"]).dtype == np.float32
    assert found.embed([]).shape == (0, 2)
    assert found.digest == "lengths 1"


@pytest.mark.usefixtures("own")
def test_an_encoder_is_wrapped() -> None:
    """As those of sentence-transformers; it is identified by its path, and a row that is not finite becomes zeros."""
    found = load_embedding("own_embeddings:made")
    assert found.embed(["abc", "bad"]).tolist() == [[3, 2, 0], [0, 0, 0]]
    assert found.digest != load_embedding("own_embeddings:Encoder").digest
    assert len(found.digest) == 32


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("own_embeddings:absent", "cannot be imported (AttributeError: "),
        ("absent_module_of_a_user:name", "cannot be imported (ModuleNotFoundError: "),
        ("own_embeddings:broken", "cannot be imported (OSError: no weights, and no table)"),
        ("own_embeddings:nothing", "cannot be imported (TypeError: "),
        ("own_embeddings:Flat", "returned shape (1,) for 1 texts"),
        ("builtins:dict", "is a dict without a method embed or encode"),
        ("no/such/folder", "there is no embedding 'no/such/folder'"),
    ],
)
def test_what_is_no_embedding_is_refused_in_one_line(path: str, said: str) -> None:
    """The message says what was found and what is expected."""
    with pytest.raises(ConfigError) as refused:
        load_embedding(path)
    assert said in str(refused.value)
    assert path in str(refused.value)
    assert "\n" not in str(refused.value)


def damage(folder: Path, kind: str) -> None:
    """Damage a folder in some way."""
    table, tokenizer = folder / "model.safetensors", folder / "tokenizer.json"
    content = table.read_bytes()
    if kind == "cut":
        table.write_bytes(content[:-4])
    elif kind == "empty":
        table.write_bytes(b"")
    elif kind == "no header":
        table.write_bytes(b"\xff" * 100)
    elif kind == "long header":
        table.write_bytes((1 << 40).to_bytes(8, "little") + content[8:])
    elif kind == "not JSON":
        table.write_bytes(content.replace(b"{", b"(", 1))
    elif kind == "a list":
        table.write_bytes((2).to_bytes(8, "little") + b"[]")
    elif kind == "other name":
        save_file({"weight": TABLE}, table)
    elif kind == "one dimension":
        save_file({"embeddings": TABLE[0]}, table)
    elif kind == "undefined":
        save_file({"embeddings": TABLE * math.nan}, table)
    elif kind == "negative":
        save_file({"embeddings": TABLE, "mapping": np.full(7, -5)}, table)
    elif kind == "beyond":
        save_file({"embeddings": TABLE, "mapping": np.full(7, 7)}, table)
    elif kind == "weights":
        save_file({"embeddings": TABLE, "weights": np.full(7, math.inf)}, table)
    elif kind == "type":
        table.write_bytes(content.replace(b'"F32"', b'"U32"', 1))
    elif kind == "no tokenizer":
        tokenizer.unlink()
    elif kind == "tokenizer":
        tokenizer.write_text("{}")
    elif kind == "not text":
        tokenizer.write_bytes(b"\xff\xfe")


@pytest.mark.parametrize(
    "kind",
    [
        "cut", "empty", "no header", "long header", "not JSON", "a list", "other name", "one dimension", "undefined",
        "negative", "beyond", "weights", "type", "no tokenizer", "tokenizer", "not text",
    ],
)  # fmt: skip
def test_a_damaged_folder_is_refused_in_one_line(tmp_path: Path, kind: str) -> None:
    """Whatever is wrong with it, the folder is named."""
    folder = save(tmp_path / "model", {"embeddings": TABLE})
    load_embedding(folder)
    module._load.cache_clear()
    damage(folder, kind)
    with pytest.raises(ConfigError) as refused:
        load_embedding(folder)
    assert str(folder) in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    folder = save(tmp_path / "model", {"embeddings": TABLE})
    (folder / "model.safetensors").chmod(0)
    with pytest.raises(ConfigError, match="Permission denied"):
        load_embedding(folder)


def test_one_file_of_a_folder_is_refused(tmp_path: Path) -> None:
    """With the advice to give the folder."""
    folder = save(tmp_path / "model", {"embeddings": TABLE})
    for name in ("model.safetensors", "tokenizer.json"):
        with pytest.raises(ConfigError, match="give its folder"):
            load_embedding(folder / name)


def test_the_digest_is_that_of_table_and_tokenizer(tmp_path: Path) -> None:
    """The same in another place; another for one number, one token or one weight that differs."""
    weights = np.ones(len(TABLE), np.float32)
    changed, heavier = TABLE.copy(), weights.copy()
    changed[3, 1] += 1
    heavier[2] = 2
    words = ["wax" if word == "honey" else word for word in WORDS]
    digests = [
        load_embedding(save(tmp_path / name, arrays, said)).digest
        for name, arrays, said in (
            ("first", {"embeddings": TABLE, "weights": weights}, WORDS),
            ("again", {"embeddings": TABLE, "weights": weights}, WORDS),
            ("changed", {"embeddings": changed, "weights": weights}, WORDS),
            ("heavier", {"embeddings": TABLE, "weights": heavier}, WORDS),
            ("other words", {"embeddings": TABLE, "weights": weights}, words),
        )
    ]
    assert digests[0] == digests[1]
    assert len(set(digests)) == 4


def test_a_pickle_has_the_source_and_no_table(tmp_path: Path) -> None:
    """Read in another process, it is the same embedding; read where the table has changed, it is refused by name."""
    folder = save(tmp_path / "model", {"embeddings": TABLE})
    stored = pickle.dumps(load_embedding(folder))
    assert len(stored) < 300
    assert len(pickle.dumps(load_embedding())) < 300
    (tmp_path / "stored").write_bytes(stored)
    code = "import pickle, sys; print(pickle.load(open(sys.argv[1], 'rb')).embed(['honey bees']).tolist())"
    command = [sys.executable, "-c", code, str(tmp_path / "stored")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=HANG)
    assert done.stdout.strip() == "[[1.0, 1.0, 0.0]]"
    assert pickle.loads(stored) is load_embedding(folder)
    module._load.cache_clear()
    save(folder, {"embeddings": TABLE * 2})
    with pytest.raises(ConfigError, match=r"model is not the one that was stored"):
        pickle.loads(stored)


def test_a_job_stores_no_embedding() -> None:
    """Reading it would load a file or import a module, which what a job stores must never do."""
    with pytest.raises(RefusedName):
        Classes().dumps(load_embedding())


def test_without_the_extra_one_line_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The default needs two packages, a folder one of them."""
    folder = save(tmp_path / "model", {"embeddings": TABLE})
    monkeypatch.setitem(sys.modules, "wordllama", None)
    with pytest.raises(MissingPackageError, match=r'needs wordllama: pip install "scrapy-focus\[about\]"$'):
        load_embedding()
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(MissingPackageError, match=r'needs tokenizers: pip install "scrapy-focus\[about\]"$'):
        load_embedding(folder)


def test_a_wordllama_with_other_files_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the version that has them."""
    (tmp_path / "wordllama").mkdir()
    (tmp_path / "wordllama" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "wordllama", raising=False)
    with pytest.raises(ConfigError, match=r"has no table l2_supercat_256; install version 0\.4"):
        load_embedding()


def test_wordllama_is_not_imported_and_the_tokenizer_starts_no_thread() -> None:
    """Its import takes long; and threads would not survive a fork, of which some versions of the tokenizer warn."""
    code = (
        "import os, sys\n"
        "from scrapy_focus.learn.embedding import load_embedding\n"
        "found = load_embedding()\n"
        "tasks = '/proc/self/task' if os.path.exists('/proc/self/task') else '.'\n"
        "before = len(os.listdir(tasks))\n"
        "found.embed(['honey'] * 500)\n"
        "assert len(os.listdir(tasks)) == before\n"
        "child = os.fork()\n"
        "found.embed(['honey'] * 500)\n"
        "if not child: os._exit(0)\n"
        "os.waitpid(child, 0)\n"
        "print(sorted({'wordllama', 'safetensors', 'pydantic', 'huggingface_hub'} & set(sys.modules)))"
    )
    env = {name: value for name, value in os.environ.items() if name != "TOKENIZERS_PARALLELISM"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=env, timeout=HANG, check=False
    )
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "[]", "")


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_the_default_table_takes_less_than_40_megabytes() -> None:
    """Of this process alone, when texts have been embedded: the table is mapped, so that processes share its 16 MB."""
    code = (
        "import re\n"
        "from pathlib import Path\n"
        "from scrapy_focus.learn.embedding import load_embedding\n"
        "def own(): return int(re.search(r'RssAnon:\\s+(\\d+)', Path('/proc/self/status').read_text())[1]) >> 10\n"
        "before = own()\n"
        "load_embedding().embed([f'annual report of the town {i} ' * 100 for i in range(1000)])\n"
        "print(own() - before)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=HANG, check=True)
    assert int(done.stdout) < 40
