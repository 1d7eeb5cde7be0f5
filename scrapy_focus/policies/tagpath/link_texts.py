"""The texts of a link that TagPath's classifier reads: its URL alone, or with anchor, tag path and surrounding text.

The classifier learns from a link when its result arrives, long after the page with the link is gone. So a queued link
notes its anchor and its surrounding text in its memo, and the policy itself keeps nothing for each link.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from scrapy_focus.learn.text import N_PAIRS, char_pairs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from scrapy_focus.core.types import Link, Memo

Features = Literal["url", "context"]

_NOTED = 200  # bytes of an anchor, and of a surrounding text
_PATH = 500  # characters of a tag path, from its end
_END, _OTHER = 30, 31  # bytes: the end of the anchor; anything that is not a printable ASCII character
_PRINTABLE = bytes(byte if 32 <= byte <= 126 else _OTHER for byte in range(256))


class LinkTexts(NamedTuple):
    """Reads links as pairs of characters. Each text has its own block of features, as in FOCUSED."""

    features: Features
    case_sensitive: bool

    @property
    def n_features(self) -> int:
        """Indexes of features are below this."""
        return N_PAIRS if self.features == "url" else 4 * N_PAIRS

    @property
    def in_context(self) -> bool:
        """Whether links have to note their texts."""
        return self.features == "context"

    def found(self, link: Link) -> NDArray[np.intp]:
        """Return the features of a link as found, repeated as often as they occur, shape (n_pairs,)."""
        if self.features == "url":
            return char_pairs(link.url, case_sensitive=self.case_sensitive)
        return self._pairs(link.url, _printable(link.anchor), link.tag_path[-_PATH:], _printable(link.context))

    def note(self, link: Link) -> NDArray[np.float32]:
        """Return anchor and surrounding text as part of a memo, four characters in each number.

        Four bytes from 30 to 126 are always a finite number.
        """
        text = f"{_printable(link.anchor)}{chr(_END)}{_printable(link.context)}".encode("ascii")
        return np.frombuffer(text + bytes([_OTHER] * (-len(text) % 4)), np.float32)

    def noted(self, url: str, path: str, note: Memo) -> NDArray[np.intp]:
        """Return the features of a link with this URL, tag path and note, as :meth:`found` did."""
        if self.features == "url":
            return char_pairs(url, case_sensitive=self.case_sensitive)
        anchor, _, context = note.tobytes().decode("ascii").partition(chr(_END))
        return self._pairs(url, anchor, path[-_PATH:], context)

    def _pairs(self, *texts: str) -> NDArray[np.intp]:
        blocks = [char_pairs(text, case_sensitive=self.case_sensitive) + i * N_PAIRS for i, text in enumerate(texts)]
        return np.concatenate(blocks)


def _printable(text: str) -> str:
    """Return the begin of a text in printable ASCII characters."""
    return text.encode("utf-8", "surrogatepass")[:_NOTED].translate(_PRINTABLE).decode("ascii")
