"""Policies named by text: ``SB-CLASSIFIER``, ``TagPath:alpha=30``, ``patient=myproject.policies.Mine:wait=3``.

What is compared has to be written down: on a command line, in a report, in a file that another process reads. A policy
object cannot be, so a policy is named by its class and its parameters, and made anew for each crawl.

A class of a notebook has no import path that another process could use. Such a policy is kept as the object that makes
it, and compared in this process or in forks of it.
"""

from __future__ import annotations

import ast
import copy
import difflib
import importlib
import inspect
import pkgutil
import sys
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from scrapy_focus import policies
from scrapy_focus.core.abilities import NeedsTruth
from scrapy_focus.core.errors import ConfigError, FocusError
from scrapy_focus.core.policy import Policy, import_path
from scrapy_focus.core.printable import brief, reason_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Self, TypeAlias

    #: What can stand for a policy: a name, an import path, a class, a new policy, or a function that makes one.
    PolicyLike: TypeAlias = "PolicySpec | str | type[Policy] | Policy | Callable[[], Policy]"


#: The order of names: those of the SB-CLASSIFIER paper in its order, with the words in URLs after the other baselines
#: and the link floor before the other bound, and then all others.
_ORDER = (
    "SB-CLASSIFIER", "SB-ORACLE", "FOCUSED", "TP-OFF", "TRES-FILES", "BFS", "DFS", "RANDOM", "KEYWORDS", "LINK-FLOOR",
    "OMNISCIENT",
)  # fmt: skip


