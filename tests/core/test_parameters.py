"""Parameters that are declared once: what they accept, what their errors say, and what follows from a declaration."""

from __future__ import annotations

import copy
import inspect
import pickle
import pkgutil
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import attrs
import pytest

from scrapy_focus import ConfigError, configurable, parameter
from scrapy_focus.core.stop import Plateau
from scrapy_focus.lab.compare.specs import known_policies

if TYPE_CHECKING:
    from decimal import Decimal  # noqa: TC004 (that it is not imported is what is tested)

Colour = Literal["red", "blue"]


def _even(number: int) -> None:
    if number % 2:
        raise ConfigError("give an even number")


@configurable
class Everything:
    """One parameter of each kind.

    This is more about it.

    Notes
    -----
    What comes after the parameters.
    """

    count: ClassVar[int] = 0

    size: float = parameter("Metres.", default=1.5, above=0, at_most=10)
    n: int | None = parameter("How many.", default=None, at_least=1)
    even: int | None = parameter("Any even number.", default=None, check=_even)
    on: bool = parameter("Whether it is on.", default=False)
    name: str = parameter("What it is called.", default="")
    words: Collection[str] | None = parameter("What it says.", default=None, convert=frozenset)
    options: Mapping[str, Any] | None = parameter("All else.", default=None)
    colour: Colour = parameter("What it looks like.", default="red")
    shape: str = parameter("What form it has.", default="round", one_of=("round", "square"))
    most: Literal["all", "none"] | int = parameter("How many at most.", default="all", below=5)
    rule: Callable[[int], int] | int | None = parameter("What says how many.", default=None)
    pair: tuple[str, ...] = parameter("What stands beside it.", default=())
    rows: list = parameter("Anything.", default=None)  # type: ignore[type-arg]
    model: object = parameter("Anything.", default=None)

    def __attrs_post_init__(self) -> None:
        self.made = [self.size]


@configurable
class Required(Everything):
    """Hides one, changes one, and has one without a default."""

    on: bool = attrs.field(default=True, init=False)
    colour: Colour = parameter("The same.", default="blue")
    place: str = parameter("Where it is.")


class Plain(Everything):
    """Has a custom constructor, as subclasses in projects do."""

    def __init__(self, *, weight: float = 1.0, **others: Any) -> None:
        super().__init__(**others)
        self.weight = weight


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"size": "wide"}, "size='wide'): size is a number in (0, 10]"),
        ({"size": 0}, "size=0): size is a number in (0, 10]"),
        ({"size": 10.5}, "size is a number in (0, 10]"),
        ({"size": float("nan")}, "size is a number in (0, 10]"),
        ({"size": True}, "size is a number in (0, 10]"),
        ({"n": 0}, "n is a whole number from 1, or None"),
        ({"n": 2.0}, "n is a whole number from 1, or None"),
        ({"even": 3}, "even=3): give an even number"),
        ({"even": "2"}, "even is a whole number, or None"),
        ({"on": 1}, "on is True or False"),
        ({"name": None}, "name is a text"),
        ({"words": "one two"}, "words is a list of texts, or None"),
        ({"words": [1]}, "words is a list of texts, or None"),
        ({"options": [("a", 1)]}, "options is a dict, or None"),
        ({"pair": "ab"}, "pair is a list of texts"),
        ({"colour": "green"}, "colour is one of 'red', 'blue'"),
        ({"shape": "flat"}, "shape is one of 'round', 'square'"),
        ({"most": "some"}, "most is one of 'all', 'none', or a whole number below 5"),
        ({"most": 5}, "most is one of 'all', 'none', or a whole number below 5"),
        ({"rule": "all"}, "rule is a function, or a whole number, or None"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_an_error_in_one_form(wrong: dict[str, Any], said: str) -> None:
    """It names the class, the parameter, what was given, and what is expected."""
    for cls in (Everything, Plain):
        with pytest.raises(ConfigError) as error:
            cls(**wrong)
        assert str(error.value).startswith(f"{cls.__name__}({next(iter(wrong))}=")
        assert said in str(error.value)


@pytest.mark.parametrize(
    "given",
    [
        {"size": 10}, {"size": 0.001}, {"n": 1}, {"n": None}, {"even": 2}, {"on": True}, {"name": "x"},
        {"options": {}}, {"colour": "blue"}, {"shape": "square"}, {"most": 4}, {"most": "none"}, {"rule": abs},
        {"rule": 3}, {"model": print}, {"rows": [1]},
    ],
    ids=str,
)  # fmt: skip
def test_what_fits_is_stored_under_its_name(given: dict[str, Any]) -> None:
    """As it was given; everything else has its default."""
    made = Everything(**given)
    for name, each in inspect.signature(Everything).parameters.items():
        assert getattr(made, name) == given.get(name, each.default)


def test_a_value_is_converted_unless_it_is_none() -> None:
    """After it was checked, so that the error is about what was given."""
    assert Everything(words=["a", "a"]).words == {"a"}
    assert Everything(words=None).words is None


def test_the_signature_has_names_types_and_defaults() -> None:
    """All by keyword, and without a default where there is none."""
    parameters = inspect.signature(Everything).parameters
    assert {each.kind for each in parameters.values()} == {inspect.Parameter.KEYWORD_ONLY}
    assert parameters["words"].annotation == "Collection[str] | None"
    assert parameters["size"].default == 1.5
    with pytest.raises(TypeError):
        Everything(2.0)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="sise"):
        Everything(sise=2.0)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="place"):
        Required()  # type: ignore[call-arg]
    assert Required(place="here").place == "here"


