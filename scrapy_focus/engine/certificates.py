"""Notes whose certificates are not checked, and warns of those that a browser would refuse: Scrapy accepts any."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from cryptography import x509
from scrapy import signals
from scrapy.utils.httpobj import urlparse_cached
from service_identity import CertificateError, VerificationError
from service_identity.cryptography import verify_certificate_hostname, verify_certificate_ip_address

from scrapy_focus.core.printable import printable_logger
from scrapy_focus.engine.host import host_of
from scrapy_focus.web.addresses import literal

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response

logger = printable_logger(__name__)

_MOST = 1000  # hosts that are noted


class Certificates:
    """Notes the hosts whose certificates are not checked, and warns once for each start host with an invalid one.

    A certificate is invalid if it is self-signed, expired or for another name; Scrapy itself warns of a wrong name.
    Chains of certificates are not checked.
    """

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self._seen: set[str] = set()

    def start(self) -> None:
        """Look at the first response of each host, unless Scrapy checks certificates."""
        if not self.crawler.settings.getbool("DOWNLOAD_VERIFY_CERTIFICATES"):
            self.crawler.signals.connect(self._on_response, signals.response_received)

    def _on_response(self, response: Response) -> None:
        host = host_of(self.crawler)
        name = urlparse_cached(response).hostname or ""
        if response.certificate is None or host is None or name in self._seen or len(self._seen) >= _MOST:
            return
        self._seen.add(name)
        wrong = wrong_with(response.certificate)
        host.unchecked[name] = wrong or ("" if _is_for(name, response.certificate) else "is for another name")
        if wrong and name in host.seeds:
            said = "The certificate of %s %s, and was not checked; DOWNLOAD_VERIFY_CERTIFICATES=True refuses such hosts"
            logger.warning(said, name, wrong, extra={"spider": self.crawler.spider})


def wrong_with(certificate: Any) -> str:
    """Say what is wrong with a certificate on its own, ``""`` for nothing; takes Twisted's object, or DER."""
    try:
        found = _parsed(certificate)
        if found.not_valid_after_utc < datetime.now(UTC):
            return f"expired on {found.not_valid_after_utc:%Y-%m-%d}"
        return "is self-signed" if found.issuer == found.subject else ""
    except (ValueError, AttributeError):  # it is unreadable
        return ""


def _is_for(name: str, certificate: Any) -> bool:
    """Whether a certificate names a host, or cannot be read."""
    is_address = literal(name) is not None and name != "localhost"
    verify = verify_certificate_ip_address if is_address else verify_certificate_hostname
    try:
        verify(_parsed(certificate), name.strip("[]"))
    except (VerificationError, CertificateError):
        return False
    except (ValueError, AttributeError):
        return True
    return True


def _parsed(certificate: Any) -> x509.Certificate:
    if isinstance(certificate, bytes):
        return x509.load_der_x509_certificate(certificate)
    found: x509.Certificate = certificate.original.to_cryptography()
    return found
