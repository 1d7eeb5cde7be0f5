"""``Request.priority`` before the policy: links of each priority wait apart, and only those of the highest are offered.

To every frontier and policy a priority is a part of the host: the links of one host with another priority are those of
another host, and all that must wait behind a higher priority are on hosts that can take nothing now. So the policy
decides among equals, whatever it keeps, and what waits is stored as ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

_MARK = " priority "
_MOST = 4096  # hosts with a priority that are told apart
_HIGHEST = 1 << 31  # priorities beyond count as this one


class Priorities:
    """The names of hosts that tell priorities apart, and which of them are to be left alone.

    Parameters
    ----------
    names
        Hosts on which links wait already.

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
        """Return the name under which links of a host with this priority wait.

        It is that of the host alone, as without a priority, when 4,096 names are known and this is another one.
        """
        priority = max(-_HIGHEST, min(int(priority), _HIGHEST))
        known = self._names.get(priority, {}).get(host)
        if known is not None:
            return known
        if self._n_names >= _MOST:
            priority = 0
        return self._know(host, priority)

    def turns(self, busy: Collection[str]) -> Iterator[set[str]]:
        """Yield for each priority, the highest first, which names to leave alone: all others, and of hosts that are
        busy.
        """
        for priority in sorted(self._names, reverse=True):
            others = {name for other, names in self._names.items() if other != priority for name in names.values()}
            own = self._names[priority]
            yield others | {own[host] for host in busy if host in own}

    def _know(self, host: str, priority: int) -> str:
        name = f"{host}{_MARK}{priority}" if priority else host
        self._names.setdefault(priority, {})[host] = name
        self._n_names += 1
        return name
