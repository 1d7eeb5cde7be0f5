"""Compiles regular expressions that users wrote."""

from __future__ import annotations

import re
import warnings

_LONGEST = 1000  # characters: a long one takes seconds to compile


def compiled(text: str) -> re.Pattern[str]:
    """Return a compiled regular expression.

    Raises
    ------
    ValueError
        If it is empty, too long, or not a regular expression; the message says why.

    Examples
    --------
    >>> compiled("/page/[0-9]+").search("http://a.test/page/7").group()
    '/page/7'
    """
    if not text.strip():
        raise ValueError("it is empty")
    if len(text) > _LONGEST:
        raise ValueError(f"it has {len(text):,} characters; a regular expression may have {_LONGEST:,}")
    try:
        with warnings.catch_warnings():  # about syntax that other versions may read differently
            warnings.simplefilter("ignore", FutureWarning)
            return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(str(error)) from error
