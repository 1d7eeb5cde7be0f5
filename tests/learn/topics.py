"""Made-up pages on a topic and off it, in several languages."""

from __future__ import annotations

import numpy as np

# words on the topic, words off it, words of any page
WORDS = {
    "English": (
        "wine grape vineyard cellar harvest bottle cork",
        "steel engine railway bridge iron wheel",
        "the of and page home",
    ),
    "Russian": ("вино виноград погреб урожай бутылка", "сталь двигатель мост железо колесо", "и в на страница"),
    "Hindi": ("शराब अंगूर बोतल फसल", "इस्पात इंजन पुल लोहा", "और में पृष्ठ है"),
    "Chinese": ("葡萄酒 酒窖 酒瓶 收获季节", "钢铁 发动机 铁路桥 车轮", "首页 我们 网站"),
    "Thai": ("ไวน์ องุ่น ขวดแก้ว", "เหล็กกล้า เครื่องยนต์ สะพาน", "หน้าแรก และ ของ"),
}
JOINED = ("Chinese", "Thai")  # written without blanks


def pages(n: int, *, on: bool, language: str = "English", seed: int = 0, length: int = 60) -> list[str]:
    """Return pages; half of their words are those of any page, and one in ten comes from the other side."""
    words = [text.split() for text in WORDS[language]]
    rng = np.random.default_rng([seed, on])
    made = []
    for _ in range(n):
        sides = rng.choice([0 if on else 1, 1 if on else 0, 2], length, p=[0.4, 0.1, 0.5])
        chosen = [str(rng.choice(words[side])) for side in sides]
        made.append(("" if language in JOINED else " ").join(chosen))
    return made


def examples(on: int, off: int, **rest: object) -> tuple[list[str], list[bool]]:
    """Return texts and labels, those on the topic first."""
    texts = pages(on, on=True, **rest) + pages(off, on=False, **rest)  # type: ignore[arg-type]
    return texts, [True] * on + [False] * off
