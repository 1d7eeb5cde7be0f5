"""Says in words why a page was fetched, from what the policy says in numbers (``FOCUS_EXPLAIN``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy_focus.core.printable import counted, printable
from scrapy_focus.web.html import readable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_LEVELS = 63  # of the numbers from 0 to 1 that TRES goes by
_LONGEST = 2000  # characters of a reason
_MOST_LINKS = 36  # that are told apart
_KNOWN = {"pulls", "earned", "revealed", "at random", "candidates"}  # of a place, by the default policy
_NEUTRAL, _LITTLE = 0.5, 0.05  # what words that taught nothing say; so near to it is nothing worth a word
_UNKNOWN = (0.5, 0.51)  # the share of relevant pages of a domain of which none came back yet


def reason(said: Mapping[str, Any], *, depth: int) -> str:
    """Return why a page was fetched, in a line: what spoke for its link first, what the policy made of it last.

    It is what was known when the link was chosen; the page itself may have turned out otherwise.

    Parameters
    ----------
    said
        What :meth:`scrapy_focus.Policy.explain` returned for the page. That of the default policy, of TRES and of a
        bandit of hosts is put into words; others may say it themselves (``why``), or their names and values stand
        there as they are.
    depth
        Clicks from a seed.

    Examples
    --------
    >>> reason({"leaf": 3, "value": 1.12, "chance": 0.81, "parent relevant": 1.0, "nearness of a relevant page": 1.0,
    ...     "keyword in the anchor": 1.0, "probability": 0.94}, depth=3)
    'keyword in the anchor; words of the link 94 % on the topic; found on a relevant page; 81 % likely to be relevant'
    >>> reason({"host": "a.test", "pages": 14.0, "worth": 6.0, "parents worth": 1, "siblings not": 2, "link": 0.43},
    ...     depth=2)
    '6 of 14 pages of a.test were finds; linked on 1 find; 0 of 2 links beside it led to finds; probability 43 %'
    >>> reason({"tag_path": "html/body/ul/li/a", "pulls": 14.0, "earned": 2.0, "revealed": 3.0, "candidates": 8,
    ...     "at random": False, "why": "..."}, depth=1)
    'found on a seed; 14 links at ../ul/li/a brought 2 finds and 3 links to likely ones; the most promising of 8'
    >>> reason({"arm": 7, "score": 0.87, "why": "a link to a page at html/body/a: its arm earned 1 target in 2 pulls"},
    ...     depth=0)
    'a seed; a link to a page at html/body/a: its arm earned 1 target in 2 pulls'
    >>> reason({"kind": "most probable", "score": 0.5}, depth=0)
    'a seed; kind most probable; score 0.5'
    """
    left = dict(said)
    if isinstance(left.get("tag_path"), str) and left.keys() >= _KNOWN:
        pieces = [*_way(left, depth), *_place(left)]
    elif isinstance(left.get("why"), str):
        pieces = [*_way(left, depth), left["why"]]
    else:
        pieces = [*_words(left), *_way(left, depth), *_host(left), *_finds(left), *_judgement(left)]
    return printable("; ".join(pieces), _LONGEST) or "the next in line"


def _words(left: dict[str, Any]) -> Iterator[str]:
    places = [place for place in ("anchor", "URL") if left.pop(f"keyword in the {place}", 0)]
    if places:
        yield f"keyword in the {' and the '.join(places)}"
    if "probability" in left:
        yield f"words of the link {100 * left.pop('probability'):.0f} % on the topic"
    learned = left.pop("words that led to relevant pages", _NEUTRAL)
    if abs(learned - _NEUTRAL) > _LITTLE:
        yield f"words like these led {'to' if learned > _NEUTRAL else 'away from'} relevant pages"


def _way(left: dict[str, Any], depth: int) -> Iterator[str]:
    parent, nearness = left.pop("parent relevant", None), left.pop("nearness of a relevant page", 0)
    left.pop("relevant share of the path", None)
    share, links = left.pop("share of links from relevant pages", 0), left.pop("links from relevant pages", 0)
    if depth == 0:
        yield "a seed"
    elif depth == 1:
        yield "found on a seed"
    elif parent:
        yield "found on a relevant page"
    elif nearness:
        yield f"{round(1 / nearness)} clicks behind a relevant page"
    elif parent is not None:
        yield "no relevant page on the way there"
    beside = left.pop("relevant share of the links beside it", None)
    if beside is not None:
        yield f"{100 * beside:.0f} % of the links beside it relevant"
    number = round(2 ** (links * _LEVELS / 12) - 1)
    if number > 1:
        said = f"more than {_MOST_LINKS - 1}" if number >= _MOST_LINKS else f"{'about ' * (number > 5)}{number}"
        yield f"{said} relevant pages link there" + (f", {100 * share:.0f} % of all that do" if share < 1 else "")


def _host(left: dict[str, Any]) -> Iterator[str]:
    share, is_new = left.pop("relevant share of its host", None), left.pop("unknown host", 0)
    if is_new:
        yield "a new domain"
    elif share is not None and share not in _UNKNOWN:
        yield f"{100 * share:.0f} % of its domain relevant"


def _finds(left: dict[str, Any]) -> Iterator[str]:
    """Say what a bandit of hosts knew of the host, and of the pages around the link."""
    if "worth" not in left:
        return
    host, pages, worth = left.pop("host", ""), left.pop("pages", 0), left.pop("worth")
    yield f"{worth:g} of {pages:g} pages of {host} were finds" if pages else f"no page of {host} was known"
    if parents := left.pop("parents worth", 0):
        yield f"linked on {parents} {'find' if parents == 1 else 'finds'}"
    left.pop("parents not", 0)
    finds, others = left.pop("siblings worth", 0), left.pop("siblings not", 0)
    if finds or others:
        yield f"{finds} of {finds + others} links beside it led to finds"
    if "link" in left:
        yield f"probability {100 * left.pop('link'):.0f} %"


def _place(said: Mapping[str, Any]) -> Iterator[str]:
    """Say what the default policy knew of the links that stand where the link does."""
    pulls, earned, revealed = (round(said[name]) for name in ("pulls", "earned", "revealed"))
    place = printable(readable(said["tag_path"]))
    likely = f" and {counted(revealed, 'link')} to likely ones" if revealed else ""
    brought = f"{counted(earned, 'find')}{likely}" if earned or likely else "no find"
    if said["tag_path"]:
        yield f"{counted(pulls, 'link')} at {place} brought {brought}" if pulls else f"no link at {place} was known"
    if said["at random"]:
        yield "drawn at random"
    elif said["candidates"] > 1:
        yield f"the most promising of {said['candidates']}"


def _judgement(left: dict[str, Any]) -> Iterator[str]:
    left.pop("leaf", None)
    chance, drawn = left.pop("chance", None), left.pop("at random", False)
    if chance is not None:
        left.pop("value", None)
    yield from (f"{name} {number}" for name, number in left.items() if number)
    if drawn:
        yield "drawn at random"
    elif chance is not None:
        yield f"{100 * chance:.0f} % likely to be relevant"
