"""The arguments for the access to sites: what they accept, and messages that repeat no secret."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any

import pytest
from scrapy.exceptions import UsageError
from scrapy.settings import Settings

from scrapy_focus.finders.files.command import FilesCommand
from scrapy_focus.finders.kit.commands import finding

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy_focus.finders.kit.arguments.finder_arguments import FinderArguments


def read(**given: Any) -> FinderArguments:
    """Return the arguments of a crawl, as a command reads them."""
    takes = FilesCommand().takes()
    return takes.read({"root": "http://www.a.test/,https://b.test:8443/x"} | given, takes.option_names())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"header": ["X-Key s3cret"]}, "--header takes a name and a value with a colon between them, which is missing"),
        ({"header": ["X-Key: s3cret\nX: y"]}, "--header has a line break or control character in the value of X-Key"),
        ({"header": ["X Key: s3cret"]}, "--header has a name that no header has; write it as --header 'X-Api-Key: abc'"),
        ({"header": ["X-Key:"]}, "--header has no value for X-Key"),
        ({"header": ["User-Agent: s3cret"]}, "--header cannot set User-Agent: --user-agent sets it, for all hosts"),
        ({"header": ["host: s3cret"]}, "--header cannot set host: each request has its own"),
        ({"header": ["authorization: s3cret"], "auth": "me"}, "--auth and --header both set Authorization; give one"),
        ({"auth": "me:s3cret"}, "--auth takes a user name without a password"),
        ({"proxy": "socks5://me:s3cret@p.test"}, "of proxies, only those that speak HTTP can be used"),
        ({"proxy": "http://me:s3cret@"}, "--proxy is 'http://me:***@'; it takes the URL of a proxy"),
        ({"proxy": "me:s3cret@p.test:99999"}, "--proxy is 'http://me:***@p.test:99999'; it takes the URL of a proxy"),
        ({"user_agent": "a\nb"}, "it takes one line: --user-agent 'mybot (+https://example.org/contact)'"),
        ({"delay": "-1"}, "--delay is '-1'; it takes the seconds between two requests to a host"),
        ({"delay": "0 apples"}, "--delay is '0 apples'; it takes the seconds"),
        ({"concurrency": "0"}, "--concurrency is '0'; it takes a number of requests: --concurrency 4"),
        ({"cookies": "missing.txt"}, "--cookies is 'missing.txt', which cannot be read (No such file or directory)"),
    ],
)  # fmt: skip
def test_messages_repeat_no_secret(given: dict[str, Any], said: str) -> None:
    """They name the option, what is wrong with it, and what it takes."""
    with pytest.raises(UsageError) as caught:
        read(**given)
    assert said in str(caught.value)
    assert "s3cret" not in str(caught.value)
    assert caught.value.__cause__ is None or "s3cret" not in str(caught.value.__cause__)


@pytest.mark.parametrize("content", [b"a.test FALSE / FALSE 0 x s3cret", b"\xff\xfe\x00s3cret", b"<html>s3cret"])
def test_a_file_that_has_no_cookies_is_refused(content: bytes, tmp_path: Path) -> None:
    """The message says which format is meant, and which programs write it."""
    (tmp_path / "cookies.txt").write_bytes(content)
    with pytest.raises(
        UsageError, match=r"Netscape's format, as written by curl, wget and browser extensions"
    ) as caught:
        read(cookies=str(tmp_path / "cookies.txt"))
    assert "s3cret" not in str(caught.value)
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    ("given", "seconds"), [("", None), ("0", 0), ("0s", 0), ("0.0", 0), ("2", 2), ("0.25", 0.25), ("500ms", 0.5), ("1min", 60)]
)  # fmt: skip
def test_delays(given: str, seconds: float | None) -> None:
    """A bare number is in seconds, and 0 is a delay, too."""
    assert read(delay=given).delay == seconds


def test_what_scrapy_has_settings_for_is_set() -> None:
    """With the priority of a spider: a project yields, the command line does not. Others keep their values."""
    settings = Settings()
    settings.set("DOWNLOAD_DELAY", 9, "cmdline")
    settings.set("USER_AGENT", "theirs", "project")
    read(user_agent=" mine ", delay="1", concurrency="32", insecure="yes", proxy="p.test:3128").change(settings)
    names = ("USER_AGENT", "DOWNLOAD_DELAY", "CONCURRENT_REQUESTS_PER_DOMAIN", "CONCURRENT_REQUESTS")
    assert [settings[name] for name in names] == ["mine", 9, 32, 32]
    assert not settings.getbool("DOWNLOAD_VERIFY_CERTIFICATES", default=True)
    assert not settings.getbool("HTTPPROXY_ENABLED")
    unchanged = Settings()
    read(concurrency="4").change(unchanged)
    assert unchanged["CONCURRENT_REQUESTS"] == Settings()["CONCURRENT_REQUESTS"]


def test_headers_go_to_the_origins_of_start_urls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of one name are joined; a password in a URL takes precedence there."""
    monkeypatch.setenv("FOCUS_PASSWORD", "pw")
    access = read(
        root="http://www.a.test/,https://you:u@b.test:8443/x", auth="me", header=["x-key: 1", "X-Key: 2", "cookie: a=1"],
    ).access  # fmt: skip
    mine, yours = b"Basic bWU6cHc=", b"Basic eW91OnU="
    shared = {"X-Key": b"1, 2", "Cookie": b"a=1"}
    assert access.headers_for("http://www.a.test/any") == access.headers_for("https://www.a.test/") == {
        **shared, "Authorization": mine,
    }  # fmt: skip
    assert access.headers_for("https://b.test:8443/") == {**shared, "Authorization": yours}
    for other in ("http://a.test/", "http://b.test:8443/", "https://b.test/", "http://www.a.test:81/", "http://[x"):
        assert access.headers_for(other) == {}


