"""Warns of start hosts with a certificate that a browser would refuse: by default, Scrapy accepts any."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from cryptography import x509
from scrapy import signals
from scrapy.utils.httpobj import urlparse_cached

from scrapy_focus.core.printable import printable_logger
from scrapy_focus.engine.host import host_of

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response

logger = printable_logger(__name__)


class Certificates:
    """Warns once for each start host whose certificate is self-signed or expired.

    Scrapy itself warns of a wrong name. Chains of certificates are not checked.
    """

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self._seen: set[str] = set()

    def start(self) -> None:
        """Check the first response of each start host, unless Scrapy checks certificates."""
        if not self.crawler.settings.getbool("DOWNLOAD_VERIFY_CERTIFICATES"):
            self.crawler.signals.connect(self._on_response, signals.response_received)

    def _on_response(self, response: Response) -> None:
        host = host_of(self.crawler)
        name = urlparse_cached(response).hostname or ""
        if response.certificate is None or host is None or name not in host.seeds or name in self._seen:
            return
        self._seen.add(name)
        if wrong := wrong_with(response.certificate):
            said = "The certificate of %s %s, and was not checked; DOWNLOAD_VERIFY_CERTIFICATES=True refuses such hosts"
            logger.warning(said, name, wrong, extra={"spider": self.crawler.spider})


def wrong_with(certificate: Any) -> str:
    """Say what is wrong with a certificate on its own, ``""`` for nothing; takes Twisted's object, or DER."""
    try:
        if isinstance(certificate, bytes):
            found = x509.load_der_x509_certificate(certificate)
        else:
            found = certificate.original.to_cryptography()
        if found.not_valid_after_utc < datetime.now(UTC):
            return f"expired on {found.not_valid_after_utc:%Y-%m-%d}"
        return "is self-signed" if found.issuer == found.subject else ""
    except (ValueError, AttributeError):  # it is unreadable
        return ""
