"""Why a link was chosen: sentences that a person can check, with the numbers behind them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from scrapy_focus.core.printable import EXPLANATION, WORD, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy_focus.core.types import Pick


class Part(NamedTuple):
    """One sentence of a reason, without a full stop; ``""`` if only its numbers are stored.

    The names of the numbers are unique within the reason. Their values are JSON values.
    """

    sentence: str
    numbers: Mapping[str, Any] = {}


class Reason(Mapping[str, Any]):
    """Why a link was chosen. Its text is all sentences in one line; as a mapping it has the numbers of all parts.

    Examples
    --------
    >>> reason = Reason(Part("found on a seed"), Part("3 of 8 pages of a.test were finds", {"pages": 8, "finds": 3}))
    >>> str(reason), reason["finds"]
    ('found on a seed; 3 of 8 pages of a.test were finds', 3)
    """

    __slots__ = ("numbers", "parts")

    def __init__(self, *parts: Part) -> None:
        self.parts = parts
        self.numbers = {name: value for part in self.parts for name, value in part.numbers.items()}

    @classmethod
    def of(cls, said: Mapping[str, Any], pick: Pick) -> Reason:
        """Return the answer of ``explain``, converted to a reason if it is another mapping.

        A text in ``why`` is its sentence. Without one, each value that is not zero or empty gives a sentence.
        """
        if isinstance(said, Reason):
            return said
        if isinstance(said.get("why"), str):
            return cls(depth_of(pick), Part(said["why"], said))
        parts = (Part(f"{name} {value}" if value else "", {name: value}) for name, value in said.items())
        return cls(depth_of(pick), *parts)

    def record(self) -> dict[str, Any]:
        """Return the numbers of all parts, and the text as ``why``: the form for the log and for spiders."""
        return {**self.numbers, "why": str(self)}

    def __str__(self) -> str:
        return printable("; ".join(part.sentence for part in self.parts if part.sentence), EXPLANATION)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self.parts)!r})"

    def __getitem__(self, name: str) -> Any:
        return self.numbers[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.numbers)

    def __len__(self) -> int:
        return len(self.numbers)


def depth_of(pick: Pick) -> Part:
    """Describe the distance of a link from the seeds."""
    if pick.depth > 1:
        return Part(f"{pick.depth} clicks from a seed")
    return Part("found on a seed" if pick.depth else "a seed")


def reads_like(about: str, relevance: float) -> str:
    """Say how relevant a text seems to the sentence of a topic, from 0 to 1.

    Examples
    --------
    >>> print(reads_like("municipal budgets", 0.412))
    reads like "municipal budgets" (0.41)
    """
    return f'reads like "{printable(about, WORD)}" ({relevance:.2f})'
