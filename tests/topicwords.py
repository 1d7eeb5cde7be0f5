"""Short texts on two subjects, made from their words, for tests of topics given by a sentence."""

from __future__ import annotations

import numpy as np

WEATHER = """
hurricane storm rain wind flood tornado cyclone thunder lightning snow drought climate temperature forecast
meteorology monsoon humidity hail blizzard typhoon
""".split()
#: Words of the weather that the sentences of tests don't have.
DAMAGE = "evacuated landfall damage levee shelter casualties barometer gusts".split()
OTHERS = {
    "music": "guitar piano orchestra singer melody opera concert violin album band rhythm composer".split(),
    "law": "court judge appeal contract lawyer statute plaintiff verdict tribunal clause evidence trial".split(),
    "food": "bread cheese recipe oven butter flour soup onion garlic dessert kitchen roast".split(),
    "trains": "railway station locomotive track platform carriage timetable freight signal tunnel".split(),
    "maths": "theorem integer matrix algebra equation proof vector topology lemma geometry".split(),
}


def page(words: list[str], rng: np.random.Generator, n: int = 120) -> str:
    """Return a text of so many of these words, as a page has them."""
    return " ".join(rng.choice(words, n))


def pages(n: int, share: float, seed: int = 0) -> list[tuple[str, bool]]:
    """Return pages, a share of them on the weather, and whether each is."""
    rng = np.random.default_rng(seed)
    subjects = list(OTHERS)
    made = []
    for i in range(n):
        on = bool(rng.random() < share)
        made.append((page([*WEATHER, *DAMAGE] if on else OTHERS[subjects[i % len(subjects)]], rng), on))
    return made


class Count:
    """An embedding by the number of letters."""

    digest = "count"

    def embed(self, texts: list[str]) -> np.ndarray:
        """Return vectors of length 1, shape (n, 2)."""
        angles = np.array([len(text) for text in texts]) / 100
        return np.stack([np.cos(angles), np.sin(angles)], axis=1)
