"""Declares an argument of a finder once, for its spider (``-a rate=9/h``) and for its command (``--rate 9/h``).

A finder declares its arguments as fields of a class. A field says how its text is read, and what its option is called;
spider and command both read what a user gave through that class, so both refuse the same with the same sentence, each
with its own names for arguments.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from scrapy.exceptions import UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping
    from typing import Self

#: A value of an option for which it is no option: the words of a command line without one.
POSITIONAL = ""


class Names:
    """What arguments are called where a user gave them; here, to a spider."""

    def of(self, argument: str) -> str:
        """Return the name of an argument."""
        return argument

    def given(self, argument: str, value: str) -> str:
        """Return how a user would give a value."""
        return f"-a {argument}={value}"


class OptionNames(Names):
    """What arguments are called on a command line.

    Parameters
    ----------
    options
        Options that have another name than their argument, by argument; :data:`POSITIONAL` for none.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = options

    def of(self, argument: str) -> str:
        """Return the option; ``URL`` for what has none, as only URLs have not."""
        option = self._options.get(argument, argument.replace("_", "-"))
        return "URL" if option == POSITIONAL else f"--{option}"

    def given(self, argument: str, value: str) -> str:
        """Return an option with a value."""
        if self._options.get(argument) == POSITIONAL:
            return value
        return f"{self.of(argument)} {value}"


class Called:
    """An argument, as the user who gave it knows it."""

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
    """How an argument is read, and its option."""

    read: Callable[[Any, Called], Any]  # raises UsageError
    default: str
    option: str | None  # where it is called otherwise than the argument; POSITIONAL: it has none
    metavar: str
    help: str  # of the option; "": the command adds none, or its own
    switch: str  # what the option stands for that takes no value; "": it takes one

    def add_option(self, name: str, parser: argparse.ArgumentParser) -> None:
        """Add the option to a command."""
        option = f"--{self.option or name.replace('_', '-')}"
        if self.switch:
            parser.add_argument(
                option, dest=name, action="store_const", const=self.switch, default=self.default, help=self.help
            )
        else:
            parser.add_argument(option, dest=name, metavar=self.metavar, default=self.default, help=self.help)


def argument(
    read: Callable[[Any, Called], Any],
    *,
    default: str = "",
    option: str | None = None,
    metavar: str = "",
    help: str = "",
    switch: str = "",
) -> Any:
    """Return a field of a class of :class:`Arguments`, with the parts of an :class:`Argument`."""
    declared = Argument(read=read, default=default, option=option, metavar=metavar, help=help, switch=switch)
    return field(metadata={"argument": declared})


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Values of the arguments of a finder. A subclass declares each as a field, by :func:`argument`."""

    @classmethod
    def declared(cls) -> dict[str, Argument]:
        """Return the arguments by name, in the order of their declaration."""
        declared = {each.name: each.metadata["argument"] for each in fields(cls)}
        order = [*cls.__annotations__, *declared]  # a field that a base declares, too, has its place in this class
        return {name: declared[name] for name in dict.fromkeys(order) if name in declared}

    @classmethod
    def option_names(cls) -> OptionNames:
        """Return what the arguments are called on a command line."""
        return OptionNames({name: each.option for name, each in cls.declared().items() if each.option is not None})

    @classmethod
    def read(cls, given: Mapping[str, Any], names: Names | None = None) -> Self:
        """Return the values of what a user gave.

        Names with an underscore in front are for whoever starts a spider, such as Scrapyd's ``_job``.

        Raises
        ------
        UsageError
            If an argument is unknown, cannot be read, or contradicts another one.
        """
        names, declared = names or Names(), cls.declared()
        if unknown := [name for name in given if name not in declared and not name.startswith("_")]:
            *most, last = declared
            raise UsageError(f"there is no argument {', '.join(unknown)}; there are {', '.join(most)} and {last}")
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


def passed_on(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return those arguments of a spider that are not its own but of whoever starts it."""
    return {name: value for name, value in given.items() if name.startswith("_")}
