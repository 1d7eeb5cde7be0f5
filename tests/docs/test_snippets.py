"""Every block of code in the documentation runs, in the order of its page."""

from __future__ import annotations

import doctest
import re
import shlex
import sys
import textwrap
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from scrapy.settings import BaseSettings, Settings
from scrapy.utils.misc import load_object

from scrapy_focus.addon import Addon
from scrapy_focus.config import Config, check_names
from scrapy_focus.features import rows_of
from scrapy_focus.policies.tagpath.policy import TagPath
from tests.features.documented import documented_features

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("docs/**/*.rst"), *ROOT.glob("*.rst")])
#: Pages with examples that crawl for seconds.
LONG = {
    ROOT / "docs" / f"{name}.rst"
    for name in (
        "how-to/compare",
        "how-to/replay",
        "how-to/synthetic-news",
        "explanation/branching-bandit",
        "how-to/write-a-frontier",
    )
}
OPTIONAL = ("scrapy_playwright", "spidermon")  # packages without which an example is only compiled
OF_FEATURES = {name for feature in documented_features() for name in feature.settings}
LANGUAGES = {"console", "ini", "json", "python", "text"}
FINDERS = {"files", "important", "structured", "topic", "watch"}  # commands that crawl, and have --dry-run
COMPONENTS = ("SPIDER_MIDDLEWARES", "DOWNLOADER_MIDDLEWARES", "ITEM_PIPELINES", "EXTENSIONS")
DIRECTIVE = re.compile(r"^( *)\.\. code-block::(.*)$")


class Block(NamedTuple):
    """A block of code on a page."""

    language: str
    line: int  # of the directive, from 1
    code: str


