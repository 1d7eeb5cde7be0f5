"""Check before a crawl that its results can be written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.exceptions import UsageError

from scrapy_focus.core.files import symbolic_link, try_to_write
from scrapy_focus.core.printable import printable, reason_of
from scrapy_focus.finders.kit.arguments.argument import Called
from scrapy_focus.finders.kit.records.folder_names import ENTITIES, FILES, MANIFEST, NEWS, PAGES, SKIPPED

if TYPE_CHECKING:
    from pathlib import Path

_WRITTEN = (FILES, ".focus", MANIFEST, SKIPPED, ENTITIES, NEWS, PAGES)  # in the output folder


def try_out(path: Path, out: Path | None = None, called: Called | None = None) -> None:
    """Make the output folder of a crawl, and check that a file can be written there.

    Parameters
    ----------
    path
        The file.
    out
        The folder, if the user named one.
    called
        The user's name for the argument; ``out`` of a spider by default.

    Raises
    ------
    UsageError
        If it cannot be written, or a symbolic link would lead the crawl out of the folder.
    """
    named = (called or Called("out")).like(printable(str(out or path)))
    try:
        link = symbolic_link(path, *(path.with_name(name) for name in _WRITTEN))
        if link is None:
            try_to_write(path)
    except (OSError, ValueError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or reason_of(error)
        raise UsageError(f"cannot write to {named}: {reason}; name another one") from error
    if link is not None:
        raise UsageError(
            f"cannot write to {named}: {printable(str(link))} is a symbolic link, which may lead out "
            "of it; remove that, or name another one"
        )
