"""The Docker image: its context has all that its build reads."""

from __future__ import annotations

import re
import subprocess
from configparser import ConfigParser
from pathlib import Path

ROOT = Path(__file__).parents[2]


def setup() -> ConfigParser:
    parser = ConfigParser()
    parser.read(ROOT / "setup.cfg")
    return parser


def let_in() -> set[str]:
    """Return the paths that ``.dockerignore`` lets in; its first rule keeps all out."""
    lines = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    assert lines[0] == "*"
    return {line.removeprefix("!") for line in lines if line.startswith("!")}


def test_context_has_what_setup_reads() -> None:
    """The README and the licence are part of the package's metadata, and pip needs both configuration files."""
    metadata = setup()["metadata"]
    described = re.findall(r"[\w.]+\.\w+", metadata["long_description"].removeprefix("file:"))
    needed = {*described, *metadata["license_files"].split(), "setup.cfg", "pyproject.toml", "scrapy_focus"}
    assert needed <= let_in()


def test_all_that_is_let_in_exists() -> None:
    """A file that was renamed would be missed only when somebody builds the image."""
    assert not [path for path in let_in() if not (ROOT / path).exists()]


def test_script_installs_extras_with_a_browser() -> None:
    """It is a script of sh, and names the extra that brings the browser's library."""
    script = ROOT / "docker" / "build.sh"
    subprocess.run(["sh", "-n", str(script)], check=True)
    [extras] = re.findall(r'"\$source\[([\w,]+)\]"', script.read_text())
    assert "playwright" in extras.split(",")
    assert "sh /source/docker/build.sh" in (ROOT / "Dockerfile").read_text()
