r"""Parses which files are looked for, in the words of a command line: extensions, MIME types, regular expressions.

A word of letters, digits and dots is an extension, known or not; a word like ``text/csv`` or ``image/*`` is a MIME
type; any other is a regular expression that is searched for in URLs.
"""

from __future__ import annotations

import difflib
import mimetypes
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.printable import brief
from scrapy_focus.web.expressions import compiled
from scrapy_focus.web.mime import ALIASES, DATA_TYPES, FILE_TYPES, describe_types, extension, guess_mime, matches

if TYPE_CHECKING:
    from collections.abc import Iterable

_KINDS = "application|audio|binary|chemical|example|font|image|message|model|multipart|text|video|x-[a-z]+"
_MIME = re.compile(rf"({_KINDS})/([a-z0-9_.+-]+|\*)")
_HALF = re.compile(rf"({_KINDS})/?")  # text/, or just text
_EXTENSION = re.compile(r"[a-z0-9_.]{1,16}")
_NO_EXPRESSION = re.compile(r"[\w.,;:!~@# '\"-]*")  # characters that do not mark a regular expression
_PAGES = ("text/html", "application/xhtml+xml")
_NEAR = 0.75  # of difflib's ratio: matches jsn and json, but not rds and rdf


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The files that are looked for.

    Extensions with a MIME type are among the types. The others are matched with the URL or with the file name that a
    server sends; so are expressions. Neither matches HTML pages.
    """

    types: frozenset[str] = frozenset()  # MIME types, or patterns like image/*
    extensions: frozenset[str] = frozenset()  # without a dot
    expressions: tuple[str, ...] = ()  # regular expressions

    @classmethod
    def of(cls, words: Iterable[str]) -> Self:
        r"""Return the files for a user's words; ``data`` stands for all data files.

        Raises
        ------
        ConfigError
            If a word is empty, or neither an extension nor a MIME type nor a regular expression.

        Examples
        --------
        >>> str(Wanted.of(["csv", ".DAT", "image/*", r"/download/\d+"]))
        'csv, image/*, dat, /download/\\d+'
        """
        types: set[str] = set()
        extensions: set[str] = set()
        expressions: dict[str, None] = {}
        for word in words:
            name = word.strip().lower().lstrip(".")
            name = ALIASES.get(name, name)
            if name == "data":
                types |= DATA_TYPES
            elif name in FILE_TYPES:
                types.update(FILE_TYPES[name])
            elif _MIME.fullmatch(name):
                types.add(name)
            elif _EXTENSION.fullmatch(name) and not _HALF.fullmatch(name):
                guess = guess_mime(name)
                if guess:
                    types.add(guess)
                else:
                    extensions.add(name)
            else:
                expressions[_expression(word)] = None
        return cls(types=frozenset(types), extensions=frozenset(extensions), expressions=tuple(expressions))

    def takes(self, mime: str, url: str) -> bool:
        """Whether a file of this MIME type at this URL, or with this name, is wanted."""
        if matches(mime, self.types):
            return True
        return mime not in _PAGES and self.asks_for(url)

    def asks_for(self, url: str) -> bool:
        """Whether a URL matches an extension without a MIME type, or an expression."""
        if not (self.extensions or self.expressions):
            return False
        name = url.partition("?")[0].partition("#")[0].lower()
        return (
            extension(url) in self.extensions
            or name.endswith(tuple(f".{each}" for each in self.extensions if "." in each))
            or any(re.compile(each).search(url) for each in self.expressions)
        )

    def __str__(self) -> str:
        named = [describe_types(self.types)] if self.types else []
        return ", ".join([*named, *sorted(self.extensions), *self.expressions])


def parse_types(words: Iterable[str]) -> frozenset[str]:
    """Return the MIME types for a user's words, if only types are allowed.

    Raises
    ------
    ConfigError
        If a word is neither a MIME type nor an extension with a MIME type.

    Examples
    --------
    >>> sorted(parse_types(["tsv", ".pdf", "image/*"]))
    ['application/pdf', 'application/x-pdf', 'image/*', 'text/tab-separated-values']
    """
    wanted = Wanted.of(words)
    if others := [*sorted(wanted.extensions), *wanted.expressions]:
        raise ConfigError(
            f"{brief(others[0])} has no MIME type: use an extension that has one (csv, pdf), a MIME type (text/csv, "
            "image/*), or 'data' for all data files"
        )
    return wanted.types


def split_words(text: str) -> list[str]:
    r"""Split a text at commas, except within brackets of a regular expression.

    Examples
    --------
    >>> split_words(r"csv, pdf,/[a,b]/\d{1,3}")
    ['csv', 'pdf', '/[a,b]/\\d{1,3}']
    """
    words, depth, begun = [], 0, 0
    for at, letter in enumerate(text):
        depth = max(0, depth + (letter in "([{") - (letter in ")]}"))
        if letter == "," and not depth:
            words.append(text[begun:at])
            begun = at + 1
    return [word.strip() for word in [*words, text[begun:]]]


def slips(words: Iterable[str]) -> list[tuple[str, str]]:
    """Return the words that look like typing errors, each with a suggestion.

    Examples
    --------
    >>> slips(["cvs", "pdf", "dat", "epub"])
    [('cvs', 'csv')]
    """
    known = [name for name in [*FILE_TYPES, *ALIASES] if "." not in name]
    found = []
    for word in words:
        name = word.strip().lower().lstrip(".")
        if name in ("data", *known) or not _EXTENSION.fullmatch(name):
            continue
        if mimetypes.guess_type(f"a.{name}")[0]:
            continue  # a type of file that exists, but not of data
        near = _near(name, known)
        if near:
            found.append((name, near[0]))
    return found


def _near(name: str, known: list[str]) -> list[str]:
    """Return names with the same letters in another order, or else a similar one."""
    turned = [each for each in known if sorted(each) == sorted(name)]
    return turned or difflib.get_close_matches(name, known, n=1, cutoff=_NEAR)


def _expression(word: str) -> str:
    """Return a regular expression, or raise ``ConfigError``."""
    name = word.strip()
    if not name or _NO_EXPRESSION.fullmatch(name) or _HALF.fullmatch(name.lower()):
        raise ConfigError(
            f"{brief(word)} is not a file type: use an extension (csv, pdf, dat), a MIME type (text/csv, image/*), a "
            "regular expression of the URL (/download/), or 'data' for all data files"
        )
    try:
        compiled(name)
    except ValueError as error:
        raise ConfigError(
            f"{brief(word)} is neither an extension, nor a MIME type, nor a regular expression: {error}"
        ) from error
    return name
