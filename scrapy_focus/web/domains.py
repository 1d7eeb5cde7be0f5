"""Which hosts belong together, by the Public Suffix List."""

from __future__ import annotations

from functools import lru_cache

from tldextract import TLDExtract

# the snapshot that comes with the library: nothing is fetched, nothing written
_EXTRACT = TLDExtract(suffix_list_urls=(), cache_dir=None, include_psl_private_domains=True)


@lru_cache(maxsize=10_000)
def domain_of(host: str) -> str:
    """Return the registered domain of a host name, or the host (and port) itself where it has none.

    Domains under which anybody can have one, such as ``github.io``, count as suffixes. Where the list does not know the
    last label, the domain has two.

    Examples
    --------
    >>> [domain_of(host) for host in ("data.www.example.co.uk", "anna.github.io", "a.b.test", "127.0.0.1:8000")]
    ['example.co.uk', 'anna.github.io', 'b.test', '127.0.0.1:8000']
    """
    found = _EXTRACT(host)
    if found.suffix or not found.subdomain:
        return found.top_domain_under_public_suffix or host
    return f"{found.subdomain.rpartition('.')[2]}.{found.domain}"
