"""The registered domain of a host is what the Public Suffix List says, however it is looked up."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tldextract import TLDExtract

from scrapy_focus.web.domains import domain_of

EXTRACT = TLDExtract(suffix_list_urls=(), cache_dir=None, include_psl_private_domains=True)
RULES = sorted(EXTRACT.tlds)
LABELS = st.sampled_from(
    ["a", "www", "com", "uk", "city", "s3", "x-y", "7", "ck", "compute", "test", "xn--p1ai", "Ab", ""]
)


def by_the_list(host: str) -> str:
    """Return the registered domain of a host, from the library alone; of a list that does not know it, two labels."""
    found = EXTRACT(host)
    if found.suffix or not found.subdomain:
        return found.top_domain_under_public_suffix or host
    return f"{found.subdomain.rpartition('.')[2]}.{found.domain}"


@st.composite
def hosts(draw: st.DrawFn) -> str:
    """Return a host below or beside a rule of the list, or a part of one."""
    rule = draw(st.sampled_from(RULES)).lstrip("!").split(".")
    ending = [draw(LABELS) if label == "*" else label for label in rule][draw(st.integers(0, 2)) :]
    labels = [*draw(st.lists(LABELS, max_size=3)), *ending]
    return ".".join(labels) + draw(st.sampled_from(["", "", "", "", ":8000", "."]))


@given(hosts())
@example("a.b.c.kawasaki.jp")
@example("a.city.kawasaki.jp")
@example("city.kawasaki.jp")
@example("a.www.ck")
@example("b.a.ck")
@example("anna.github.io")
@example("github.io")
@example("s3.dualstack.eu-west-1.amazonaws.com")
@example("a.b.amazonaws.com")
@example("10.0.0.1")
@example("a.b.1")
def test_every_host_has_the_domain_of_the_list(host: str) -> None:
    """Including wildcards, exceptions, private suffixes, addresses, ports, capitals and invalid hosts."""
    domain_of.cache_clear()
    assert domain_of(host) == by_the_list(host)


@pytest.mark.parametrize("rule", [rule for rule in RULES if "*" in rule or "!" in rule])
def test_rules_with_wildcards_and_exceptions(rule: str) -> None:
    """Each of them, and what is one and two labels below."""
    ending = rule.lstrip("!").replace("*", "some")
    for host in (ending, f"a.{ending}", f"b.a.{ending}", ending.partition(".")[2]):
        assert domain_of(host) == by_the_list(host)
