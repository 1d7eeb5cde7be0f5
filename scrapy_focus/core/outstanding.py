"""How many picks may be in flight while the policy learns: few at first, then more.

A pick is chosen with the knowledge of that moment. The more picks are in flight, downloading or ready, the less is
known at the next choice. The cost depends on the size of the crawl: 256 in flight double the requests of a crawl that
needs three hundred, and cost little in one that needs ten thousand. The same rule is used by a crawl of one process,
by the leader of several, and by simulations of both.
"""

from __future__ import annotations

import math

from scrapy_focus.core.policy import Policy

LEAST = 8
ROOT = 1.5  # times the square root of the outcomes
SHARE = 20  # one in so many outcomes, if there are as many hosts


def most_out(outcomes: int, hosts: int = 1) -> int:
    """Return how many picks may be in flight after so many outcomes, with links on so many hosts.

    At least eight, and one and a half times the square root of the outcomes. In a long crawl of many hosts: one for
    each host, but at most a twentieth of the outcomes.

    Examples
    --------
    >>> most_out(0), most_out(1_000), most_out(100_000), most_out(100_000, hosts=3_000)
    (8, 47, 474, 3000)
    """
    return max(LEAST, int(ROOT * math.sqrt(outcomes)), min(hosts, outcomes // SHARE))


def learns(policy: type[Policy]) -> bool:
    """Whether a policy learns, so that picks in flight are chosen with less knowledge."""
    return policy.learn is not Policy.learn
