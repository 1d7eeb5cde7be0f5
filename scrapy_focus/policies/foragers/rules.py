"""By which numbers foragers live: those of the paper, each of which may be changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.parameters import FLAG, NUMBER, WHOLE
from scrapy_focus.core.printable import brief

if TYPE_CHECKING:
    from collections.abc import Mapping


class Rules(NamedTuple):
    """The constants of the paper (section 3, tables of parameters), under names that say what they are."""

    start: int = 10  # best entries of the weblog, of which one is drawn to start from
    weblog: int = 100  # entries that a weblog has at most
    beta: float = 0.3  # share of what a path earned in the value of its pages; the rest is the value before
    steps: int = 100  # from the start of a path to its end
    gamma: float = 0.9  # what a reward is worth one step later
    alpha: float = 0.1  # how far an error of the value moves the weights
    normalised: bool = True  # whether such a step is divided by the squared length of the state; published: not
    reward: float = 100.0  # of a document that nobody sent before
    penalty: float = 1.0  # of any other one that is sent
    first: float = 100.0  # score of a new forager
    high: float = 200.0  # score from which on it multiplies
    low: float = 0.0  # score down to which it dies
    cost: float = 0.05  # that sending a document takes off the score
    gain: float = 1.0  # that a document brings that nobody sent before
    hours: float = 24.0  # since the last change of a document, up to which it is sent
    slice: int = 70  # requests in a turn, in place of three minutes
    k: int = 50  # components of a state
    sample: int = 300  # pages by which states are fitted

    @classmethod
    def of(cls, changes: Mapping[str, Any] | None) -> Rules:
        """Return the rules with some changed.

        Raises
        ------
        ConfigError
            If there is no such rule, or it cannot be so.
        """
        changed = dict(changes or {})
        known = cls._field_defaults
        kinds = {bool: FLAG, int: WHOLE, float: NUMBER}
        for name, value in changed.items():
            if name not in known:
                raise ConfigError(f"rules has {brief(name)}; there are {', '.join(known)}")
            kind = kinds[type(known[name])]
            if not kind.fits(value):
                raise ConfigError(f"{name} is {brief(value)}; it is {kind.said}")
        rules = cls(**changed)
        wrong = _wrong_with(rules)
        if wrong:
            raise ConfigError(f"rules is {changed}: {wrong}")
        return rules


def _wrong_with(rules: Rules) -> str:
    """Say which bounds rules are beyond, ``""`` if none."""
    least_one = ("start", "weblog", "steps", "slice", "sample")
    if min(getattr(rules, name) for name in least_one) < 1 or rules.k < 2:
        return f"{', '.join(least_one)} are at least 1, and k at least 2"
    if not (0 < rules.beta <= 1 and 0 <= rules.gamma < 1 and rules.alpha > 0 and rules.hours > 0):
        return "beta is in (0, 1], gamma in [0, 1), alpha and hours are above 0"
    if rules.normalised and not rules.alpha < 1:
        return "alpha is below 1 where steps are normalised"
    if not rules.low < rules.first < rules.high:
        return "low is below first, and first below high"
    return ""
