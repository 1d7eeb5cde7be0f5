"""Read where a crawl starts: URLs, files of URLs, and URLs on standard input, in any mixture.

A file has one URL per line. Blank lines, and comments after ``#``, are skipped. A URL that occurs several times counts
once.
"""

from __future__ import annotations

import mimetypes
import re
import sys
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from scrapy.exceptions import UsageError
from w3lib.url import safe_url_string

from scrapy_focus.core.printable import brief
from scrapy_focus.finders.kit.arguments.credentials import take_credentials
from scrapy_focus.web.linkurls import hide_credentials

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from scrapy_focus.finders.kit.arguments.argument import Called

#: The word for standard input in place of a file.
STDIN = "-"

_COMMENT = re.compile(r"(^|\s)#.*")
_BARE = re.compile(r"([\w.-]+|\[[\da-fA-F:.]+\])(?::\d+)?(?:[/?#].*)?")  # a URL without a scheme
_HERE = re.compile(r"localhost|127\.[\d.]+|\[.*\]")
_NAMED = 5  # start URLs that are named, of many


class Starts(NamedTuple):
    """Where a crawl starts."""

    urls: list[str]  # without user names and passwords
    credentials: dict[str, bytes]  # what to send in ``Authorization``, by origin
    hosts: list[str]  # of the URLs, without ``www.``


def starts_at(urls: Sequence[str]) -> Starts:
    """Return the starts of a crawl from these URLs; the host of an invalid URL is ``""``."""
    bare, credentials = take_credentials(urls)
    hosts = [host_of(url) if url.startswith(("http://", "https://")) else "" for url in bare]
    return Starts(bare, credentials, [host.removeprefix("www.") for host in hosts])


def host_of(url: str) -> str:
    """Return the host of a URL as Scrapy compares it: international names in ASCII."""
    try:
        return urlsplit(safe_url_string(url)).hostname or ""
    except ValueError:
        return ""


def words_of(words: Iterable[str]) -> list[str]:
    """Return the start URLs of a command, each once: each word is a URL, a file of URLs, or ``-`` for standard input.

    Raises
    ------
    UsageError
        If one is not a URL, a file cannot be read, or a file or standard input has no URL.
    """
    urls: list[str] = []
    for word in dict.fromkeys(words):
        if word == STDIN:
            urls += _lines(_standard_input(), "standard input")
        elif _is_file(word):
            urls += _lines(_bytes_of(word), word)
        else:
            urls.append(url_of(word))
    return list(dict.fromkeys(urls))


def roots_reader(spider: str) -> Callable[[str | Sequence[str], Called], Starts]:
    """Return a reader of the start URLs of a spider of this name: as :func:`read_seeds`."""

    def read(given: str | Sequence[str], called: Called) -> Starts:
        example = called.like("https://example.org/")
        return starts_at(
            starts_in(given, called, f"say where to start: scrapy crawl {spider} {example}, or {called.like('FILE')}")
        )

    return read


def read_seeds(given: str | Sequence[str], called: Called) -> Starts:
    """Return the start URLs of a spider, separated by commas; a file stands for the URLs in it. A list has URLs."""
    example = called.like("https://example.org/")
    return starts_at(
        starts_in(given, called, f"where to start? Give some pages: {called.like('FILE')}, or {example},...")
    )


def starts_in(given: str | Sequence[str], name: object, advice: str) -> list[str]:
    """Return the start URLs in an argument of this name, each once: URLs, files of URLs, or ``-``.

    In a text, they are separated by commas. Unlike in a file, a URL needs its scheme. ``advice`` ends the errors.

    Raises
    ------
    UsageError
        As :func:`words_of`.
    """
    words: Sequence[str] = [given] if isinstance(given, str) and _is_file(given) else given
    urls: list[str] = []
    for word in words.split(",") if isinstance(words, str) else words:
        found = _COMMENT.sub("", word).strip()
        if found.startswith(("http://", "https://")) and host_of(found):
            urls.append(found)
        elif found == STDIN or _is_file(found):
            urls += words_of([found])
        elif found:
            shown = given if "@" in given else found  # a password may contain a comma
            raise UsageError(f"{hide_credentials(repr(shown))} in {name} is neither a URL nor a file; {advice}")
    if not urls:
        raise UsageError(f"{name} is {brief(given)}; {advice}" if given else advice)
    return list(dict.fromkeys(urls))


