"""Names for files that are safe on every file system, whatever a site says."""

from __future__ import annotations

import mimetypes
import re
import unicodedata

from scrapy_focus.web.mime import guess_mime

_ODD = re.compile(r"[^\w.\- ]+")  # letters and digits of any script stay
_BLANK = re.compile(r"\s+")
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d|conin\$|conout\$|clock\$)(?:\..*)?", re.IGNORECASE)
_LONGEST = 150  # bytes of a name: file systems take 255, and names are copied elsewhere
_ENDING = 20  # bytes of an extension that is kept when a name is cut
_READ = 2000  # characters of a name that are read
_ACTIVE = frozenset(  # extensions of documents whose scripts a browser runs, and of programs
    """
    bat cmd com desktop exe hta htm html jar js lnk mht mhtml msi pif ps1 scr sh shtml svg svgz url vbs xht xhtml
    """.split()
)


def safe_name(text: str, longest: int = _LONGEST) -> str:
    r"""Return a name for a file or folder that is safe on every file system, limited in bytes; never empty.

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


def inert_name(name: str, mime: str) -> str:
    """Return the name of a file, with another extension if its own would make it a program or a page, which it is not.

    A click on a file runs the scripts of a page or a program, and a site may give its files any names.

    Examples
    --------
    >>> inert_name("rain.html", "text/csv"), inert_name("rain.html", "text/html"), inert_name("rain.csv", "text/plain")
    ('rain.html.csv', 'rain.html', 'rain.csv')
    """
    ending = name.rpartition(".")[2].lower()
    if ending not in _ACTIVE or guess_mime(ending) == mime:
        return name
    return safe_name(f"{name}{mimetypes.guess_extension(mime) or '.bin'}")