def blocks(text: str) -> Iterator[Block]:
    """Yield the ``code-block`` directives of a page; options are not part of the code."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        directive = DIRECTIVE.match(line)
        if directive is None:
            continue
        body = []
        for later in lines[number + 1 :]:
            if later.strip() and len(later) - len(later.lstrip()) <= len(directive[1]):
                break
            body.append(later)
        code = textwrap.dedent("\n".join(body)).strip("\n") + "\n"
        code = re.sub(r"\A(?::[\w-]+:.*\n)+\n", "", code)
        yield Block(directive[2].strip(), number + 1, code)


def run(block: Block, module: ModuleType, page: Path) -> None:
    """Execute a block of Python in a module, as a doctest if it is a session."""
    if block.code.lstrip().startswith(">>>"):
        test = doctest.DocTestParser().get_doctest(block.code, module.__dict__, page.name, str(page), block.line)
        runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
        report: list[str] = []
        runner.run(test, out=report.append, clear_globs=False)
        assert not runner.failures, "".join(report)
        module.__dict__.update(test.globs)  # a doctest works on a copy
        return
    before = dict(module.__dict__)
    source = "\n" * (block.line + 1) + block.code
    code = compile(source, str(page), "exec", dont_inherit=True)
    if any(f"from {name}" in source and find_spec(name) is None for name in OPTIONAL):
        return
    exec(code, module.__dict__)
    names = set(re.findall(r"^([A-Z][A-Z_]+) *=", block.code, re.MULTILINE))
    if any(name.startswith("FOCUS_") or name in Settings() for name in names):
        check_settings({name: module.__dict__[name] for name in names})
        for name in names:
            module.__dict__.pop(name, None)
            if name in before:
                module.__dict__[name] = before[name]


def check_settings(values: dict[str, Any]) -> None:
    """Raise an error if Scrapy or this package would refuse these settings."""
    settings = Settings(values)
    for path in settings.getdict("ADDONS"):
        addon = load_object(path)
        assert addon is Addon
        addon().update_settings(settings)
    scheduler = load_object(settings["SCHEDULER"])
    assert callable(scheduler.from_crawler)
    config = Config.from_settings(settings, getattr(scheduler, "default_policy", TagPath), rows_of(settings))
    config.make_policy()
    config.mission()
    for name in COMPONENTS:
        for component in settings.getdict(name):
            if not any(str(component).startswith(f"{each}.") and find_spec(each) is None for each in OPTIONAL):
                load_object(component)


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """A module that represents the user's project, in an empty folder."""
    made = ModuleType("myproject.policies")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "myproject", ModuleType("myproject"))
    for name in (
        "extensions",
        "features",
        "frontiers",
        "goals",
        "pipelines",
        "policies",
        "settings",
        "spiders",
        "stops",
    ):
        monkeypatch.setitem(sys.modules, f"myproject.{name}", made)
    return made


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.slow] if page in LONG else []) for page in PAGES],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_python_blocks_run(page: Path, module: ModuleType) -> None:
    """The blocks of a page run in sequence in one namespace, and their settings are accepted."""
    pending: list[Block] = []
    for block in blocks(page.read_text()):
        if block.language != "python":
            continue
        names_module = re.search(r'"myproject\.\w+\.(\w+)"', block.code)
        if names_module and not hasattr(module, names_module[1]):
            pending.append(block)  # settings that name a class defined later on the page
        else:
            run(block, module, page)
    for block in pending:
        run(block, module, page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_name_their_language(page: Path) -> None:
    """No block is missed by the tests above because of a missing or misspelt language."""
    for block in blocks(page.read_text()):
        assert block.language in LANGUAGES, f"{page}:{block.line}: {block.language!r}"
    assert not re.search(
        r"^\s*>>>", re.sub(r"(?m)^ *\.\. code-block::.*(\n( .*)?)*", "", page.read_text()), re.MULTILINE
    )


@pytest.fixture
def inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with the files that commands of the documentation read."""
    (tmp_path / "seeds.txt").write_text("https://example.org/\n")
    (tmp_path / "cookies.txt").write_text("www.example.org\tFALSE\t/\tFALSE\t0\tsession\tabc\n")
    for folder in ("examples", "wine"):
        (tmp_path / folder / "positive").mkdir(parents=True)
        (tmp_path / folder / "positive" / "page.txt").write_text("Red wine from grapes of Burgundy\n")
    monkeypatch.chdir(tmp_path)


def command_lines(code: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the commands of a block as lines and as words, without variables, comments and what follows a pipe."""
    for line in re.findall(r"^\$ (.*)$", code.replace("\\\n", " "), re.MULTILINE):
        for part in re.split(r" && | \| ", line):
            words = shlex.split(part, comments=True)
            while words and re.match(r"[A-Z_a-z]+=", words[0]):
                del words[0]
            if words:
                yield line, [words[0].rpartition("/")[2], *words[1:]]


def finder_words(words: list[str]) -> list[str]:
    """Return the words after ``focus`` if a command crawls and has ``--dry-run``, else nothing."""
    if words[0] == "focus" and words[1:2] and words[1] in FINDERS:
        return words[1:]
    if words[0] == "scrapy" and words[1:2] and words[1].removeprefix("focus-") in FINDERS:
        return words[1:]
    return []


@pytest.mark.usefixtures("inputs")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_are_accepted(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that crawl accept the arguments shown, and settings in them exist."""
    monkeypatch.syspath_prepend(str(ROOT / "example_project"))
    from scrapy_focus.__main__ import main
    from scrapy_focus.spiders.datasets import DatasetsSpider

    for block in blocks(page.read_text()):
        for line, words in command_lines(block.code):
            pairs = [(flag, value.partition("=")) for flag, value in pairwise(words)]
            arguments = {name: value for flag, (name, _, value) in pairs if flag == "-a"}
            settings = {name: value for flag, (name, _, value) in pairs if flag == "-s"}
            assert all(name in Settings() or name.startswith("FOCUS_") for name in settings), line
            check_names(BaseSettings({name: settings[name] for name in settings.keys() - OF_FEATURES}), rows_of({}))
            if words[:3] == ["scrapy", "crawl", "datasets"]:
                spider = DatasetsSpider(**arguments)
                unknown = arguments.keys() - {"root", "types", "budget", "out"}
                assert spider.roots, line
                assert not unknown, f"{line}: the spider has no argument {unknown}"
            elif finder := finder_words(words):
                with pytest.raises(SystemExit) as ended:
                    main([*finder, "--dry-run"])
                assert ended.value.code == 0, line
            elif words[:2] == ["python", "-m"]:
                assert find_spec(words[2]), line


def test_commands_are_read() -> None:
    """Variables, pipes and the folder of a program are no part of a command."""
    code = "$ cd /srv && A=b .venv/bin/focus files \\\n  x.org | head -3   # three\n$ scrapy focus-watch x.org\nout\n"
    words = [words for _, words in command_lines(code)]
    assert words == [
        ["cd", "/srv"],
        ["focus", "files", "x.org"],
        ["head", "-3"],
        ["scrapy", "focus-watch", "x.org"],
    ]
    assert [finder_words(each) for each in words] == [[], ["files", "x.org"], [], ["focus-watch", "x.org"]]


def test_extractor_sees_blocks() -> None:
    """Options and deeper indentation are recognised, and a block ends with its indentation."""
    text = "A\n\n.. code-block:: python\n   :caption: x\n\n   if 1:\n\n       a = 2\n\nEnd\n\n  .. code-block:: text\n\n     b\n"
    assert [(block.language, block.code) for block in blocks(text)] == [
        ("python", "if 1:\n\n    a = 2\n"),
        ("text", "b\n"),
    ]


@pytest.mark.parametrize(
    "code",
    [
        "assert False\n",
        ">>> 1 + 1\n3\n",
        "FOCUS_BUDGET = 3\n",
        'FOCUS_POLICY = "myproject.policies.Missing"\n',
        'FOCUS_POLICY_PARAMS = {"no_such": 1}\n',
        'ITEM_PIPELINES = {"myproject.pipelines.Missing": 1}\n',
    ],
)
def test_wrong_blocks_fail(code: str, module: ModuleType) -> None:
    """A wrong block does not pass."""
    with pytest.raises(Exception):  # noqa: B017, PT011 (each is wrong in its own way)
        run(Block("python", 1, code), module, Path("page.rst"))
