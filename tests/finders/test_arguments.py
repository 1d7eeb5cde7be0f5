"""Arguments of finders are declared once, and are the same for the spider and the command."""

from __future__ import annotations

import argparse
import inspect
import re
from typing import TYPE_CHECKING

import pytest
from scrapy.exceptions import UsageError
from scrapy.settings import Settings

from scrapy_focus.finders.files.command import FilesCommand
from scrapy_focus.finders.important.command import ImportantCommand
from scrapy_focus.finders.kit.arguments.argument import Called
from scrapy_focus.finders.kit.arguments.shared.access import AccessArguments
from scrapy_focus.finders.kit.arguments.shared.contents import ContentArguments
from scrapy_focus.finders.kit.arguments.shared.limits import LimitArguments
from scrapy_focus.finders.kit.arguments.shared.scope import ScopeArguments
from scrapy_focus.finders.kit.arguments.shared.watching import WatchingArguments
from scrapy_focus.finders.news.command import WatchCommand
from scrapy_focus.finders.structured.command import StructuredCommand
from scrapy_focus.finders.topic.command import TopicCommand

if TYPE_CHECKING:
    from scrapy_focus.finders.kit.arguments.argument import Arguments
    from scrapy_focus.finders.kit.commands.finding import FindCommand

GROUPS: list[type[Arguments]] = [
    LimitArguments, ScopeArguments, AccessArguments, ContentArguments, WatchingArguments,
]  # fmt: skip
COMMANDS = [FilesCommand, TopicCommand, StructuredCommand, ImportantCommand, WatchCommand]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_spider_documents_what_it_takes(command: type[FindCommand]) -> None:
    """Its docstring has a section for exactly the arguments that it alone takes."""
    assert _documented(command().spider()) == sorted(command().takes().groups()[""])


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_documents_what_it_takes(group: type[Arguments]) -> None:
    """Its docstring has a section for exactly the arguments that it declares."""
    assert _documented(group) == sorted(group.declared())


@pytest.mark.parametrize("command", COMMANDS)
def test_every_finder_takes_the_arguments_of_each_group(command: type[FindCommand]) -> None:
    """The help of the command lists them below the heading of their group."""
    grouped = command().takes().groups()
    assert {group.heading: sorted(group.declared()) for group in GROUPS} == {
        heading: sorted(names) for heading, names in grouped.items() if heading
    }


@pytest.mark.parametrize("command", COMMANDS)
def test_each_option_is_an_argument_of_the_spider(command: type[FindCommand]) -> None:
    """The defaults of options are those of the spider."""
    parser, declared, made = argparse.ArgumentParser(), command().takes().declared(), command()
    made.settings = Settings()
    made.add_options(parser)
    opts = parser.parse_args([])
    for name, each in declared.items():
        if each.help:
            assert getattr(opts, name) == each.default, name


@pytest.mark.parametrize("option", ["--proxy", "--size", "--header", "--exclude", "--stats-file"])
def test_an_option_without_a_value_is_not_one_that_is_not_given(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """As with an unset variable of a shell: the crawl would be another one than the user meant."""
    parser, made = argparse.ArgumentParser(), FilesCommand()
    made.settings = Settings()
    made.add_options(parser)
    with pytest.raises(SystemExit):
        parser.parse_args([option, ""])
    assert f"{option} is ''; give it a value, or leave it out" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "given", "of_spider", "of_command"),
    [
        (FilesCommand, {"types": ""}, "types: ''", "--types: ''"),
        (FilesCommand, {"budget": "x"}, "requests: -a budget=1000", "requests: --budget 1000"),
        (FilesCommand, {"new_only": "1", "rate": "9/day"}, "new_only and rate are", "--new-only and --rate are"),
        (FilesCommand, {"about_least": "0.5"}, "about_least is given without about", "--about-least is given without"),
        (FilesCommand, {"about": " ", "root": "https://a.test/"}, "-a about='municipal", "--about 'municipal budgets'"),
        (FilesCommand, {"about_least": "50 %"}, "from 0 to 1: -a about_least=0.5", "--about-least is '50 %'"),
        (WatchCommand, {"time": "7"}, "such as -a time=30min", "such as --time 30min"),
        (WatchCommand, {"rate": "many"}, "rate is 'many'", "--rate is 'many'"),
        (FilesCommand, {"warc": "yes", "out": "-"}, "warc needs the folder", "--warc needs the folder"),
        (TopicCommand, {"warc": "yes", "out": "pages.jsonl"}, "warc needs the folder", "--warc needs the folder"),
        (ImportantCommand, {"words": "a"}, "-a words=cheese,wine", "--words cheese,wine"),
        (StructuredCommand, {"per_host": "0"}, "per_host is '0'", "--per-host is '0'"),
        (TopicCommand, {"keywords": ""}, "Give -a about=SENTENCE", "Give --about SENTENCE"),
        (TopicCommand, {"seeds": "# http://a.test/"}, "-a seeds=FILE, or -a seeds=https", "FILE, or https"),
    ],
)
def test_both_give_the_same_messages_with_their_own_names(
    command: type[FindCommand], given: dict[str, str], of_spider: str, of_command: str
) -> None:
    """A spider names its arguments, a command its options; otherwise messages are equal."""
    arguments, said = command().takes(), []
    sound = {"root": "https://example.org/", "seeds": "https://example.org/", "keywords": "bees"}
    every = {name: text for name, text in sound.items() if name in arguments.declared()} | given
    for names in (None, arguments.option_names()):
        with pytest.raises(UsageError) as caught:
            arguments.read(every, names)
        said.append(str(caught.value))
    assert of_spider in said[0]
    assert of_command in said[1]
    assert "-a " not in said[1]


def test_an_argument_is_named_as_its_user_knows_it() -> None:
    """A spider uses the argument's name, a command its option; the URLs of a command have none."""
    names = WatchCommand().takes().option_names()
    assert [str(Called("time")), str(Called("time", names)), str(Called("root", names))] == [
        "time", "--time", "URL",
    ]  # fmt: skip
    assert Called("time").like("7d", "9h") == "-a time=7d, -a time=9h"
    assert Called("root", names).like("https://example.org/") == "https://example.org/"


def _documented(cls: type) -> list[str]:
    """Return the arguments that a docstring describes, sorted."""
    text = inspect.getdoc(cls) or ""
    section = text.partition("Arguments\n---------\n")[2].partition("\n\nNotes\n")[0]
    return sorted(re.findall(r"^(\w+)$", section, re.M))
