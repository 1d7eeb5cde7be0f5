"""Reads what a researcher looks for, and checks that a recording has it."""

from __future__ import annotations

import copy
from collections import Counter
from typing import TYPE_CHECKING, Any

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.goal import types_of
from scrapy_focus.goals.files import FilesGoal
from scrapy_focus.lab.replay.truth import SiteTruth
from scrapy_focus.web.mime import blocked_extensions
from scrapy_focus.web.wanted import split_words

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from typing import TypeAlias

    from scrapy_focus.core.goal import Goal
    from scrapy_focus.lab.recordings.format import RecordedSite

    #: What to look for: file types, or a goal; ``None`` for data files.
    Targets: TypeAlias = "str | Iterable[str] | Goal | None"

_SHOWN = 5  # types of a recording


def goal_of(targets: Targets) -> Goal:
    """Return the goal that looks for these targets; a goal is returned as it is, and a class of goals is called.

    Raises
    ------
    ConfigError
        If they are no types of files.

    Examples
    --------
    >>> str(goal_of("csv, pdf").wanted), str(goal_of(None).wanted)
    ('csv, pdf', 'data')
    """
    if targets is None:
        return FilesGoal()
    if callable(targets):
        goal: Any = targets
        return goal() if isinstance(goal, type) else goal  # type: ignore[no-any-return]
    try:
        return FilesGoal(types=split_words(targets) if isinstance(targets, str) else list(targets))
    except (ConfigError, TypeError) as error:
        raise ConfigError(f"targets={targets!r}: {error}") from error


def check_targets(
    sites: Iterable[RecordedSite], goal: Goal, ignored: Collection[str] | None = None
) -> SiteTruth | None:
    """Return the truth about the first site with targets.

    Raises
    ------
    ConfigError
        If no site has any.
    """
    types: Counter[str] = Counter()
    names = []
    if ignored is None:
        ignored = blocked_extensions(types_of(goal))
    for site in sites:
        truth = SiteTruth(site, copy.deepcopy(goal), ignored=ignored)
        if truth.exhaustive.worth:
            return truth
        names.append(str(site.path))
        types.update(mime for mime in site.mimes if mime)
    if not names:
        return None
    found = ", ".join(f"{mime} ({count:,})" for mime, count in types.most_common(_SHOWN))
    raise ConfigError(
        f"{' and '.join(names)}: no recorded URL is a target, so there is nothing to compare; recorded are "
        f"{found or 'no answers with a type'}; say what to look for, as targets='csv,pdf'"
    )
