"""``python -m scrapy_focus files URL``: the commands of this package, where ``scrapy`` is not in the path.

``files`` stands for ``scrapy focus-files``, and so on.
"""

from __future__ import annotations

import sys

from scrapy.cmdline import execute


def main(words: list[str]) -> None:
    """Run ``scrapy focus-<command>``, or list all commands."""
    named = [f"focus-{words[0].removeprefix('focus-')}", *words[1:]] if words and words[0][:1] != "-" else words
    execute(["scrapy", *named])


if __name__ == "__main__":
    main(sys.argv[1:])
