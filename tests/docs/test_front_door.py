"""What a package index shows and offers: the page of the project, its links, its extras, and how to cite it."""

from __future__ import annotations

import re
from configparser import ConfigParser
from importlib.metadata import metadata
from pathlib import Path

import pytest

import scrapy_focus
from scrapy_focus.core import extras

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.rst").read_text(encoding="utf-8")
PROJECT = "https://github.com/scrapy-focus/scrapy-focus"
DOCUMENTS = "https://scrapy-focus.readthedocs.io/en/latest/"


@pytest.fixture(scope="module")
def config() -> ConfigParser:
    """Return what the package is built by."""
    parser = ConfigParser()
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    return parser


def listed(text: str) -> list[str]:
    """Return the entries of an option, which has one a line."""
    return [line.strip() for line in text.strip().splitlines() if not line.startswith("#")]


def test_every_link_and_picture_of_the_readme_is_absolute() -> None:
    """An index shows the file alone: there is nothing next to it."""
    pictures = re.findall(r"^ *\.\. +(?:\|[^|]+\| )?(?:image|figure):: *(\S+)", README, re.MULTILINE)
    targets = re.findall(r"`[^`<]*<([^`>]+)>`_", README)
    named = re.findall(r"^ *\.\. _[^:]+: *(\S+)", README, re.MULTILINE)
    options = re.findall(r"^ *:target: *(\S+)", README, re.MULTILINE)
    assert pictures
    assert targets + named
    for target in [*pictures, *targets, *named, *options]:
        assert re.match(r"https://|\w+_$|#", target), f"{target} is not absolute"


def test_the_readme_has_nothing_that_only_sphinx_reads() -> None:
    """Roles such as ``:doc:`` and files that are included would be errors on the page of an index."""
    prose = re.sub(r"``.*?``", "", README)
    assert not re.findall(r":(?:doc|ref|class|func|meth|mod|setting):`", prose)
    assert not re.findall(r"^\.\. +(?:include|literalinclude|toctree|versionadded|autoclass)::", prose, re.MULTILINE)


def test_the_package_names_its_addresses(config: ConfigParser) -> None:
    """All of them are of the project or its documents."""
    urls = dict(line.split(" = ") for line in listed(config["metadata"]["project_urls"]))
    assert set(urls) == {"Documentation", "Source", "Issues", "Changes"}
    assert all(url.startswith((PROJECT, DOCUMENTS)) for url in urls.values())
    page = urls["Changes"].removeprefix(DOCUMENTS).replace(".html", ".rst")
    assert (ROOT / "docs" / page).is_file()


def test_classifiers_name_the_tested_versions_of_python(config: ConfigParser) -> None:
    """From the lowest that the package accepts, those of ``tox.ini``."""
    named = re.findall(r"Python :: (3\.\d+)$", config["metadata"]["classifiers"], re.MULTILINE)
    envs = re.findall(r"\bpy3(\d+)", (ROOT / "tox.ini").read_text(encoding="utf-8").split("[testenv")[0])
    assert named == [f"3.{minor}" for minor in envs]
    assert config["options"]["python_requires"] == f">={named[0]}"


def test_the_core_needs_no_large_package(config: ConfigParser) -> None:
    """SciPy and scikit-learn, which most crawls do not use, are of extras."""
    needed = {re.split(r"[><=]", line)[0] for line in listed(config["options"]["install_requires"])}
    optional = {extras._NAMES.get(name, name) for name in ("sklearn", "scipy", "gensim", "matplotlib", "pandas", "ray")}
    assert "scrapy" in needed
    assert not needed & optional


def test_every_extra_is_documented_and_no_other(config: ConfigParser) -> None:
    """In the table of the page on installing; those for work on the package itself are in CONTRIBUTING."""
    page = (ROOT / "docs" / "how-to" / "install.rst").read_text(encoding="utf-8")
    table = set(re.findall(r"^   \* - ``(\w+)``$", page, re.MULTILINE))
    assert table == set(config["options.extras_require"]) - {"test", "dev", "docs"}


def test_every_extra_that_a_message_names_exists(config: ConfigParser) -> None:
    """Also in docstrings, help and documents."""
    files = [*ROOT.glob("scrapy_focus/**/*.py"), *ROOT.glob("docs/**/*.rst"), *ROOT.glob("*.rst")]
    named = set()
    for file in files:
        text = file.read_text(encoding="utf-8")
        named.update(name for group in re.findall(r"scrapy-focus\[([\w,]+)\]", text) for name in group.split(","))
        named.update(re.findall(r'require_extra\(\s*(?:"[^"]*"|called\(self\.command\)), "(\w+)"', text))
    assert {"topic", "lab"} <= named
    assert named <= set(config["options.extras_require"])


def test_the_citation_is_of_this_version() -> None:
    """Its fields are those that version 1.2.0 of the format requires, and the licence is the package's."""
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    fields = dict(re.findall(r"^([\w-]+): *(.*)$", text, re.MULTILINE))
    assert {"cff-version", "message", "title", "authors"} <= set(fields)
    assert fields["cff-version"] == "1.2.0"
    assert fields["version"] == scrapy_focus.__version__ == metadata("scrapy-focus")["Version"]
    assert fields["license"] == "BSD-3-Clause"
    assert fields["repository-code"].strip('"') == PROJECT


def test_the_source_archive_has_all_that_tests_need() -> None:
    """Every folder and file of the repository that tests or the Makefile read is named by ``MANIFEST.in``."""
    lines = (ROOT / "MANIFEST.in").read_text(encoding="utf-8").split()
    for name in (
        ".ci", "benchmarks", "docs", "example_project", "tests", "CHANGES.rst", "CITATION.cff", "CONTRIBUTING.rst",
        "Makefile", "SECURITY.rst", "tox.ini",
    ):  # fmt: skip
        assert name in lines
        assert (ROOT / name).exists()
