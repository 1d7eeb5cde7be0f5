"""A site of pages on the weather and on other subjects, in turn, that only their words tell apart."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from tests.topicwords import OTHERS, WEATHER, page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

ABOUT = "weather and storms"
SUBJECTS = {"weather": WEATHER, "law": OTHERS["law"], "food": OTHERS["food"]}


class OneWord:
    """An embedding in which all words of the weather are one word."""

    digest = "one-word"

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        wanted = {*WEATHER, *ABOUT.split()}
        shares = [bool(wanted & {*text.lower().split()}) for text in texts]
        return np.array([[share, not share] for share in shares], np.float32)


def site_pages(n: int = 36, *, thing: str = "") -> dict[str, str]:
    """Return the HTML of pages by path: a root, ``n`` pages that it links to, and one behind each of these.

    Every third page is on the weather, and so is the one behind it; see :func:`is_on`. With ``thing``, each page but
    the root describes a thing of this type of schema.org; every second one, a thing of type Person instead.
    """
    rng = np.random.default_rng(0)
    pages, listed = {}, []
    for i in range(n):
        words = list(SUBJECTS.values())[i % 3]
        first, second = (" ".join(rng.choice(words, 3, replace=False)) for _ in range(2))
        listed.append(f'<p><a href="/{i}">{first}</a>')
        kind = "Person" if i % 2 else thing
        script = json.dumps({"@context": "https://schema.org", "@type": kind, "name": f"Number {i}"})
        data = f'<script type="application/ld+json">{script}</script>' if thing else ""
        pages[f"/{i}"] = f'<html><title>{first}</title>{data}<p>{page(words, rng)}<p><a href="/{i}/more">{second}</a>'
        pages[f"/{i}/more"] = f"<html><title>{second}</title>{data}<p>{page(words, rng)}"
    pages["/"] = f"<html><title>Everything</title>{''.join(listed)}"
    return pages


def is_on(path: str) -> bool:
    """Whether the page of a path is on the weather."""
    return path != "/" and not int(path.split("/")[1]) % 3
