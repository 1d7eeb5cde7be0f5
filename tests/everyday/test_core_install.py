"""``pip install scrapy-focus`` and nothing more: what works, and what says which extra it needs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import product
from typing import TYPE_CHECKING

import pytest
from everydaycrawls import FAST, IN_TURN, gets, manifest
from everydaysites import DataPortal
from scrapy.settings import Settings
from test_stock_project import SPIDER

from scrapy_focus import Addon, ConfigError, FocusScheduler, Foragers, HostBandit, StructuredDataGoal
from scrapy_focus.__main__ import main
from scrapy_focus.cluster.ray import RayEngine
from scrapy_focus.config import Config
from scrapy_focus.core.errors import MissingPackageError
from scrapy_focus.lab.compare.comparison import compare
from scrapy_focus.lab.compare.plots import require_matplotlib
from scrapy_focus.lab.recordings.importers.warc import WarcImporter
from scrapy_focus.lab.sites.server import SiteServer
from scrapy_focus.learn.clusters import Clusters
from scrapy_focus.learn.embedding import _load, load_embedding
from scrapy_focus.learn.vectors import load_vectors
from scrapy_focus.policies.focused import Focused
from scrapy_focus.policies.hostbandit.judge import judge_of
from scrapy_focus.policies.linkclassifier.policy import OnlineLinkClassifier
from scrapy_focus.policies.tagpath.policy import TagPath
from scrapy_focus.topic.adaptive import AdaptiveRelevance
from scrapy_focus.topic.models import model_of
from scrapy_focus.topic.neural import NeuralRelevance
from scrapy_focus.web.page_texts import require_text
from tests.made import HANG

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

OPTIONAL = (
    "extruct", "gensim", "hnswlib", "matplotlib", "pandas", "playwright", "ray", "scipy", "scrapy_playwright", "sklearn",
    "tokenizers", "torch", "trafilatura", "warcio", "wordllama",
)  # fmt: skip
#: Makes these modules ones that are not installed, in each process that starts with its folder in PYTHONPATH.
BLOCKER = f"""
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {OPTIONAL!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocker())
"""


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str]:
    """Return the environment of processes in which no optional package can be imported."""
    (tmp_path / "blocker").mkdir()
    (tmp_path / "blocker" / "sitecustomize.py").write_text(BLOCKER)
    env = {name: value for name, value in os.environ.items() if not name.startswith("SCRAPY_")}
    paths = [str(tmp_path / "blocker"), *filter(None, [env.get("PYTHONPATH")])]
    return env | {"PYTHONPATH": os.pathsep.join(paths)}


def run(env: dict[str, str], folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run Python with some arguments to its end."""
    command = [sys.executable, *words]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=HANG)


def config_of(**settings: str) -> Config:
    return Config.from_settings(Settings(settings), FocusScheduler.default_policy)


def test_focus_files_needs_no_extra(tmp_path: Path, bare: dict[str, str]) -> None:
    """It finds all files of a portal, and writes its page; status and check read its folder."""
    portal = DataPortal(4)
    with SiteServer(portal) as server:
        words = ["files", server.url, "--types", "csv,json,pdf,xlsx,zip,xml", "--out", "found", *FAST, *IN_TURN]
        done = run(bare, tmp_path, "-m", "scrapy_focus", *words)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert len(manifest(tmp_path / "found")) == len(portal.files)
    assert (tmp_path / "found" / "index.html").is_file()
    for command in ("status", "check", "report"):
        done = run(bare, tmp_path, "-m", "scrapy_focus", command, "found")
        assert done.returncode == 0, done.stderr


def test_the_settings_line_needs_no_extra(tmp_path: Path, bare: dict[str, str]) -> None:
    """A stock spider fetches and yields the same with it."""
    (tmp_path / "spider.py").write_text(SPIDER)
    with SiteServer(DataPortal(3)) as server:
        words = ["runspider", "spider.py", "-o", "items.jsonl", "-a", f"url={server.url}", "-s", "LOG_LEVEL=WARNING"]
        line = ["-s", "SCHEDULER=scrapy_focus.FocusScheduler"]
        done = run(bare, tmp_path, "-m", "scrapy", *words, *line)
        asked = gets(server)
    assert (done.returncode, done.stderr) == (0, "")
    assert [json.loads(text) for text in (tmp_path / "items.jsonl").read_text().splitlines()]
    assert set(asked.values()) == {1}


