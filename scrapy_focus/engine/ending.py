"""Says how a crawl ended: in one sentence, with what to do next, and in the exit status of the process.

Whoever starts a crawl in a cron job looks at a number, whoever sits before it at the last line, and both are misled if
a site that could not be reached ends as one in which nothing was left to find. So each crawl has exactly one ending. It
is drawn from what the crawl counted, when its scheduler is closed. Until then it counts as interrupted: a process that
is stopped at once draws nothing any more.
"""

from __future__ import annotations

import errno
import sqlite3
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from scrapy_focus.core.printable import NAME, REASON, counted, printable
from scrapy_focus.core.problems import see

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scrapy.crawler import Crawler

    from scrapy_focus.core.problems import Section

Kind = Literal["found", "error", "wrong_argument", "nothing_found", "unreachable", "disk_full", "budget", "interrupted"]

#: Exit status of each kind.
STATUS: dict[Kind, int] = {
    "found": 0,
    "error": 1,
    "wrong_argument": 2,
    "nothing_found": 3,
    "unreachable": 4,
    "disk_full": 5,
    "budget": 0,  # as was asked for
    "interrupted": 130,
}
#: The stats in which an ending stands.
KIND, SENTENCE = "focus/ending", "focus/ending_sentence"

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_NAMED = 5  # types that are named
_KEPT = 100  # types that are counted one by one


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a crawl ended."""

    kind: Kind
    sentence: str  # printable, in one line

    @property
    def status(self) -> int:
        """The exit status of a process that ran this crawl."""
        return STATUS[self.kind]


def ending_of(crawler: Crawler) -> Ending:
    """Return how a crawl ended, or would if its process ended now; for crawls with a scheduler of this package."""
    stats = crawler._stats  # None until the crawl begins
    kind: Kind | None = None if stats is None else stats.get_value(KIND)
    if stats is None or kind is None:
        return Ending(kind="error", sentence="The crawl did not start; the log says why.")
    return Ending(kind=kind, sentence=stats.get_value(SENTENCE, ""))


def note_ending(crawler: Crawler, ending: Ending) -> None:
    """Let :func:`ending_of` return this from now on."""
    crawler.stats.set_value(KIND, ending.kind)
    crawler.stats.set_value(SENTENCE, ending.sentence)


def is_full(error: BaseException | None) -> bool:
    """Whether an error, or what it was raised from, says that there is no room on the disk."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _FULL:
            return True
        if isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
            return True
        error = error.__cause__
    return False


class Wall(NamedTuple):
    """A start page that lets no program in."""

    sentence: str  # what it is, and what to do
    section: Section  # of the documents that says more


class Facts(NamedTuple):
    """What an ending is drawn from."""

    reason: str  # for which Scrapy closed the spider
    found: float  # rewards, or items where there are more
    noun: str  # of what was found: "files", "items"; more than one
    wanted: str  # types that were asked for, "" for any
    read: int  # answers that are pages or files; of this run, where no server answered anything in it
    asked: int  # picks with an outcome in this run
    requests: int
    failure: str  # why the first page that could not be read could not
    types: Mapping[str, int]  # of what was read, how many
    error: BaseException | None = None  # for which the crawl stopped itself
    resumable: bool = False
    where: str = ""  # the folder or file of what was found
    unread: Sequence[str] = ()  # start URLs that could not be read in this run, the first of them, with the reasons
    n_unread: int = 0  # how many there were
    remedy: str = ""  # what to do where no page could be read, "" for the usual advice
    section: Section = "unreachable"  # of the documents, where no page could be read
    wall: Wall | None = None  # the start page, if it lets no program in
    described: str = ""  # which of what the noun names: "with Recipe"
    own: float | None = None  # of what was found: what this worker found, where several fetch for one crawl
    waiting: int = 0  # links that were not followed
    cost_limit: float = 0.0  # requests that the next find was allowed to cost; 0: any number
    states: Mapping[str, int] | None = None  # files in each state since the crawl before; None: there was none
    watched: str = ""  # for how long a site was to be watched for news: "24 hours"
    cut: int = 0  # files that are known not to be whole
    shells: int = 0  # pages that may show more in a browser, where there was none
    advice: str = ""  # how to get a browser
    cut_lists: int = 0  # rendered pages that showed a part of a list only
    elsewhere: int = 0  # of the requests, those that a browser sent to other hosts than that of its page
    hint: str = ""  # a sentence of the spider


def draw(facts: Facts) -> Ending:
    """Return the ending that follows from the facts. What needs attention first wins.

    The sentence ends with a link into the documents where nothing was found or the disk is full.
    """
    ending = _without_link(facts)
    section = _section(ending, facts)
    return ending if section is None else replace(ending, sentence=f"{ending.sentence} {see(section)}")


