"""Those who say that pages changed are believed as far as they proved right."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pytest

from scrapy_focus.learn import signals
from scrapy_focus.learn.signals import Belief

if TYPE_CHECKING:
    from collections.abc import Iterable


def told(belief: Belief, host: str, kind: str, rights: Iterable[bool]) -> None:
    """Let visits show whether what was said was right."""
    for right in rights:
        belief.said(host, kind, right=right)


def test_nobody_is_known() -> None:
    """Then a coin decides."""
    belief = Belief()
    assert belief.trust("a.test", "feed") == 0.5


def test_trust_tends_to_the_share_that_was_right() -> None:
    """For each host and kind by itself."""
    belief = Belief()
    told(belief, "a.test", "sitemap", [True, True, True, False] * 100)
    told(belief, "b.test", "sitemap", [False] * 9 + [True])
    assert belief.trust("a.test", "sitemap") == pytest.approx(0.75, abs=0.01)
    assert belief.trust("b.test", "sitemap") < 0.4
    assert belief.trust("a.test", "feed") == 0.5


def test_a_new_host_is_believed_as_all_others_together() -> None:
    """Until its own visits say otherwise."""
    belief = Belief()
    told(belief, "liar.test", "sitemap", [False] * 90)
    assert belief.trust("new.test", "sitemap") < 0.05
    told(belief, "new.test", "sitemap", [True] * 20)
    assert belief.trust("new.test", "sitemap") > 0.8
    assert belief.trust("liar.test", "sitemap") < 0.05


def test_a_host_may_get_better() -> None:
    """What it said long ago is forgotten by and by."""
    belief = Belief()
    told(belief, "a.test", "sitemap", [False] * 10_000)
    told(belief, "a.test", "sitemap", [True] * 1000)
    assert belief.trust("a.test", "sitemap") > 0.8


def test_hosts_beyond_the_bound_share_one_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """So memory is bounded, however many hosts there are."""
    monkeypatch.setattr(signals, "_HOSTS", 3)
    belief = Belief()
    for host in ("a", "b", "c"):
        told(belief, host, "sitemap", [True] * 20)
    told(belief, "d", "sitemap", [False] * 60)
    assert belief.trust("e", "sitemap") == belief.trust("d", "sitemap") < 0.1
    assert belief.trust("a", "sitemap") > 0.8
    size = len(pickle.dumps(belief))
    for n in range(100):
        belief.said(f"{n}.test", "sitemap", right=False)
    assert len(pickle.dumps(belief)) == size
    assert pickle.loads(pickle.dumps(belief)).trust("a", "sitemap") == belief.trust("a", "sitemap")