def test_the_package_and_its_default_scheduler_import_no_optional_package() -> None:
    """Nor do all of its commands, which Scrapy imports whenever it starts."""
    code = (
        "import sys, scrapy_focus\n"
        "from importlib.metadata import entry_points\n"
        "from scrapy_focus import Addon, FocusScheduler\n"
        "import scrapy_focus.making, scrapy_focus.policies.branching.policy\n"
        "for each in entry_points(group='scrapy.commands'):\n"
        "    if each.name.startswith('focus-'): each.load()\n"
        f"print(sorted(set({OPTIONAL!r}) & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=HANG)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("extra", "module", "package", "use"),
    [
        ("topic", "sklearn", "scikit-learn", lambda folder: TagPath()),
        ("topic", "sklearn", "scikit-learn", lambda folder: Focused()),
        ("topic", "sklearn", "scikit-learn", lambda folder: OnlineLinkClassifier(keywords=["bees"])),
        ("topic", "sklearn", "scikit-learn", lambda folder: AdaptiveRelevance(positives=["bees"])),
        ("topic", "sklearn", "scikit-learn", lambda folder: model_of(keywords=["bees"], frequency=0.1)),
        ("topic", "gensim", "gensim", lambda folder: load_vectors(folder / "vectors")),
        ("about", "tokenizers", "tokenizers", load_embedding),
        ("structured", "extruct", "extruct", lambda folder: StructuredDataGoal()),
        ("text", "trafilatura", "trafilatura", lambda folder: require_text("--text")),
        ("text", "lxml_html_clean", "lxml_html_clean", lambda folder: require_text("--text")),
        ("lab", "sklearn", "scikit-learn", lambda folder: compare([], [])),
        ("lab", "matplotlib", "matplotlib", lambda folder: require_matplotlib()),
        ("lab", "warcio", "warcio", lambda folder: WarcImporter(folder / "archive.warc")),
        ("warc", "warcio", "warcio", lambda folder: config_of(FOCUS_WARC=str(folder)).try_files()),
        ("warc", "warcio", "warcio", lambda folder: Addon().update_settings(Settings({"FOCUS_WARC": str(folder)}))),
        ("cluster", "ray", "Ray", lambda folder: RayEngine("auto", "crawl")),
        ("hnsw", "hnswlib", "hnswlib", lambda folder: Clusters(dim=4, threshold=0.5, index="hnswlib")),
        ("neural", "torch", "PyTorch", lambda folder: NeuralRelevance()),
    ],
)  # fmt: skip
def test_a_missing_extra_is_named_in_one_line(
    extra: str,
    module: str,
    package: str,
    use: Callable[[Path], object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where something is made that needs it, before anything is read."""
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigError) as raised:
        use(tmp_path)
    assert isinstance(raised.value, MissingPackageError)
    assert f' needs {package}: pip install "scrapy-focus[{extra}]"' in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("module", "words", "said"),
    [
        ("sklearn", ["compare", "site.sqlite"], 'focus compare needs scikit-learn: pip install "scrapy-focus[lab]"'),
        ("sklearn", ["train", "--positive", "a", "--negative", "b"], 'focus train needs scikit-learn: pip install "scr'),
        ("gensim", ["keywords", "--keywords", "k", "--corpus", "d", "--train", "t"], "focus keywords needs gensim: pip"),
        ("ray", ["stop"], 'several machines needs Ray: pip install "scrapy-focus[cluster]"'),
        ("extruct", ["structured", "http://127.0.0.1:9/", "--types", "Recipe"], 'extruct: pip install "scrapy-focus[str'),
        ("warcio", ["files", "http://127.0.0.1:9/", "--warc"], '--warc needs warcio: pip install "scrapy-focus[warc]"'),
        ("trafilatura", ["important", "http://127.0.0.1:9/", "--text"], '--text needs trafilatura: pip install "scrapy-focus[te'),
        ("trafilatura", ["topic", "http://127.0.0.1:9/", "--keywords", "a1", "--markdown"], "--markdown needs trafilatura: pip"),
    ],
)  # fmt: skip
def test_a_command_ends_with_status_2_and_one_line(
    module: str, words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """As for any argument that cannot be used; nothing is requested or written."""
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(words)
    out, err = capsys.readouterr()
    assert (ended.value.code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1
    assert not [*tmp_path.iterdir()]


def test_a_topic_of_examples_is_refused_before_the_first_request(tmp_path: Path, bare: dict[str, str]) -> None:
    """With status 2; a topic of keywords alone needs no extra."""
    (tmp_path / "positive").mkdir()
    (tmp_path / "positive" / "page.html").write_text("<p>Bees make honey, and keepers of bees sell it.</p>")
    with SiteServer(DataPortal(2)) as server:
        command = ["-m", "scrapy_focus", "topic", server.url, "--budget", "3", *FAST]
        done = run(bare, tmp_path, *command, "--examples", ".")
        assert done.returncode == 2, done.stderr
        assert 'learning a topic from pages needs scikit-learn: pip install "scrapy-focus[topic]"' in done.stderr
        assert not server.log
        done = run(bare, tmp_path, *command, "--keywords", "data")
        assert "scikit-learn" not in done.stderr
        assert server.log


@pytest.mark.parametrize(
    "words", [["topic"], ["topic", "--keywords", "data"], ["files"], ["structured", "--types", "Dataset"]], ids=" ".join
)
def test_a_sentence_is_refused_before_the_first_request(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With status 2 and one line that names the extra, also in a dry run; an own embedding does not need it."""
    _load.cache_clear()
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    monkeypatch.chdir(tmp_path)
    command, *options = words
    for dry, needs_it in product(([], ["--dry-run"]), (True, False)):
        own = [] if needs_it else ["--embedding", "tests.finders.aboutsite.OneWord"]
        if not (dry or needs_it):
            continue  # it would crawl
        with pytest.raises(SystemExit) as ended:
            main([command, "http://127.0.0.1:9/", *options, "--about", "weather", *own, *dry])
        out, err = capsys.readouterr()
        assert (ended.value.code, out == "", err.count("\n")) == ((2, True, 1) if needs_it else (0, False, 0)), err
        assert ('needs tokenizers: pip install "scrapy-focus[about]"' in err) is needs_it
        assert ('about "weather"' in out or "about 'weather'" in out) is not needs_it
    assert not [*tmp_path.iterdir()]


def test_a_crawl_for_files_of_any_content_imports_nothing_for_sentences(tmp_path: Path) -> None:
    """Neither the tokenizer nor an embedding nor a model of a topic; one with a sentence does."""
    code = (
        "import sys\n"
        "from scrapy_focus.__main__ import main\n"
        "try: main()\n"
        "finally: print('imported:', sorted(name for name in sys.modules if name.partition('.')[0] in "
        "('tokenizers', 'safetensors', 'wordllama') or name.startswith(('scrapy_focus.learn.embedding', "
        "'scrapy_focus.topic.about', "
        "'scrapy_focus.topic.models', 'scrapy_focus.goals.link_relevance'))))"
    )
    with SiteServer(DataPortal(2)) as server:
        for about in ([], ["--about", "prices"]):
            words = [
                "files",
                server.url,
                "--types",
                "csv",
                "--out",
                f"found{len(about)}",
                "--budget",
                "60",
                *FAST,
                *about,
            ]
            done = run({**os.environ}, tmp_path, "-c", code, *words)
            assert done.returncode == 0, done.stderr
            _, _, imported = done.stdout.rpartition("imported: ")
            assert ("tokenizers" in imported) is bool(about)
            assert about or imported.strip() == "[]"


def test_a_crawl_for_pages_imports_no_library_for_their_texts(tmp_path: Path) -> None:
    """Not even one with --text, which extracts in another process."""
    code = (
        "import sys\n"
        "from scrapy_focus.__main__ import main\n"
        "try: main()\n"
        "finally: print('imported:', sorted({'trafilatura', 'resiliparse', 'justext'} & set(sys.modules)))"
    )
    with SiteServer(DataPortal(2)) as server:
        for text in ([], ["--text"]):
            words = ["important", server.url, "--out", f"found{len(text)}", "--budget", "20", *FAST, *text]
            done = run({**os.environ}, tmp_path, "-c", code, *words)
            assert done.returncode == 0, done.stderr
            assert done.stdout.rpartition("imported: ")[2].strip() == "[]"
            assert (tmp_path / f"found{len(text)}" / "text").exists() is bool(text)


def test_a_crawl_whose_policy_needs_an_extra_is_refused(tmp_path: Path, bare: dict[str, str]) -> None:
    """Nothing is requested, and the log has the line."""
    (tmp_path / "spider.py").write_text(SPIDER)
    with SiteServer(DataPortal(2)) as server:
        words = ["runspider", "spider.py", "-a", f"url={server.url}", "-s", "FOCUS_EXIT_STATUS=True"]
        scheduler = ["-s", "SCHEDULER=scrapy_focus.SleepingBanditScheduler"]
        done = run(bare, tmp_path, "-m", "scrapy", *words, *scheduler)
        asked = gets(server)
    assert done.returncode == 2, done.stderr
    assert 'TagPath needs scikit-learn: pip install "scrapy-focus[topic]"' in done.stderr
    assert not asked


def test_policies_that_need_no_extra_are_made_without(monkeypatch: pytest.MonkeyPatch) -> None:
    """Anthelion's default classifier, and foragers that learn as they go, are NumPy alone."""
    for module in OPTIONAL:
        monkeypatch.setitem(sys.modules, module, None)
    assert FocusScheduler.default_policy().summary
    assert HostBandit().summary
    assert Foragers().summary
    with pytest.raises(MissingPackageError, match="classifier='sgd' of HostBandit needs scikit-learn"):
        judge_of("sgd")
