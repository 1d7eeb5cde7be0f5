"""Text that repeats on the pages of a site: menus, footers, boxes. It says what the site is, and not what a page is on.

A model that is trained on pages of few sites would learn their menus, and one that is asked about a page would judge
the menu along. Nothing says what a menu is; so what was seen on several pages of a host is taken for one. Pages that
are copies of each other repeat as a whole, though, and must not end up empty.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import TYPE_CHECKING
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Sequence

_LEFT = 0.05  # share of the words of a page that must be left, or else all of it is
_NUMBER = re.compile(r"\d+")


class Repeated:
    """Leaves out the blocks of a page that were seen on several pages of its host.

    Of the first pages of a host nothing is known, and all of their text is left.

    Parameters
    ----------
    pages
        On how many pages of a host a block is seen that is left out, the page itself among them.
    blocks_of_host
        Different blocks of a host that are remembered. Where there are more, those that were seen once are forgotten.
    blocks
        Of all hosts together. Where there are more, the hosts whose pages came least lately are forgotten.

    Notes
    -----
    Two blocks are equal if they differ in nothing but numbers. They are known by 32 bits of a hash. *Memory*: about 100
    bytes a block, 20 MB at most by default. *Time* is linear in the text of a page: some 0.5 ms for 500 blocks.

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
        """Note the blocks of a page that comes for the first time, and return its text without those that repeat."""
        self.add(host, blocks)
        return self.left(host, blocks)

    def add(self, host: str, blocks: Sequence[str]) -> None:
        """Note the blocks of a page. To be called once for each page."""
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
        """Return the text of a page without the blocks that repeat on its host; all of it if next to nothing is left.

        Parameters
        ----------
        host
            Whatever pages with one menu have in common.
        blocks
            As :func:`~scrapy_focus.web.html.page_blocks` gives them.
        """
        counts = self._counts.get(host, {})
        left = [block for block in blocks if counts.get(_number(block), 0) < self.pages]
        words = sum(block.count(" ") + 1 for block in blocks)
        if len(left) < len(blocks) and sum(block.count(" ") + 1 for block in left) <= _LEFT * words:
            return " ".join(blocks)
        return " ".join(left)

    def state(self) -> dict[str, dict[int, int]]:
        """Return what was noted, as plain values: by host, on how many pages each block was."""
        return {host: dict(counts) for host, counts in self._counts.items()}

    def restore(self, state: dict[str, dict[int, int]]) -> None:
        """Know what was noted before."""
        self._counts = OrderedDict((host, dict(counts)) for host, counts in state.items())
        self._n = sum(map(len, self._counts.values()))


def _number(block: str) -> int:
    return crc32(_NUMBER.sub("0", block).encode("utf-8", "surrogatepass"))