def _is_file(word: str) -> bool:
    """Whether a word names a file, or a pipe such as ``<(...)`` of a shell."""
    if "://" in word:
        return False
    try:
        return Path(word).exists() and not Path(word).is_dir()
    except (OSError, ValueError):  # it cannot be a name
        return False


def _standard_input() -> bytes:
    if sys.stdin is None or sys.stdin.closed:
        return b""
    if sys.stdin.isatty():
        print("Reading URLs from standard input, one per line, until Ctrl-D", file=sys.stderr)
    return sys.stdin.buffer.read()


def _bytes_of(file: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise UsageError(f"the file {brief(file)} cannot be read ({error.strerror})") from error


def _lines(content: bytes, place: str) -> Iterator[str]:
    """Return the URLs in the lines of a file; `place` names it."""
    try:
        lines = content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise UsageError(f"{place} cannot be read: it is not UTF-8; give one URL per line") from error
    is_empty = True
    for number, line in enumerate(lines, 1):
        if word := _COMMENT.sub("", line).strip():
            is_empty = False
            try:
                yield url_of(word)
            except UsageError as error:
                raise UsageError(f"{place}, line {number}: {error}") from error
    if is_empty:
        again = "; to resume a crawl, give the same URLs again" if place == "standard input" else ""
        raise UsageError(f"{place} has no URL; give one per line{again}")


def named(urls: Sequence[str]) -> str:
    """Return URLs in a sentence; of many, the first ones and the number of the others."""
    shown = ", ".join(urls[:_NAMED])
    return f"{shown} and {len(urls) - _NAMED:,} more" if len(urls) > _NAMED else shown


def url_of(word: str) -> str:
    """Return a URL from user input: ``example.org`` stands for ``https://example.org``.

    Raises
    ------
    UsageError
        If it is not a URL.
    """
    url = word.strip()
    if "://" not in url and (found := _BARE.fullmatch(url)):
        url = _with_scheme(url, found[1])
    if _is_url(url):
        return url
    port = re.match(r"(?i)https?://[^/?#]*:(\d{1,20})(?:[/?#]|$)", url)
    if port and not 0 < int(port[1]) < 65536:
        raise UsageError(hide_credentials(f"{brief(word)} has the port {port[1]}; ports range from 1 to 65535"))
    meant = _meant(url)
    hint = f"did you mean {meant}?" if meant else "write it as https://example.org/"
    raise UsageError(hide_credentials(f"{brief(word)} is not a URL with http:// or https://; {hint}"))


def _with_scheme(url: str, host: str) -> str:
    """Add a scheme to a URL that begins with its host; ``UsageError`` if it looks like a file name."""
    if _HERE.fullmatch(host):
        return f"http://{url}"
    if "." not in host.strip("."):
        return url
    if url == host and _is_file_name(host):
        raise UsageError(f"the file {brief(host)} does not exist; give a file of URLs, or a URL: https://example.org/")
    return f"https://{url}"


def _meant(text: str) -> str:
    """Return the URL that a mistyped text probably means, such as ``htps:/example.org``; ``""`` if there is none."""
    scheme, rest = re.fullmatch(r"(?:([^/.:]*)(?::|(?=//)))?/*(?:[^/?#]*@)?(.*)", text, re.DOTALL).groups()  # type: ignore[union-attr]
    if scheme and not get_close_matches(scheme.lower(), ["http", "https"]):
        return ""
    url = f"https://{rest}"
    has_domain = _is_url(url) and re.match(r"\S+\.\S", urlsplit(url).hostname or "")
    return url if has_domain else ""


def _is_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _is_file_name(word: str) -> bool:
    """Whether a word without a scheme looks like a file name, and cannot be a host on the public web."""
    from scrapy_focus.web.domains import has_public_suffix

    return bool(mimetypes.guess_type(word)[0]) and not has_public_suffix(word)
