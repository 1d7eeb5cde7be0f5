"""Hosts are closed while their domains may be asked for no more pages, and count for themselves where that is wanted."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from scrapy_focus import ConfigError, Link, Placement, memory_frontier
from scrapy_focus.core.frontier import Vectors
from scrapy_focus.policies.bestfirst import BestFirst
from scrapy_focus.policies.domains import ClosedHosts, Domains
from scrapy_focus.policies.linkclassifier import OnlineLinkClassifier
from scrapy_focus.policies.treeq.policy import TreeQ

HOSTS = ["a.one.test", "b.one.test", "two.test", "127.0.0.1:80"]


def waiting(hosts: list[str]):
    """Return a frontier with a queued link on each host."""
    frontier = memory_frontier(Vectors(1))
    links = [Link(f"http://{host}/", number, host) for number, host in enumerate(hosts, 1)]
    frontier.push(links, [Placement(0, 0.0, np.zeros(1, np.uint8)) for _ in links])
    return frontier


def add(frontier, host: str) -> None:
    """Queue one more link, on a host."""
    frontier.push([Link(f"http://{host}/x", hash(host) >> 2, host)], [Placement(0, 0.0, np.zeros(1, np.uint8))])


def test_hosts_of_a_domain_count_together_or_each_for_itself() -> None:
    """By their registered domain as a rule, by host where that is wanted, also after a pickle."""
    together, alone = Domains(1), Domains(1, by_host=True)
    assert len(set(together.rows(HOSTS).tolist())) == 3
    assert len(set(alone.rows(HOSTS).tolist())) == 4
    back = pickle.loads(pickle.dumps(alone))
    assert back.rows(HOSTS).tolist() == alone.rows(HOSTS).tolist() == [alone.row(host) for host in HOSTS]
    assert back.row("c.one.test") not in alone.rows(HOSTS).tolist()


@pytest.mark.parametrize("by_host", [False, True])
def test_a_host_is_closed_while_its_domain_is_full(by_host: bool) -> None:
    """With all hosts of its domain, those that come later included, until a page of it is given back."""
    domains = Domains(1, by_host=by_host)
    frontier = waiting(HOSTS)
    closed = ClosedHosts(domains, frontier)
    row = domains.row("a.one.test")
    closed.update(row, everywhere=domains.ask(row))
    assert closed.mask().tolist() == [True, not by_host, False, False]
    add(frontier, "c.one.test")
    assert closed.mask().tolist() == [True, not by_host, False, False, not by_host]
    assert not closed.is_done(np.arange(5)).any(), "the page may fail"
    anew = ClosedHosts(domains, frontier)
    assert anew.mask().tolist() == closed.mask().tolist(), "made anew for a job that is resumed"
    drawn = frontier.draw({0: 100}, np.random.default_rng(0), closed=closed.mask())
    assert set(drawn.hosts.tolist()) == set(np.flatnonzero(~closed.mask()).tolist())
    domains.release(row)
    closed.update(row)
    assert not closed.mask().any()


def test_a_cap_that_falls_closes_others() -> None:
    """At once, where they have as many pages as there may be from then on."""
    domains = Domains(2, least=1, falls_every=3)
    closed = ClosedHosts(domains, waiting(HOSTS))
    for host in ("two.test", "two.test", "a.one.test"):
        row = domains.row(host)
        closed.update(row, everywhere=domains.ask(row))
    assert closed.mask().tolist() == [True, True, True, False]


def test_nothing_is_closed_without_a_cap() -> None:
    """There is no mask then."""
    assert ClosedHosts(Domains(), waiting(HOSTS)).mask() is None


@pytest.mark.parametrize("policy", [TreeQ, BestFirst, OnlineLinkClassifier])
def test_policies_count_hosts(policy) -> None:
    """If it is set, and invalid values are named."""
    assert policy(keywords=["tea"], per_domain=1, per_host=True).domains.by_host
    assert not policy(keywords=["tea"], per_domain=1).domains.by_host
    with pytest.raises(ConfigError, match="per_host"):
        policy(keywords=["tea"], per_host="yes\0")
