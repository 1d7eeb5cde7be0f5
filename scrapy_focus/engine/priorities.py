"""Respects ``Request.priority`` before the policy: only links of the highest priority are offered.

Frontier and policy see a priority as part of the host: links of one host with another priority look like links of
another host, and all links with a lower priority look as if their hosts were busy. So every policy decides among links
of equal priority, and links are stored as before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

_MARK = " priority "
_MOST = 4096  # distinct hosts with a priority
_HIGHEST = 1 << 31  # higher priorities count as this one


class Priorities:
    """Maps hosts and priorities to names, and tells which names are not to be used now.

    Parameters
    ----------
    names
        Names in the frontier.

    Examples
    --------
    >>> priorities = Priorities()
    >>> [priorities.name("a.test", priority) for priority in (0, 10, -1)]
    ['a.test', 'a.test priority 10', 'a.test priority -1']
    >>> [sorted(busy) for busy in priorities.turns({"a.test"})][0]
    ['a.test', 'a.test priority -1', 'a.test priority 10']
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names: dict[int, dict[str, str]] = {}  # by priority and host
        self._n_names = 0
        for name in names:
            host, mark, number = name.rpartition(_MARK)
            is_marked = bool(mark) and number.removeprefix("-").isdecimal()
            self._know(*((host, int(number)) if is_marked else (name, 0)))

    def __bool__(self) -> bool:
        """Whether any link has a priority other than 0."""
        return bool(self._names.keys() - {0})

    def name(self, host: str, priority: int) -> str:
        """Return the name for the links of a host with this priority.

        When 4,096 names are known, a further one is replaced by the host alone, as without a priority.
        """
        priority = max(-_HIGHEST, min(int(priority), _HIGHEST))
        known = self._names.get(priority, {}).get(host)
        if known is not None:
            return known
        if self._n_names >= _MOST:
            priority = 0
        return self._know(host, priority)

    def turns(self, busy: Collection[str]) -> Iterator[set[str]]:
        """Yield for each priority, the highest first, the names to skip: of other priorities and of busy hosts."""
        for priority in sorted(self._names, reverse=True):
            others = {name for other, names in self._names.items() if other != priority for name in names.values()}
            own = self._names[priority]
            yield others | {own[host] for host in busy if host in own}

    def _know(self, host: str, priority: int) -> str:
        name = f"{host}{_MARK}{priority}" if priority else host
        self._names.setdefault(priority, {})[host] = name
        self._n_names += 1
        return name
