"""Tells which hosts belong together, by the Public Suffix List."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tldextract import TLDExtract

_PLAIN = re.compile(r"(?:[a-z0-9_-]+\.)+[a-z_][a-z0-9_-]*")  # neither IP address nor port, in lower case
_NOBODY = "0-0-0"  # a label that occurs in no rule


@lru_cache(maxsize=10_000)
def domain_of(host: str) -> str:
    """Return the registered domain of a host name, or the host (and port) itself if it has none.

    Domains under which anybody can register, such as ``github.io``, count as suffixes. If the list does not know the
    last label, the domain has two labels.

    Examples
    --------
    >>> [domain_of(host) for host in ("data.www.example.co.uk", "anna.github.io", "a.b.test", "127.0.0.1:8000")]
    ['example.co.uk', 'anna.github.io', 'b.test', '127.0.0.1:8000']
    """
    if "xn--" in host or not _PLAIN.fullmatch(host):
        return _asked(host)
    dot, inner = host.rfind("."), _inner()
    while True:  # until no rule distinguishes hosts with this ending
        before = host.rfind(".", 0, dot)
        longer = host[before + 1 :]
        if longer not in inner:
            break
        if before < 0:
            return _asked(host)
        dot = before
    more = _more(host[dot + 1 :])
    return longer.split(".", more)[-1] if more >= 0 else _asked(host)


def has_public_suffix(host: str) -> bool:
    """Whether the list knows the suffix of a host name.

    Examples
    --------
    >>> has_public_suffix("example.org"), has_public_suffix("seeds.txt")
    (True, False)
    """
    return bool(_extract()(host).suffix)


def _asked(host: str) -> str:
    """Return the registered domain of a host, from the list."""
    found = _extract()(host)
    if found.suffix or not found.subdomain:
        return found.top_domain_under_public_suffix or host
    return f"{found.subdomain.rpartition('.')[2]}.{found.domain}"


@lru_cache(maxsize=10_000)
def _more(ending: str) -> int:
    """Return how many labels hosts with this ending have beyond their domain, if no rule has the label before it.

    The count includes that label. -1: the list has a wildcard there.
    """
    if f"*.{ending}" in _inner():
        return -1
    return ending.count(".") + 1 - _asked(f"{_NOBODY}.{ending}").count(".")


@cache
def _extract() -> TLDExtract:
    """Return the list: the snapshot in the library, so that nothing is fetched or written.

    It is imported on first use, as it imports an HTTP client.
    """
    from tldextract import TLDExtract

    return TLDExtract(suffix_list_urls=(), cache_dir=None, include_psl_private_domains=True)


@cache
def _inner() -> frozenset[str]:
    """Return all rules of the list, and all their endings."""
    labels = (rule.split(".") for rule in _extract().tlds)
    return frozenset(".".join(rule[at:]) for rule in labels for at in range(len(rule)))
