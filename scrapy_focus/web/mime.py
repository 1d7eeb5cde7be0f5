"""MIME types and file extensions: what users look for, and what is never worth a request.

Users name types in either form (``csv``, ``text/csv``, ``image/*``). Servers send them in a Content-Type header, often
with parameters and in any case, and sometimes not at all.
"""

from __future__ import annotations

import mimetypes
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Collection

#: For each kind of data file, the MIME types that servers send (the first is the registered one).
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
#: ... and by extension, with resources that only style a page.
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
    """Return ``type/subtype`` in lower case from a Content-Type header, ``""`` if there is none."""
    return header.partition(";")[0].strip().lower()


def extension(url: str) -> str:
    """Return the extension of a URL's path in lower case, without the dot, ``""`` if there is none.

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
    """Whether a MIME type is one of these; ``image/*`` stands for all images."""
    return mime in patterns or (mime.partition("/")[0] + "/*") in patterns


def effective_mime(mime: str, url: str) -> str:
    """Return the MIME type of a file, by the extension of its URL if the server's type is unspecific.

    Examples
    --------
    >>> effective_mime("application/octet-stream", "https://example.org/prices.csv")
    'text/csv'
    >>> effective_mime("text/html", "https://example.org/prices.csv")
    'text/html'
    """
    if mime not in _VAGUE:
        return mime
    return guess_mime(extension(url)) or mime


def is_vague(mime: str) -> bool:
    """Whether a MIME type is unspecific: none, ``application/octet-stream``, ``text/plain``."""
    return mime in _VAGUE


def guess_mime(name: str) -> str:
    """Return the MIME type of files with an extension, ``""`` if there is none.

    Examples
    --------
    >>> guess_mime("yml"), guess_mime("epub"), guess_mime("dat1")
    ('application/yaml', 'application/epub+zip', '')
    """
    if known := FILE_TYPES.get(ALIASES.get(name, name)):
        return known[0]
    mime, compressed = mimetypes.guess_type(f"file.{name}")
    return "" if compressed else mime or ""


def describe_types(mimes: Collection[str]) -> str:
    """Describe types in few words, as a user would name them.

    Examples
    --------
    >>> describe_types([*FILE_TYPES["csv"], *FILE_TYPES["pdf"], "image/*"])
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
    """Return the extensions that are never worth a request, except those of wanted MIME types.

    Examples
    --------
    >>> "png" in blocked_extensions(), "png" in blocked_extensions(["image/*"])
    (True, False)
    """
    types = {name: mimetypes.guess_type(f"file.{name}")[0] or "" for name in BLOCKED_EXTENSIONS}
    return frozenset(name for name, mime in types.items() if not matches(mime, wanted))
