"""A certificate that a browser would warn of is named once for its host, as Scrapy accepts any."""

from __future__ import annotations

import ssl
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING

import pytest
from crawls import Follower, crawl
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from test_find_commands import FAST, run

from scrapy_focus.finders.files.spider import DatasetsSpider
from scrapy_focus.finders.kit.records.notes import read_notes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Pages(BaseHTTPRequestHandler):
    """Answers with a page that leads to a second one."""

    def do_GET(self) -> None:
        body = b'<html><body><a href="/more">more</a></body></html>'
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Log nothing."""


def named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def certified(folder: Path, issuer: str, days: int) -> Path:
    """Write a certificate for localhost that ends in so many days, with its key; return the file."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(named("localhost"))
        .issuer_name(named(issuer))
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=900))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "both.pem").write_bytes(private + made.public_bytes(pem))
    return folder / "both.pem"


@contextmanager
def served(file: Path) -> Iterator[str]:
    """Serve pages with a certificate, and return the URL of the first."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        server.daemon_threads = True
        server.socket = context.wrap_socket(server.socket, server_side=True)
        Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"https://localhost:{server.server_port}/"
        server.shutdown()


@pytest.mark.reactor
@pytest.mark.parametrize(
    ("issuer", "days", "said"),
    [
        ("localhost", 9, "is self-signed"),
        ("Some Authority", -9, "expired on {day}"),
        ("Some Authority", 9, ""),
    ],
    ids=["self-signed", "expired", "other"],
)
def test_a_certificate_that_browsers_warn_of_is_named_once(tmp_path: Path, issuer: str, days: int, said: str) -> None:
    """It is accepted all the same; nothing is logged about one whose problem is not in itself."""
    file = certified(tmp_path, issuer, days)
    day = x509.load_pem_x509_certificate(file.read_bytes()).not_valid_after_utc.date().isoformat()
    with served(file) as url:
        result = crawl(Follower, addon=True, seeds=[url])
    assert result.outcomes == {"ok": 2}
    why = said.format(day=day)
    line = (
        f"The certificate of localhost {why}, and was not checked; DOWNLOAD_VERIFY_CERTIFICATES=True refuses such hosts"
    )
    assert result.logged("The certificate of") == ([line] if said else [])


@pytest.mark.reactor
def test_a_certificate_that_scrapy_checks_is_ignored(tmp_path: Path) -> None:
    """With Scrapy's own check such a host is refused, and the last line gives the reason."""
    with served(certified(tmp_path, "localhost", 9)) as url:
        result = crawl(Follower, {"DOWNLOAD_VERIFY_CERTIFICATES": True, "RETRY_TIMES": 0}, addon=True, seeds=[url])
    assert result.outcomes == {"failure": 1}
    assert not result.logged("The certificate of")
    assert result.logged(
        "its certificate is not valid: self-signed, expired, or of an unknown authority): if you trust the host all the "
        "same, accept its certificate with DOWNLOAD_VERIFY_CERTIFICATES=False."
    )


def test_a_command_refuses_an_invalid_certificate_unless_it_is_insecure(tmp_path: Path) -> None:
    """The last line names the option. With it, the page names the host, and what is wrong."""
    with served(certified(tmp_path, "localhost", 9)) as url:
        _, refused = run(tmp_path, "files", url, *FAST, expect=4)
        assert "its certificate is not valid: self-signed, expired, or of an unknown authority" in refused
        assert "if you trust the host all the same, accept its certificate with --insecure." in refused
        said, _ = run(tmp_path, "files", url, *FAST, "--insecure", "--out", "accepted", "--types", "html")
        assert "Accepts any certificate." in said
    assert (
        "The certificate of localhost (self-signed) was not checked." in (tmp_path / "accepted/index.html").read_text()
    )


@pytest.mark.reactor
def test_a_certificate_for_another_name_is_noted(tmp_path: Path) -> None:
    """It is named in the page of a crawl that accepts it, and refused otherwise, if its authority is known."""
    file = certified(tmp_path, "Some Authority", 9)
    with served(file) as url:
        root = url.replace("localhost", "127.0.0.1")
        crawl(DatasetsSpider, {"RETRY_TIMES": 0}, addon=True, root=root, out=str(tmp_path / "out"), delay="0")
    assert read_notes(tmp_path / "out").unchecked == {"127.0.0.1": "is for another name"}
    assert (
        "The certificate of 127.0.0.1 (for another name) was not checked." in (tmp_path / "out/index.html").read_text()
    )


def test_a_known_certificate_for_another_name_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command says so; for its own name it is accepted."""
    file = certified(tmp_path, "localhost", 9)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    with served(file) as url:
        other = url.replace("localhost", "127.0.0.1")
        _, refused = run(tmp_path, "files", other, *FAST, expect=4)
        assert "its certificate is for another name): if you trust the host all the same" in refused
        run(tmp_path, "files", url, *FAST, "--out", "accepted", "--types", "html")
