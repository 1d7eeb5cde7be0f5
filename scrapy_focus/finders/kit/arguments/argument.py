"""Declare an argument of a finder once, for its spider (``-a rate=9/h``) and for its command (``--rate 9/h``).

A finder declares its arguments as fields of a class. A field defines how its text is parsed, and the name of its
option. Spider and command parse their input through this class, so both give the same error messages, each with its
own names for the arguments.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, ClassVar

from scrapy.exceptions import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Self

    from scrapy.crawler import Crawler

#: The ``option`` of an argument that is positional on the command line.
POSITIONAL = ""

_RENAMED = {"duration": "time", "stay": "scope", "targets": "types"}  # arguments of earlier versions


class Names:
    """Names of arguments as the user knows them; here, those of a spider."""

    def of(self, argument: str) -> str:
        """Return the name of an argument."""
        return argument

    def given(self, argument: str, value: str) -> str:
        """Return an argument with a value, as a user would write it."""
        return f"-a {argument}={value}"


class OptionNames(Names):
    """Names of arguments on a command line.

    Parameters
    ----------
    options
        Options whose name differs from their argument, by argument; :data:`POSITIONAL` for none.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = options

    def of(self, argument: str) -> str:
        """Return the option; ``URL`` if it has none, as only URLs are positional."""
        option = self._options.get(argument, argument.replace("_", "-"))
        return "URL" if option == POSITIONAL else f"--{option}"

    def given(self, argument: str, value: str) -> str:
        """Return an option with a value."""
        if self._options.get(argument) == POSITIONAL:
            return value
        return f"{self.of(argument)} {value}"


class Called:
    """The name of an argument, as the user knows it."""

    def __init__(self, argument: str, names: Names | None = None) -> None:
        self._argument = argument
        self.names = names or Names()

    def __str__(self) -> str:
        return self.names.of(self._argument)

    def like(self, *values: object) -> str:
        """Return examples of the argument."""
        return ", ".join(self.names.given(self._argument, str(value)) for value in values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """How an argument is parsed, and its option."""

    read: Callable[[Any, Called], Any]  # raises UsageError
    default: str
    option: str | None  # if its name differs from the argument's; POSITIONAL: it has none
    metavar: str
    help: str  # of the option; "": the command adds no option, or its own
    switch: str  # the value that an option without a value stands for; "": it takes a value
    refuses_empty: bool = False  # whether an option with an empty value is an error, and not one that is not given
    repeats: bool = False  # whether an option may be given several times; `read` takes a text, or a list of texts

    def add_option(self, name: str, parser: argparse._ActionsContainer) -> None:
        """Add the option to a command."""
        option = f"--{self.option or name.replace('_', '-')}"
        if self.switch:
            parser.add_argument(
                option, dest=name, action="store_const", const=self.switch, default=self.default, help=self.help
            )
        else:
            action: Any = _Store
            if self.refuses_empty:
                action = _BlankForEmpty
            elif self.repeats:
                action = _Collect
            parser.add_argument(
                option, dest=name, metavar=self.metavar, default=self.default, help=self.help, action=action
            )


class _Store(argparse.Action):
    """Stores a value; an empty one, such as an unset variable of a shell, is an error: it would stand for no option."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        if not values.strip():
            parser.error(f"{option} is {values!r}; give it a value, or leave it out")
        setattr(namespace, self.dest, values)


class _BlankForEmpty(argparse.Action):
    """Stores a value, and a blank for an empty one, because ``""`` stands for an option that is not given."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, *_: Any) -> None:
        setattr(namespace, self.dest, values or " ")


class _Collect(_Store):
    """Stores the values of an option in a list."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        earlier = getattr(namespace, self.dest)
        super().__call__(parser, namespace, values, option)
        setattr(namespace, self.dest, [*earlier, values])


def argument(
    read: Callable[[Any, Called], Any],
    *,
    default: str = "",
    option: str | None = None,
    metavar: str = "",
    help: str = "",
    switch: str = "",
    refuses_empty: bool = False,
    repeats: bool = False,
) -> Any:
    """Return a field of a class of :class:`Arguments`, with the parts of an :class:`Argument`."""
    declared = Argument(
        read=read, default=default, option=option, metavar=metavar, help=help, switch=switch,
        refuses_empty=refuses_empty, repeats=repeats,
    )  # fmt: skip
    return field(metadata={"argument": declared})


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Values of the arguments of a finder. A subclass declares each as a field, by :func:`argument`.

    Classes that several finders share are groups: each has a heading in the help of the command.
    """

    #: The heading of the options in the help, for a group.
    heading: ClassVar[str] = ""

    @classmethod
    def groups(cls) -> dict[str, list[str]]:
        """Return the arguments by the heading of their group, those of the finder itself first, below ``""``."""
        shared = [each for each in cls.__mro__ if issubclass(each, Arguments) and vars(each).get("heading")]
        grouped = {each.heading: list(each.declared()) for each in shared}
        taken = {name for names in grouped.values() for name in names}
        return {"": [name for name in cls.declared() if name not in taken], **grouped}

    @classmethod
    def declared(cls) -> dict[str, Argument]:
        """Return the arguments by name, in the order of their declaration."""
        declared = {each.name: each.metadata["argument"] for each in fields(cls)}
        order = [*cls.__annotations__, *declared]  # a field that a base class also declares is placed as in this class
        return {name: declared[name] for name in dict.fromkeys(order) if name in declared}

    @classmethod
    def option_names(cls) -> OptionNames:
        """Return the names of the arguments on a command line."""
        return OptionNames({name: each.option for name, each in cls.declared().items() if each.option is not None})

    @classmethod
    def read(cls, given: Mapping[str, Any], names: Names | None = None) -> Self:
        """Return the parsed values of a user's arguments.

        Names with a leading underscore, such as Scrapyd's ``_job``, are for the program that starts the spider.

        Raises
        ------
        UsageError
            If an argument is unknown, cannot be read, or contradicts another one.
        """
        names, declared = names or Names(), cls.declared()
        if unknown := [name for name in given if name not in declared and not name.startswith("_")]:
            *most, last = declared
            meant = _RENAMED.get(unknown[0]) or next(iter(get_close_matches(unknown[0], declared, 1)), "")
            hint = f"did you mean {meant}? T" if meant in declared else "t"
            raise UsageError(
                f"unknown argument {', '.join(unknown)}; {hint}he arguments are {', '.join(most)} and {last}"
            )
        texts = {name: given.get(name, each.default) for name, each in declared.items()}
        cls.refuse(texts, names)
        values = {name: each.read(texts[name], Called(name, names)) for name, each in declared.items()}
        read = cls(**values)
        read.check(names)
        return read

    @classmethod
    def refuse(cls, given: Mapping[str, Any], names: Names) -> None:
        """Raise ``UsageError`` if arguments contradict each other, before any of them is read."""

    def check(self, names: Names) -> None:
        """Raise ``UsageError`` if the values contradict each other."""

    def set_up(self, crawler: Crawler) -> None:
        """Apply the values to a crawl that is about to begin: a subclass sets its settings, and calls ``super()``."""


def passed_on(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a spider that are for the program that starts it."""
    return {name: value for name, value in given.items() if name.startswith("_")}
