"""What a server calls a file."""

from __future__ import annotations

import warnings
from email.message import Message
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def announced_name(headers: Mapping[str, str]) -> str:
    """Return the name that a ``Content-Disposition`` gives to a file, ``""`` for none that can be read.

    Examples
    --------
    >>> announced_name({"Content-Disposition": 'attachment; filename="prices.csv"'})
    'prices.csv'
    """
    given = next((value for name, value in headers.items() if name.lower() == "content-disposition"), "")
    if not given:
        return ""
    message = Message()
    with warnings.catch_warnings():  # some codecs of Python's warn
        warnings.simplefilter("ignore")
        try:
            message["Content-Disposition"] = given
            return message.get_filename() or ""
        except (ValueError, LookupError, TypeError):  # line breaks; an unknown charset, or one like idna; broken parts
            return ""