def _section(ending: Ending, facts: Facts) -> Section | None:
    """Return which section of the documents says what to do now, ``None`` where nothing has to be done."""
    match ending.kind:
        case "disk_full":
            return "disk-is-full"
        case "unreachable":
            return facts.section
        case "nothing_found":
            if facts.wall is not None:
                return facts.wall.section
            if facts.reason == "memusage_exceeded":
                return "out-of-memory"
            return "needs-a-browser" if facts.shells else "nothing-found"
    return None


def _without_link(facts: Facts) -> Ending:
    if facts.reason == "focus_refused":
        sentence = "This worker could not take part: the log says why."
        return Ending(kind="wrong_argument", sentence=sentence)
    if facts.error is not None or facts.reason == "focus_storage":
        return _failed(facts)
    if facts.reason in ("shutdown", "focus_stopped"):
        return _with_unread(_with_cut(_interrupted(facts), facts), facts)
    if facts.asked and not facts.read:
        return _unreachable(facts)
    if facts.found > 0:
        return _with_unread(_with_hints(_with_more(_with_cut(_found(facts), facts), facts), facts), facts)
    if not facts.asked:
        return _nothing_asked(facts)
    return _with_unread(_with_hints(_with_more(_nothing(facts), facts), facts), facts)


def _unreachable(facts: Facts) -> Ending:
    why = _unread(facts) or printable(facts.failure, REASON)
    usual = f"check the {'URLs' if facts.n_unread > 1 else 'URL'}, or try again later"
    advice = (facts.remedy or usual) if why else "see the log"
    return Ending(kind="unreachable", sentence=f"No page could be read{why and f' ({why})'}: {advice}.")


def _with_more(ending: Ending, facts: Facts) -> Ending:
    """Return an ending that says how to go on, where the crawl ended for what the next find was expected to cost."""
    if facts.reason != "focus_cost_limit" or not (facts.cost_limit and facts.waiting):
        return ending
    one = _called(facts._replace(found=1))
    links = f"{facts.waiting:,} link{'s were' if facts.waiting > 1 else ' was'} not followed"
    higher = "with a higher FOCUS_COST_LIMIT, or 0 for none,"
    requests = "request" if facts.cost_limit == 1 else "requests"
    resumes = f"the same command {higher} resumes" if facts.resumable else f"start again {higher} to follow them"
    more = f"The next {one} is expected to cost more than {facts.cost_limit:,.10g} {requests}, and {links}: {resumes}."
    return replace(ending, sentence=f"{ending.sentence} {more}")


def _with_cut(ending: Ending, facts: Facts) -> Ending:
    """Return an ending that says how many files were cut, too."""
    if not facts.cut:
        return ending
    was, it = ("was", "it") if facts.cut == 1 else ("were", "them")
    said = f"{counted(facts.cut, 'file')} {was} cut: the next crawl asks for {it} again."
    return replace(ending, sentence=f"{ending.sentence} {said}")


def _with_hints(ending: Ending, facts: Facts) -> Ending:
    """Return an ending that says what is still hidden: on other hosts, or behind scripts."""
    said = [facts.hint] if facts.hint else []
    if facts.shells:
        pages = f"{facts.shells:,} page{'s' * (facts.shells > 1)}"
        said.append(f"{pages} may show more in a browser{facts.advice and ': to use one, '}{facts.advice}.")
    if facts.cut_lists:
        lists = "A list is" if facts.cut_lists == 1 else f"{facts.cut_lists:,} lists are"
        said.append(f"{lists} longer than the part that the browser showed.")
    return replace(ending, sentence=" ".join([ending.sentence, *said])) if said else ending


def _with_unread(ending: Ending, facts: Facts) -> Ending:
    """Return an ending that names the start URLs that could not be read, too."""
    unread = _unread(facts)
    return replace(ending, sentence=f"{ending.sentence} Could not read {unread}.") if unread else ending


def _unread(facts: Facts) -> str:
    more = facts.n_unread - len(facts.unread)
    named = "; ".join(printable(each, REASON) for each in facts.unread)
    return f"{named}; and {more:,} more" if more > 0 else named


def _failed(facts: Facts) -> Ending:
    again = "the same command resumes" if facts.resumable else "start again"
    if is_full(facts.error):
        return Ending(
            kind="disk_full",
            sentence=f"The disk is full, after {_counted(facts)}: make room, then {again}.",
        )
    why = f" ({printable(str(facts.error), REASON)})" if facts.error is not None else ""
    return Ending(
        kind="error", sentence=f"An error ended the crawl, with {_found_so_far(facts)}{why}: see the log, then {again}."
    )


def _interrupted(facts: Facts) -> Ending:
    after = "the same command resumes" if facts.resumable else "it cannot be resumed, as JOBDIR was not set"
    return Ending(
        kind="interrupted", sentence=f"Interrupted, with {_found_so_far(facts)}; {after}{_kept(facts, '; ')}."
    )


