"""Where a file is stored: in folders that a person can use, and never outside, whatever its server calls it.

Names come from strangers, and are read by people, on file systems of every kind. So a path is always of three parts
(host, section, name), none of which can be a way up, hidden, or reserved anywhere; and no two paths are the same where
case does not count.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable

_ODD = re.compile(r"[^\w.\- ]+")  # letters and digits of any script stay
_BLANK = re.compile(r"\s+")
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d|conin\$|conout\$|clock\$)(?:\..*)?", re.IGNORECASE)
_LONGEST = 150  # bytes of a name: file systems take 255, and names are copied elsewhere
_FOLDER = 60  # bytes of a host or a section
_ENDING = 20  # bytes of an extension that stays when a name is cut
_READ = 2000  # characters of a name or URL that are looked at
_TOP = "top"  # section of what stands in no folder


def safe_name(text: str, longest: int = _LONGEST) -> str:
    r"""Return a name for a file or folder that is safe on every file system, of so many bytes at most; never empty.

    Examples
    --------
    >>> safe_name("../../etc/passwd"), safe_name("CON.csv"), safe_name("a\x00b\u202ec.csv. "), safe_name("...")
    ('etc_passwd', '_CON.csv', 'a_b_c.csv', 'file')
    """
    name = unicodedata.normalize("NFC", text[:_READ])
    name = _BLANK.sub(" ", _ODD.sub("_", name)).strip("._ -")
    if len(name.encode()) > longest:
        stem, dot, ending = name.rpartition(".")
        if not stem or len(ending.encode()) > min(_ENDING, longest // 2):
            stem, dot, ending = name, "", ""
        room = longest - len(f"{dot}{ending}".encode())
        name = stem.encode()[:room].decode(errors="ignore").rstrip("._ -") + dot + ending
    return f"_{name}" if _RESERVED.fullmatch(name) else name or "file"


def folder_of(url: str) -> str:
    """Return host and section of a URL, as the folder for its file: ``host/section``.

    Examples
    --------
    >>> folder_of("https://www.example.org/statistics/2024/prices.csv"), folder_of("http://example.org:8000/a.csv")
    ('www.example.org/statistics', 'example.org_8000/top')
    """
    try:
        parts = urlsplit(url[:_READ])
        host, port, path = parts.hostname or "", parts.port, parts.path
    except ValueError:
        host, port, path = "", None, ""
    folders = [part for part in unquote(path).split("/")[:-1] if part.strip(". ")]
    place = f"{host}_{port}" if port else host
    return f"{safe_name(place or 'host', _FOLDER)}/{safe_name(folders[0], _FOLDER) if folders else _TOP}"


class Names:
    """Gives every file a path of its own, relative to the folder of files; a name that is taken gets a number.

    Parameters
    ----------
    taken
        Paths that were given before.

    Examples
    --------
    >>> names = Names()
    >>> [names.give("http://a.test/x/1", name) for name in ("prices.csv", "Prices.CSV", "prices.csv")]
    ['a.test/x/prices.csv', 'a.test/x/Prices-2.CSV', 'a.test/x/prices-3.csv']
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = {_same(path) for path in taken}
        self._next: dict[str, int] = {}  # number that is tried first for each path

    def give(self, url: str, name: str) -> str:
        """Return the path for a file of this name from this URL; it is taken from now on."""
        folder, name = folder_of(url), safe_name(name)
        path = f"{folder}/{name}"
        first = _same(path)
        number = self._next.get(first, 2)
        while _same(path) in self._taken:
            path = f"{folder}/{_numbered(name, number)}"
            number += 1
        self._next[first] = number
        self._taken.add(_same(path))
        return path


def _numbered(name: str, number: int) -> str:
    stem, dot, ending = name.rpartition(".")
    return f"{stem}-{number}{dot}{ending}" if dot else f"{name}-{number}"


def _same(path: str) -> str:
    """Return what is the same for all paths that a file system may take for one."""
    return unicodedata.normalize("NFKC", path).casefold()
