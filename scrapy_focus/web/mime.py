"""MIME types and file extensions: what a user asks for, and what is never worth a request.

Users say what they want in either form (``csv``, ``text/csv``, ``image/*``). Servers say what they have in a
Content-Type header, often with parameters and in any case, and sometimes not at all.
"""

from __future__ import annotations

import mimetypes
import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.printable import brief

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

#: For each kind of data file, the MIME types under which servers send it (the first is the registered one).
FILE_TYPES: dict[str, tuple[str, ...]] = {
    "csv": (
        "text/csv",
        "application/csv",
        "text/x-csv",
        "application/x-csv",
        "text/comma-separated-values",
        "text/x-comma-separated-values",
    ),
    "tsv": ("text/tab-separated-values",),
    "xls": ("application/vnd.ms-excel", "application/msexcel", "application/x-excel"),
    "xlsx": ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",),
    "xlsm": ("application/vnd.ms-excel.sheet.macroenabled.12",),
    "ods": ("application/vnd.oasis.opendocument.spreadsheet",),
    "pdf": ("application/pdf", "application/x-pdf"),
    "doc": ("application/msword",),
    "docx": ("application/vnd.openxmlformats-officedocument.wordprocessingml.document",),
    "dotx": ("application/vnd.openxmlformats-officedocument.wordprocessingml.template",),
    "odt": ("application/vnd.oasis.opendocument.text",),
    "odp": ("application/vnd.oasis.opendocument.presentation",),
    "pptx": ("application/vnd.openxmlformats-officedocument.presentationml.presentation",),
    "json": ("application/json", "text/json", "application/ld+json", "application/geo+json"),
    "xml": ("application/xml", "text/xml"),
    "rdf": ("application/rdf+xml",),
    "rss": ("application/rss+xml",),
    "yaml": ("application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml"),
    "txt": ("text/plain",),
    "zip": ("application/zip", "application/x-zip-compressed", "application/zip-compressed"),
    "tar": ("application/x-tar", "application/x-gtar"),
    "gz": ("application/gzip", "application/x-gzip"),
    "7z": ("application/x-7z-compressed",),
    "rar": ("application/vnd.rar", "application/x-rar-compressed"),
    "parquet": ("application/vnd.apache.parquet", "application/x-parquet"),
    "bin": ("application/octet-stream",),
}
_VAGUE = ("", "application/octet-stream", "binary/octet-stream", "application/force-download", "text/plain")
#: Other names of these kinds, as extensions and as words.
ALIASES = {"yml": "yaml", "tgz": "gz", "tar.gz": "gz", "excel": "xls", "text": "txt"}

#: The target types of the SB-CLASSIFIER paper: data files and documents.
DATA_TYPES: frozenset[str] = frozenset(
    mime for name, mimes in FILE_TYPES.items() if name not in ("tsv", "parquet") for mime in mimes
)

#: What the SB-CLASSIFIER crawler never fetches: multimedia by MIME type ...
BLOCKED_MIMES: tuple[str, ...] = ("audio/*", "image/*", "video/*")
#: ... and by extension, with what only dresses a page.
BLOCKED_EXTENSIONS: frozenset[str] = frozenset(
    """
    3g2 3gp aac ac3 aif aiff amr ape asf asx au avi avif bmp cr2 css cur dds divx djv dng dv emf eot eps f4a f4v flac
    flv gif heic heif ico icns jfif jp2 jpe jpeg jpg js jxl jxr less m1v m2t m2ts m2v m3u m3u8 m4a m4b m4p m4v map mid
    midi mka mkv mng mov mp2 mp3 mp4 mpa mpe mpeg mpg mpv mts mxf nef oga ogg ogm ogv opus orf otf pbm pcm pcx pgm pict
    png pnm ppm psd qt ra ram raw rm rmvb scss sgi snd svg svgz swf tga tif tiff ts ttf vob wav wbmp weba webm webp wma
    wmf wmv woff woff2 wv xbm xcf xpm xspf
    """.split()
)


def parse_mime(header: str) -> str:
    """Return ``type/subtype`` in lower case from a Content-Type header, ``""`` where there is none."""
    return header.partition(";")[0].strip().lower()


def extension(url: str) -> str:
    """Return the extension of a URL's path in lower case, without the dot, ``""`` where there is none.

    Examples
    --------
    >>> extension("https://example.org/a/Report.PDF?download=1")
    'pdf'
    >>> extension("https://example.org/v1.2/data")
    ''
    """
    try:
        name = urlsplit(url).path.rpartition("/")[2]
    except ValueError:
        return ""
    return name.rpartition(".")[2].lower() if "." in name else ""


def matches(mime: str, patterns: Collection[str]) -> bool:
    """Whether a MIME type is one of these; ``image/*`` stands for all of its kind."""
    return mime in patterns or (mime.partition("/")[0] + "/*") in patterns


def effective_mime(mime: str, url: str) -> str:
    """Return the MIME type of a file, by the extension of its URL where the server gave none that says anything.

    Examples
    --------
    >>> effective_mime("application/octet-stream", "https://example.org/prices.csv")
    'text/csv'
    >>> effective_mime("text/html", "https://example.org/prices.csv")
    'text/html'
    """
    if mime not in _VAGUE:
        return mime
    name = extension(url)
    return FILE_TYPES.get(ALIASES.get(name, name), (mime,))[0]


def describe_types(mimes: Collection[str]) -> str:
    """Say in few words which types these are, as a user would ask for them.

    Examples
    --------
    >>> describe_types(parse_types(["csv", "pdf", "image/*"]))
    'csv, pdf, image/*'
    >>> describe_types(DATA_TYPES)
    'data'
    """
    if mimes == DATA_TYPES:
        return "data"
    names = [name for name, known in FILE_TYPES.items() if set(known) <= set(mimes)]
    rest = set(mimes).difference(*(FILE_TYPES[name] for name in names))
    return ", ".join([*names, *sorted(rest)])


def blocked_extensions(wanted: Collection[str] = ()) -> frozenset[str]:
    """Return the extensions that are never worth a request, but for those of wanted MIME types.

    Examples
    --------
    >>> "png" in blocked_extensions(), "png" in blocked_extensions(["image/*"])
    (True, False)
    """
    types = {name: mimetypes.guess_type(f"file.{name}")[0] or "" for name in BLOCKED_EXTENSIONS}
    return frozenset(name for name, mime in types.items() if not matches(mime, wanted))


def parse_types(words: Iterable[str]) -> frozenset[str]:
    """Return the MIME types that a user asks for, by extension or MIME type; ``data`` stands for all data files.

    Raises
    ------
    ConfigError
        If a word is neither an extension that is known nor a MIME type.

    Examples
    --------
    >>> sorted(parse_types(["tsv", ".pdf", "image/*"]))
    ['application/pdf', 'application/x-pdf', 'image/*', 'text/tab-separated-values']
    """
    mimes: set[str] = set()
    for word in words:
        name = word.strip().lower().lstrip(".")
        name = ALIASES.get(name, name)
        if name == "data":
            mimes |= DATA_TYPES
        elif name in FILE_TYPES:
            mimes.update(FILE_TYPES[name])
        elif re.fullmatch(r"[\w.+-]+/([\w.+-]+|\*)", name):
            mimes.add(name)
        elif guess := mimetypes.guess_type(f"file.{name}")[0]:
            mimes.add(guess)
        else:
            raise ConfigError(
                f"{brief(word)} is not a file type: name an extension ({', '.join(FILE_TYPES)}), a MIME type "
                "(text/csv, image/*), or 'data' for all data files"
            )
    return frozenset(mimes)