class Preset(NamedTuple):
    """The meaning of a name of a policy."""

    path: str  # import path of the class
    params: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySpec:
    """A named policy: its label, its class, and its parameters.

    Examples
    --------
    >>> PolicySpec.parse("BFS")
    PolicySpec(label='BFS', path='scrapy_focus.policies.orderings.BreadthFirst', params={})
    >>> spec = PolicySpec.parse("eager=TagPath:alpha=0.5,index=numpy")
    >>> spec.label, spec.params
    ('eager', {'alpha': 0.5, 'index': 'numpy'})
    >>> PolicySpec.parse("TagPath:alpha=0.5").label
    'TagPath alpha=0.5'
    """

    label: str
    path: str  # import path of the class
    params: Mapping[str, Any] = field(default_factory=dict)
    #: Makes the policy where no other process can import its class.
    factory: Callable[..., Policy] | None = field(default=None, repr=False)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``[label=]name[:parameter=value,...]``.

        The name is one of the paper, the name of a class of this package, or the import path of a class. Values are
        Python literals; words need no quotes.

        Raises
        ------
        ConfigError
            If there is no such policy, or the parameters cannot be read.
        """
        head, _, given = text.partition(":")
        label, labelled, name = (part.strip() for part in head.rpartition("="))
        params = _read_params(given, text)
        if "." in name:
            known, preset = name.rpartition(".")[2], Preset(name, {})
        else:
            known, preset = _find(name, text)
        if labelled and not label:
            raise ConfigError(f"policy {text!r} has an empty label; write label=name, or only the name")
        label = label or " ".join([known, *_write_params(params)])
        spec = cls(label=label, path=preset.path, params={**preset.params, **params})
        spec.load()
        return spec

    @classmethod
    def of(cls, policy: PolicyLike, label: str = "") -> Self:
        """Return the specification of what can stand for a policy.

        Parameters
        ----------
        policy
            A specification, the text of one, a class with its defaults, a new policy, which is copied for each crawl,
            or a function that makes one.
        label
            What to call it; by default, its class or function gives the name.

        Raises
        ------
        ConfigError
            If it is none of these, or a policy that has crawled already.
        """
        if isinstance(policy, cls):
            spec = policy
        elif isinstance(policy, str):
            spec = cls.parse(policy)
        elif isinstance(policy, Policy):
            spec = cls._of_object(type(policy), _Copies(policy))
        elif isinstance(policy, type) and _is_importable(policy):
            spec = cls(label=policy.__name__, path=import_path(policy))
        elif callable(policy):
            named = policy if hasattr(policy, "__qualname__") else getattr(policy, "func", type(policy))
            spec = cls._of_object(named, policy)
        else:
            raise ConfigError(
                f"policy {brief(policy)} is of type {type(policy).__name__}; give a name, an import path, a class, a "
                "new policy, or a function that makes one"
            )
        return replace(spec, label=label) if label else spec

    @classmethod
    def _of_object(cls, named: Any, factory: Callable[..., Policy]) -> Self:
        return cls(label=named.__name__, path=import_path(named), factory=factory)

    def __str__(self) -> str:
        """Return the shortest text that :meth:`parse` reads back as the same."""
        presets = {name: preset for name, preset in _presets().items() if preset.path == self.path}
        presets[self.path] = Preset(self.path, {})
        for labelled in ("", f"{self.label}="):
            for name, preset in presets.items():
                given = {key: value for key, value in self.params.items() if preset.params.get(key) != value}
                params = ",".join(_write_params(given))
                text = f"{labelled}{name}:{params}" if params else f"{labelled}{name}"
                if self._reads_as(text):
                    return text
        return f"{self.label}={self.path}"

    def load(self) -> type[Policy]:
        """Return the class.

        Raises
        ------
        ConfigError
            If it cannot be imported, or is not a policy.
        """
        if self.factory is not None and not isinstance(self.factory, type):
            return type(self.make())
        policy = self._find_class() if self.factory is None else self.factory
        if not (isinstance(policy, type) and issubclass(policy, Policy)) or inspect.isabstract(policy):
            raise ConfigError(f"{self.path} is not a policy; name a subclass of scrapy_focus.Policy that can be made")
        return policy

    def _find_class(self) -> Any:
        module, _, name = self.path.rpartition(".")
        try:
            return getattr(importlib.import_module(module), name)
        except Exception as error:  # whatever the module of a user does when it is imported
            raise ConfigError(f"policy {self.path!r} cannot be imported: {type(error).__name__}: {error}") from error

    def make(self) -> Policy:
        """Return a new policy.

        Raises
        ------
        ConfigError
            If it does not take the parameters.
        """
        is_class = self.factory is None or isinstance(self.factory, type)
        maker: Any = self.load() if is_class else self.factory
        signature = inspect.signature(maker)
        try:
            signature.bind(**self.params)
        except TypeError as error:
            raise ConfigError(
                f"policy {self.label!r} cannot be made: {error}; {getattr(maker, '__qualname__', 'it')} takes "
                f"{', '.join(signature.parameters) or 'no parameters'}"
            ) from error
        try:
            policy = maker(**self.params)
        except FocusError:
            raise
        except Exception as error:
            raise ConfigError(
                f"policy {brief(self.label)} cannot be made: {type(error).__name__}: {reason_of(error)}"
            ) from error
        if not isinstance(policy, Policy):
            raise ConfigError(f"policy {self.label!r} makes a {type(policy).__name__}, which is not a policy")
        return policy

    def summary(self) -> str:
        """Return how the policy chooses: its class attribute ``summary``, or the first line of its docstring.

        ``""`` if it has neither: an inherited text does not describe it.
        """
        own = vars(self.load())
        if isinstance(said := own.get("summary"), str):
            return said
        return (own["__doc__"] or "").strip().partition("\n")[0].strip()

    def is_informed(self) -> bool:
        """Whether it needs the truth about the site beforehand, so that no real crawl can do the same."""
        policy = self.make()
        return isinstance(policy, NeedsTruth) and policy.needs_truth

    def is_bound(self) -> bool:
        """Whether no crawl can do better, so that it is a bound rather than a rival."""
        return bool(self.load().is_bound)

    def _reads_as(self, text: str) -> bool:
        try:
            return type(self).parse(text) == self
        except ConfigError:
            return False


class _Copies:
    """Makes copies of a policy that has not crawled.

    Raises
    ------
    ConfigError
        If it has crawled already: it would start with what it learned.
    """

    def __init__(self, policy: Policy) -> None:
        if hasattr(policy, "frontier"):
            raise ConfigError(
                f"policy {type(policy).__name__} has crawled already; give its class, a new policy, or a function that "
                "makes one"
            )
        self.policy = policy

    def __call__(self) -> Policy:
        return copy.deepcopy(self.policy)


def _is_importable(policy: type) -> bool:
    """Whether another process finds this class by its name."""
    module = sys.modules.get(policy.__module__)
    if module is None or module.__name__ == "__main__" or module.__spec__ is None:
        return False
    return getattr(module, policy.__qualname__, None) is policy


@lru_cache(maxsize=1)
def known_policies() -> dict[str, Preset]:
    """Return the meaning of the name of each policy class of this package."""
    return {policy.__name__: Preset(import_path(policy), {}) for policy in _scan()}


@lru_cache(maxsize=1)
def paper_names() -> dict[str, Preset]:
    """Return the meaning of each name of a paper: the ``paper_names`` of all policy classes of this package."""
    found = {
        name: Preset(import_path(policy), params)
        for policy in _scan()
        for name, params in vars(policy).get("paper_names", {}).items()  # without inherited ones
    }
    return {name: found[name] for name in sorted(found, key=lambda name: (*_ORDER, name).index(name))}


def _presets() -> dict[str, Preset]:
    return paper_names() | known_policies()


def _scan() -> Iterator[type[Policy]]:
    for info in pkgutil.walk_packages(policies.__path__, f"{policies.__name__}."):
        for name, value in vars(importlib.import_module(info.name)).items():
            ours = inspect.isclass(value) and issubclass(value, Policy) and value.__module__ == info.name
            if ours and not inspect.isabstract(value) and not name.startswith("_"):
                yield value


def _find(name: str, text: str) -> tuple[str, Preset]:
    """Return the name as it is spelled, and its meaning."""
    presets = _presets()
    spelled = {known.lower(): known for known in reversed(presets)} | {known: known for known in presets}
    known = spelled.get(name) or spelled.get(name.lower())
    if known is None:
        near = difflib.get_close_matches(name.lower(), list(spelled), n=1, cutoff=0.5)
        meant = f"did you mean {spelled[near[0]]}? There" if near else "there"
        raise ConfigError(
            f"there is no policy {name or text!r}; {meant} are {', '.join(presets)}, and yours by import path"
        )
    return known, presets[known]


def _read_params(given: str, text: str) -> dict[str, Any]:
    """Read ``alpha=30,n=3`` as the arguments of a call."""
    try:
        call = ast.parse(f"_({given})", mode="eval").body
        if not isinstance(call, ast.Call) or call.args or any(word.arg is None for word in call.keywords):
            raise ValueError("each has a name and a value")
        return {str(word.arg): _value(word.value) for word in call.keywords}
    except (SyntaxError, ValueError) as error:
        raise ConfigError(
            f"the parameters of policy {text!r} cannot be read: {getattr(error, 'msg', error)}; write "
            "name:alpha=30,n=3, and quotes around text with other characters than letters"
        ) from error


def _value(node: ast.expr) -> Any:
    return ast.unparse(node) if isinstance(node, (ast.Name, ast.Attribute)) else ast.literal_eval(node)


def _write_params(params: Mapping[str, Any]) -> list[str]:
    return [f"{name}={value if isinstance(value, str) and value.isidentifier() else repr(value)}"
            for name, value in params.items()]  # fmt: skip
