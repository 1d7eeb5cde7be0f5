"""Sites that refuse access, and broken servers: a message names the reason within seconds, and says what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from everydaycrawls import manifest, run
from everydaysites import DataPortal, Walled, basic_wall, forbidding, guard, login_wall, unavailable

from scrapy_focus.lab.sites.server import SiteServer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

#: Retries an unavailable robots.txt this soon, not after half a minute and a minute.
SOON = ("-s", "FOCUS_LONGEST_WAIT=0.2")


@pytest.mark.parametrize(
    ("wall", "said"),
    [
        (login_wall, ("redirects to", "/login")),
        (basic_wall, ("401", "sign in with --auth USER")),
        (guard, ("403",)),
        (unavailable, ("503",)),
        (forbidding, ("robots.txt forbids it",)),
    ],
)
def test_a_wall_is_named(wall: Callable[..., object], said: tuple[str, ...], tmp_path: Path) -> None:
    """The last line names what the site does; it blames robots.txt only if that forbids the page."""
    with SiteServer(Walled(wall)) as server:
        done = run(tmp_path, "files", server.url, *SOON)
    assert done.status != 0
    assert all(part in done.last for part in said), done.last
    assert ("robots.txt forbids" in done.last) == (wall is forbidding)


def test_a_password_in_a_url_is_sent_only_to_its_host_and_never_shown(tmp_path: Path) -> None:
    """It gives access to the site, and appears in no line, page or file of the crawl."""
    site = Walled(basic_wall, DataPortal(3))
    with SiteServer(site) as server:
        done = run(tmp_path, "files", server.url.replace("http://", "http://user:secret@"), "--out", "found")
    assert done.status == 0, done.logged
    assert len(manifest(tmp_path / "found")) == len(site.inside.files)
    assert "secret" not in done.said + done.logged
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or b"secret" not in path.read_bytes(), path


@pytest.mark.parametrize("port", ["https"])
def test_a_server_without_tls_is_named(port: str, tmp_path: Path) -> None:
    """The last line asks whether it is http://."""
    with SiteServer(DataPortal(3)) as server:
        done = run(tmp_path, "files", server.url.replace("http://", f"{port}://"))
    assert done.status != 0
    assert "http://" in done.last
    assert "TLS" in done.last
    assert "robots.txt forbids" not in done.last
