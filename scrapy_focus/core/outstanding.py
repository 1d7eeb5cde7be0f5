"""How many picks may be out at once where the policy learns: few at the start of a crawl, more as it knows more.

A pick is chosen with what is known by then. The more are out, downloading or laid ready, the less is known when the
next is chosen. What that costs depends on the size of the crawl: 256 out double the requests of a crawl that needs
three hundred, and cost little where it needs ten thousand. One rule serves a crawl of one process, the leader of
several, and simulations of both.
"""

from __future__ import annotations

import math

from scrapy_focus.core.policy import Policy

LEAST = 8
ROOT = 1.5  # times the square root of the outcomes
SHARE = 20  # one in so many outcomes, where there are as many hosts


def most_out(outcomes: int, hosts: int = 1) -> int:
    """Return how many picks may be out after so many outcomes, where links were found on so many hosts.

    At least eight, and one and a half times the square root of the outcomes. In a long crawl of many hosts, one for
    each host, but no more than a twentieth of the outcomes.

    Examples
    --------
    >>> most_out(0), most_out(1_000), most_out(100_000), most_out(100_000, hosts=3_000)
    (8, 47, 474, 3000)
    """
    return max(LEAST, int(ROOT * math.sqrt(outcomes)), min(hosts, outcomes // SHARE))


def learns(policy: type[Policy]) -> bool:
    """Whether a policy learns, so that what is out is chosen with less than will be known."""
    return policy.learn is not Policy.learn
