"""The constants of foragers: those of the paper, each of which can be changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.parameters import FLAG, NUMBER, WHOLE
from scrapy_focus.core.printable import brief

if TYPE_CHECKING:
    from collections.abc import Mapping


class Rules(NamedTuple):
    """The constants of the paper, under descriptive names: of the text and of algorithms 1 to 11 (sections 3.1 to 3.3).

    The paper has no ``normalised``, ``slice``, ``sample`` and ``centred``; a turn lasts three minutes there (4.1).
    """

    start: int = 10  # best entries of the weblog, one of which is drawn to start from
    weblog: int = 100  # maximum entries of a weblog
    beta: float = 0.3  # weight of a path's reward in the value of its pages; the rest is the old value
    steps: int = 100  # from the start of a path to its end
    gamma: float = 0.9  # discount of a reward one step later
    alpha: float = 0.1  # how far an error of the value moves the weights
    normalised: bool = True  # whether such a step is divided by the squared length of the state; as published: no
    reward: float = 100.0  # of a document that nobody sent before
    penalty: float = 1.0  # of any other document sent
    first: float = 100.0  # score of a new forager
    high: float = 200.0  # score at which it multiplies
    low: float = 0.0  # score at which it dies
    cost: float = 0.05  # cost of sending a document
    gain: float = 1.0  # score for a document that nobody sent before
    hours: float = 24.0  # maximum time since the last change of a document that is sent
    slice: int = 70  # requests in a turn, in place of three minutes
    k: int = 50  # components of a state
    sample: int = 300  # pages from which states are fitted
    centred: bool = True  # whether outputs of the text classifier are centred and scaled; as published: not stated

    @classmethod
    def of(cls, changes: Mapping[str, Any] | None) -> Rules:
        """Return the rules with some changed.

        Raises
        ------
        ConfigError
            If there is no such rule, or its value is invalid.
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
    """Describe the violated bounds of the rules, ``""`` if none."""
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