def _found(facts: Facts) -> Ending:
    if not _is_budget(facts.reason):
        done = f"Closed ({printable(facts.reason, REASON)}), with" if _is_foreign(facts.reason) else "Done:"
        return Ending(kind="found", sentence=f"{done} {_found_so_far(facts)}{_kept(facts, '; ')}.")
    if _is_watched(facts):
        return Ending(kind="budget", sentence=f"{_as_asked(facts)}{_kept(facts, '; ')}.")
    more = (
        f"the same command with a larger budget of {_unit(facts)} resumes"
        if facts.resumable
        else "a larger budget may find more, but begins anew, as JOBDIR was not set"
    )
    return Ending(
        kind="budget",
        sentence=f"The {_budget(facts)} is used up, with {_found_so_far(facts)}: {more}{_kept(facts, '; ')}.",
    )


def _as_asked(facts: Facts) -> str:
    return f"Watched for {facts.watched}, as asked: {_amount(facts.found)} new {_called(facts)}"


def _is_watched(facts: Facts) -> bool:
    """Whether a site was watched for news for as long as was asked for."""
    return bool(facts.watched) and facts.reason == "focus_budget_seconds"


def _nothing_asked(facts: Facts) -> Ending:
    sentence = "Nothing was asked for: no start URL was given, or all of them were filtered."
    if _is_budget(facts.reason):
        sentence = (
            f"The {_budget(facts)} was used up before any page was received: give a larger one (robots.txt counts, "
            "too)."
        )
    if _is_foreign(facts.reason):
        sentence = f"Closed ({printable(facts.reason, REASON)}) before any page was asked for."
    return Ending(kind="nothing_found", sentence=sentence)


def _nothing(facts: Facts) -> Ending:
    if _is_watched(facts):
        return Ending(kind="nothing_found", sentence=f"{_as_asked(facts)}.")
    if facts.states:
        used_up = f"; the {_budget(facts)} is used up" if _is_budget(facts.reason) else ""
        return Ending(kind="nothing_found", sentence=f"Done: {_found_so_far(facts)}{used_up}.")
    asked = f"No {printable(facts.wanted, REASON) or _called(facts)} in {_requests(facts)}"
    if facts.wanted:
        asked += f"; seen: {seen(facts.types)}"
    if facts.wall is not None:
        return Ending(kind="nothing_found", sentence=f"{asked}. {facts.wall.sentence}")
    advice = "try other types, or another start URL" if facts.wanted else "try another start URL"
    if _is_foreign(facts.reason):
        return Ending(kind="nothing_found", sentence=f"{asked}: closed ({printable(facts.reason, REASON)}).")
    if _is_budget(facts.reason):
        advice = f"the {_budget(facts)} is used up; give a larger one, or {advice}"
    return Ending(kind="nothing_found", sentence=f"{asked}: {advice}.")


def seen(types: Mapping[str, int]) -> str:
    """Say how many there were of each type, the most frequent first: "12 text/html, 1 application/pdf"."""
    ranked = Counter(types).most_common()
    named = [f"{count:,} {printable(mime, NAME) or 'of no type'}" for mime, count in ranked[:_NAMED]]
    others = sum(count for _, count in ranked[_NAMED:])
    return ", ".join([*named, counted(others, "other")] if others else named) or "nothing"


def count_type(types: Counter[str], mime: str) -> None:
    """Count one more of a type, in bounded memory whatever servers call their types."""
    types[mime if mime in types or len(types) < _KEPT else "other types"] += 1


def _is_budget(reason: str) -> bool:
    return reason.startswith("focus_budget_")


def _is_foreign(reason: str) -> bool:
    """Whether a spider, or another extension, closed the crawl while there was more to do."""
    return reason != "finished" and not reason.startswith("focus_")


def _unit(facts: Facts) -> str:
    return facts.reason.removeprefix("focus_budget_")


def _budget(facts: Facts) -> str:
    return f"budget of {_unit(facts)}"


def _found_so_far(facts: Facts) -> str:
    if facts.states is not None:
        said = [f"{facts.states.get(state, 0):,} {state}" for state in ("new", "changed", "same", "gone")]
        unseen = facts.states.get("unseen", 0)
        said += [f"{unseen:,} not seen"] if unseen else []
        return f"{', '.join(said)}, in {_requests(facts)}"
    return f"{_counted(facts)} found in {_requests(facts)}"


def _requests(facts: Facts) -> str:
    apart = f" ({facts.elsewhere:,} of them to other hosts, by the browser)" if facts.elsewhere else ""
    return f"{counted(facts.requests, 'request')}{apart}"


def _counted(facts: Facts) -> str:
    return f"{_amount(facts.found)} {_called(facts)}"


def _called(facts: Facts) -> str:
    noun = facts.noun.removesuffix("s") if facts.found == 1 else facts.noun
    return f"{noun} {printable(facts.described, REASON)}" if facts.described else noun


def _kept(facts: Facts, before: str) -> str:
    if not facts.where or facts.found <= 0:
        return ""
    if facts.own is None:
        return f"{before}see {printable(facts.where)}"
    return f"{before}{_amount(facts.own)} of them by this worker, in {printable(facts.where)}"


def _amount(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"