def test_the_docstring_has_the_parameters_before_its_other_sections() -> None:
    """With the valid values of each, its default, and its purpose."""
    summary, more, parameters, notes = (Everything.__doc__ or "").split("\n\n")
    assert (summary, more) == ("One parameter of each kind.", "This is more about it.")
    assert parameters.startswith(
        "Parameters\n----------\nsize : a number in (0, 10], default 1.5\n    Metres.\nn : a whole number from 1, or None"
    )
    assert parameters.endswith("\nmodel : object, default None\n    Anything.")
    assert notes.startswith("Notes\n-----\n")
    assert (Required.__doc__ or "").endswith("place : a text\n    Where it is.")
    assert "on :" not in (Required.__doc__ or "")


def test_a_section_that_is_written_by_hand_stays() -> None:
    """And a class without a docstring gets none."""

    @configurable
    class ByHand:
        """Has a section.

        Parameters
        ----------
        n
            As it is here.
        """

        n: int = parameter("As it is not here.", default=1)

    @configurable
    class Silent:
        n: int = parameter("How many.", default=1)

    assert "not here" not in (ByHand.__doc__ or "")
    assert Silent.__doc__ is None


def test_subclasses_declare_more_or_have_constructors() -> None:
    """What is set up after the parameters, is set up for each of them."""
    required = Required(place="here", size=3.0)
    assert (required.on, required.colour, required.made) == (True, "blue", [3.0])
    with pytest.raises(TypeError):
        Required(place="here", on=False)  # type: ignore[call-arg]
    plain = Plain(weight=2.0, size=4.0)
    assert (plain.weight, plain.made) == (2.0, [4.0])


def test_objects_are_as_those_of_any_class() -> None:
    """Copied, pickled, compared and shown like others; setting an attribute costs nothing more."""
    made = Everything(size=2.0, words=["a"])
    for again in (copy.copy(made), pickle.loads(pickle.dumps(made))):
        assert vars(again) == vars(made)
        assert again != made
    assert repr(made).startswith("<")
    assert Everything.__setattr__ is object.__setattr__
    assert hash(made) == object.__hash__(made)


def test_an_annotation_must_exist_at_run_time() -> None:
    """The error says which name does not."""
    with pytest.raises(TypeError, match=r"Exact\.price has the annotation Decimal.*'Decimal' is not defined"):

        @configurable
        class Exact:
            price: Decimal = parameter("What it costs.", default=None)


@pytest.mark.parametrize("name", [*known_policies(), "Plateau"])
def test_each_parameter_of_the_package_is_declared_and_documented(name: str) -> None:
    """Help of each class has all of its parameters; for type checkers, it has no others."""
    cls = Plateau if name == "Plateau" else pkgutil.resolve_name(known_policies()[name].path)
    doc = inspect.getdoc(cls) or ""
    for parameter_name in inspect.signature(cls).parameters:
        assert f"\n{parameter_name} : " in doc
    for base in cls.__mro__:
        if "__attrs_attrs__" in vars(base):
            fields = {field.name for field in attrs.fields(base)}
            annotated = {key for key, hint in vars(base).get("__annotations__", {}).items() if "ClassVar" not in hint}
            assert annotated <= fields
