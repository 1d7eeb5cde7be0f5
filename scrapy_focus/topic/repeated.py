"""Text that repeats on the pages of a site: menus, footers, boxes. It describes the site, and not the page.

A model that is trained on pages of few sites would learn their menus, and it would also score the menu of a page.
Nothing marks a menu; so text that was seen on several pages of a host is treated as one. But pages that are copies of
each other repeat as a whole, and must not end up empty.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import TYPE_CHECKING
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Sequence

_LEFT = 0.05  # minimum share of the words of a page that must remain, or else the whole page is kept
_NUMBER = re.compile(r"\d+")


class Repeated:
    """Removes the blocks of a page that were seen on several pages of its host.

    The first pages of a host keep their whole text, because nothing is known of it.

    Parameters
    ----------
    pages
        Number of pages of a host at which a block is removed, including the page itself.
    blocks_of_host
        Different blocks of a host to remember. Beyond that, those that were seen once are forgotten.
    blocks
        Of all hosts together. Beyond that, the hosts whose last page is oldest are forgotten.

    Notes
    -----
    Two blocks are equal if they differ in nothing but numbers. They are known by 32 bits of a hash. *Memory*: about
    100 bytes a block, 20 MB at most by default. *Time* is linear in the text of a page: some 0.5 ms for 500 blocks.

    Examples
    --------
    >>> repeated = Repeated()
    >>> for text in ("Bees dance.", "Wax melts at 62 degrees.", "Honey is sweet."):
    ...     left = repeated.strip("blog.example", ["Home", "About me", text, "(c) 2024 Anna"])
    >>> left
    'Honey is sweet.'
    """

    def __init__(self, *, pages: int = 3, blocks_of_host: int = 5_000, blocks: int = 200_000) -> None:
        self.pages = pages
        self.blocks_of_host = blocks_of_host
        self.blocks = blocks
        self._counts: OrderedDict[str, dict[int, int]] = OrderedDict()  # by host, the latest last: pages of each block
        self._n = 0  # blocks of all hosts

    def strip(self, host: str, blocks: Sequence[str]) -> str:
        """Record the blocks of a new page, and return its text without those that repeat."""
        self.add(host, blocks)
        return self.left(host, blocks)

    def add(self, host: str, blocks: Sequence[str]) -> None:
        """Record the blocks of a page. Call it once for each page."""
        counts = self._counts.setdefault(host, {})
        self._counts.move_to_end(host)
        before = len(counts)
        for block in {_number(block) for block in blocks}:
            counts[block] = counts.get(block, 0) + 1
        if len(counts) > self.blocks_of_host:
            for least in range(1, self.pages):
                counts = {block: n for block, n in counts.items() if n > least}
                if len(counts) <= self.blocks_of_host // 2:
                    break
            self._counts[host] = dict(list(counts.items())[-self.blocks_of_host :])
        self._n += len(self._counts[host]) - before
        while self._n > self.blocks and len(self._counts) > 1:
            self._n -= len(self._counts.popitem(last=False)[1])

    def left(self, host: str, blocks: Sequence[str]) -> str:
        """Return the text of a page without the blocks that repeat on its host; the whole text if almost nothing is
        left.

        Parameters
        ----------
        host
            An identifier that pages with the same menu share.
        blocks
            As :func:`~scrapy_focus.web.html.page_blocks` returns them.
        """
        counts = self._counts.get(host, {})
        left = [block for block in blocks if counts.get(_number(block), 0) < self.pages]
        words = sum(block.count(" ") + 1 for block in blocks)
        if len(left) < len(blocks) and sum(block.count(" ") + 1 for block in left) <= _LEFT * words:
            return " ".join(blocks)
        return " ".join(left)

    def state(self) -> dict[str, dict[int, int]]:
        """Return the state as plain values: by host, on how many pages each block was."""
        return {host: dict(counts) for host, counts in self._counts.items()}

    def restore(self, state: dict[str, dict[int, int]]) -> None:
        """Restore a saved state."""
        self._counts = OrderedDict((host, dict(counts)) for host, counts in state.items())
        self._n = sum(map(len, self._counts.values()))


def _number(block: str) -> int:
    return crc32(_NUMBER.sub("0", block).encode("utf-8", "surrogatepass"))