def test_what_is_sent_is_said_without_values(tmp_path: Path) -> None:
    """Of many hosts or domains, the first ones are named."""
    lines = [f"{domain}\tTRUE\t/\tFALSE\t0\tx\ts3cret" for domain in (".a.test", "other.test", "b.test")]
    (tmp_path / "cookies.txt").write_text("\n".join(lines))
    sent = {"header": ["X-Key: s3cret", "x-key: s3cret"], "auth": "me", "cookies": str(tmp_path / "cookies.txt")}
    asked = read(**sent)
    assert asked.sends_from(asked.starts) == [
        "the name me with its password to www.a.test, b.test:8443",
        "X-Key, x-key to www.a.test, b.test:8443",
        f"the cookies of {tmp_path}/cookies.txt to a.test, b.test and 1 other domain",
    ]  # fmt: skip
    many = read(root=",".join(f"http://me:s3cret@{n}.test/" for n in range(9)), cookies=sent["cookies"])
    assert many.sends_from(many.starts) == [
        "a name with its password to 0.test, 1.test, 2.test, 3.test, 4.test and 4 other hosts",
        f"the cookies of {tmp_path}/cookies.txt to 3 domains, none of which is that of a start URL",
    ]  # fmt: skip


def test_a_proxy_is_shown_without_its_password() -> None:
    """Its parts are unquoted."""
    proxy = read(proxy="http://m%40e:p%3Ass@[::1]:3128/").proxy
    assert proxy is not None
    assert [*proxy] == ["http://[::1]:3128", "m@e", "p:ss"]
    assert repr(proxy) == "Proxy('http://[::1]:3128')"


def test_the_arguments_do_not_show_secrets(tmp_path: Path) -> None:
    """Whoever logs them logs names only."""
    (tmp_path / "cookies.txt").write_text("a.test\tFALSE\t/\tFALSE\t0\tx\ts3cret\n")
    asked = read(header=["X-Key: s3cret"], cookies=str(tmp_path / "cookies.txt"), proxy="http://me:s3cret@p.test")
    assert "s3cret" not in repr(asked)


def test_openssl_learns_the_authorities_where_a_system_lists_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """On macOS and Windows; a list that the user names takes precedence, and other systems have their own."""
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setattr(finding.sys, "platform", "linux")
    finding._trust_authorities()
    assert "SSL_CERT_FILE" not in finding.os.environ
    monkeypatch.setattr(finding.sys, "platform", "darwin")
    finding._trust_authorities()
    assert finding.os.environ["SSL_CERT_FILE"].endswith("cacert.pem")
    monkeypatch.setenv("SSL_CERT_FILE", "mine.pem")
    finding._trust_authorities()
    assert finding.os.environ["SSL_CERT_FILE"] == "mine.pem"


def test_without_a_terminal_the_password_has_to_be_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says in which variable."""

    def no_terminal(prompt: str) -> str:
        raise OSError(errno.ENXIO, "no terminal")

    monkeypatch.delenv("FOCUS_PASSWORD", raising=False)
    monkeypatch.setattr("scrapy_focus.finders.kit.arguments.credentials.getpass", no_terminal)
    account = read(auth="me").auth
    assert account is not None
    with pytest.raises(UsageError, match="no terminal on which to ask for the password of me"):
        account.ask()
    monkeypatch.setenv("FOCUS_PASSWORD", "")
    account.ask()
    assert account.header == b"Basic bWU6"
