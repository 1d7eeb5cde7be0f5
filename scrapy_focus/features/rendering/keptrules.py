"""Rules of APIs as they are kept: in a job, and in a file of what was learned, beside what the policy writes there."""

from __future__ import annotations

import json
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Self

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.learn.modelfile import add_text, read_text
from scrapy_focus.policies.branching.saved import LEARNED
from scrapy_focus.web.apis.rules import ApiRules

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

TEMPLATES = 500  # whose rules are kept

_LONGEST = 4 << 20  # characters of the rules that are kept for other crawls
_SECTION = "apis"  # of a file of what was learned


class Kept(NamedTuple):
    """Rules for another run or another crawl, those that were used last behind others."""

    rules: Mapping[str, ApiRules]  # by template of page
    with_items: Collection[str] = ()  # templates whose renderings gave items
    unproven: Mapping[str, int] = MappingProxyType({})  # templates that no rendering confirmed: pages that showed more

    @classmethod
    def of_text(cls, text: str) -> Self:
        """Return what :meth:`to_text` wrote.

        Raises
        ------
        ValueError
            If it is damaged.
        """
        try:
            kept = json.loads(text)
            rules = [ApiRules.of_json(each) for each in kept["rules"][-TEMPLATES:]]
            found = {each.template: each for each in rules if each.template}
            unproven = {str(template): int(n) for template, n in kept.get("unproven", {}).items() if template in found}
            return cls(found, {str(each) for each in kept["with_items"]}, unproven)
        except (KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
            raise ValueError(f"no rules: {error!r}") from error

    def to_text(self, longest: int | None = None) -> str:
        """Return it as JSON; ``longest``: characters for which there is room, rules that were used last go first."""
        rules = []
        for each in [*self.rules.values()][::-1]:
            said = each.to_json()
            if longest is not None and (longest := longest - len(json.dumps(said))) < 0:
                break
            rules.append(said)
        of = {said["template"] for said in rules}
        return json.dumps(
            {
                "with_items": sorted(of.intersection(self.with_items)),
                "unproven": dict(self.unproven),
                "rules": rules[::-1],
            }
        )

    def for_others(self) -> str:
        """Return what another crawl may begin with, as JSON, ``""`` for nothing: the rules that are in use."""
        used = {template: rules for template, rules in self.rules.items() if rules.is_sure}
        return self._replace(rules=used, unproven={}).to_text(_LONGEST) if used else ""


def read_rules(path: str) -> Kept | None:
    """Return the rules that a file of what was learned holds, ``None`` if it has none.

    Raises
    ------
    ConfigError
        If the file cannot be read, or is damaged.
    """
    text = read_text(path, _SECTION)
    try:
        return Kept.of_text(text) if text else None
    except ValueError as error:
        raise ConfigError(f"{path} is damaged (rules of APIs: {error}); {LEARNED.make}") from error


def add_rules(path: str, *kept: Kept | None) -> None:
    """Let a file of what was learned hold the rules of one process or of several, the last one's before others.

    Only those in use are kept. A file of another kind stays as it is.

    Raises
    ------
    ConfigError
        If the file cannot be written.
    """
    rules: dict[str, ApiRules] = {}
    with_items: set[str] = set()
    for each in filter(None, kept):
        for template in each.rules:
            rules.pop(template, None)
        rules |= each.rules
        with_items |= {*each.with_items}
    if text := Kept(rules, with_items).for_others():
        add_text(path, _SECTION, text)


def read_told(texts: Iterable[str]) -> list[Kept]:
    """Return the rules of several processes, as each told them; without any that cannot be read."""
    kept = []
    for text in texts:
        with suppress(ValueError):
            kept.append(Kept.of_text(text))
    return kept
