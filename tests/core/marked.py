"""Random pages with markup, whole and broken, and what ``extruct`` reads of them."""

from __future__ import annotations

import json
import random
from html import escape
from typing import Any, NamedTuple

import extruct

URL = "http://site.example/shop/page.html"
TYPES = ("Recipe", "Event", "Product", "Offer", "Person", "Place", "Organization", "BreadcrumbList", "JobPosting")
_BEFORE = (
    "",
    "http://schema.org/",
    "https://schema.org/",
    "http://www.schema.org/",
    "https://www.schema.org/",
    "schema:",
)
_NAMES = ("name", "author", "offers", "location", "description", "price", "image")
_TEXTS = ("Soup", "<b>x</b> & y", 'a "quoted" text', "Füße 汤", "  blanks \n within ", "/img/a.png", "")
_BROKEN = (
    "", "no JSON", "{'@type': 'Event'}", "\ufeff%s", "%s %s", "%s%s", "{&quot;@type&quot;: &quot;Event&quot;}", "[%s", '{"a": [%s}',
    '{"@type": "Event", "n": ' + "9" * 5000 + "}", "[" * 5000 + "]" * 5000,
)  # fmt: skip
_MENDED = (
    "// a comment\n%s",
    "<!-- a comment -->\n%s",
    "/* before */ %s /* and after */",
    "[%s,]",
    "\n\n%s\n\n",
    "[%s, null, 5, []]",
)


class Made(NamedTuple):
    """A page, and its scripts one by one."""

    source: str
    scripts: tuple[str, ...]


class Answer(NamedTuple):
    """What ``extruct`` reads: types and values of each entity, in order, the number of facts, and of broken scripts."""

    entities: list[tuple[str, tuple[str, ...], Any]]
    facts: int
    broken: int


def page(seed: int) -> Made:
    """Return a page with up to three scripts and three items; the same for the same seed."""
    rng = random.Random(seed)
    scripts = tuple(_script(rng) for _ in range(rng.randrange(4)))
    items = [_item(rng, 0) for _ in range(rng.randrange(4))]
    blocks = [f'<script type="application/ld+json">{script}</script>' for script in scripts] + items
    blocks += rng.choices(
        ["<p>text</p>", "<script>var a = {};</script>", "<!-- itemscope -->", "<ul><li>a<li>b</ul>"], k=3
    )
    scripts_first = blocks[: len(scripts)]
    rest = blocks[len(scripts) :]
    rng.shuffle(rest)
    head, body = "".join(scripts_first), "".join(rest)
    return Made(f"<html><head><title>t</title>{head}</head><body>{body}</body></html>", scripts)


def full_answer(made: Made) -> Answer:
    """Ask ``extruct`` for all that is on a page, script by script, as one that is broken makes it give up on all."""
    found: list[Any] = []
    broken = 0
    for script in made.scripts:
        source = f'<html><head><script type="application/ld+json">{script}</script></head></html>'
        try:
            found += extruct.extract(source, base_url=URL, syntaxes=["json-ld"])["json-ld"]
        except (ValueError, RecursionError):
            broken += 1
    whole: list[Any] = []
    if not broken:
        whole = extruct.extract(made.source, base_url=URL, syntaxes=["json-ld"])["json-ld"]
        assert whole == found
    items = extruct.extract(made.source, base_url=URL, syntaxes=["microdata"])["microdata"]
    entities: list[tuple[str, tuple[str, ...], Any]] = []
    facts = [_walked(each, "json-ld", entities)[1] for each in found if isinstance(each, (dict, list))]
    known: dict[int, Any] = {}
    facts += [_walked(_as_json_ld(each, known), "microdata", entities, {})[1] for each in items]
    return Answer(entities, sum(facts), broken)


def _walked(
    value: Any, syntax: str, entities: list[tuple[str, tuple[str, ...], Any]], seen: dict[int, Any] | None = None
) -> tuple[Any, int]:
    """Return a value with plain types and without what is empty, and its facts; note entities before those in them,
    and those that are two properties of another once.
    """
    if isinstance(value, list):
        walked = [_walked(each, syntax, entities, seen) for each in value]
        return [each for each, _ in walked if each is not None] or None, sum(facts for _, facts in walked)
    if not isinstance(value, dict):
        return (None, 0) if value in (None, "") else (value, 1)
    types = value.get("@type", [])
    types = [name for name in (types if isinstance(types, list) else [types]) if isinstance(name, str)]
    names = tuple(name.rpartition("/")[2].removeprefix("schema:") for name in types)
    kept: dict[str, Any] = {}
    if seen is not None:
        if id(value) in seen:
            return {name: seen[id(value)][name] for name in ("@type", "@id") if name in seen[id(value)]}, 0
        seen[id(value)] = kept
    if names:
        kept["@type"] = names[0] if len(names) == 1 else list(names)
        entities.append((syntax, names, kept))
    facts = 0
    for name, each in value.items():
        if name not in ("@context", "@type"):
            inner, more = _walked(each, syntax, entities, seen)
            facts += more if name not in ("@id", "@value") else 0
            if inner is not None:
                kept[name] = inner
    return kept, facts


def _as_json_ld(item: Any, known: dict[int, Any]) -> Any:
    """Return an item as JSON-LD writes it; the same one for the same."""
    if not isinstance(item, dict):
        return item
    if id(item) not in known:
        said = known[id(item)] = {f"@{name}": item[name] for name in ("type", "id", "value") if item.get(name)}
        for name, values in item.get("properties", {}).items():
            each = [_as_json_ld(value, known) for value in values] if isinstance(values, list) else values
            said[name] = _as_json_ld(each, known)
    return known[id(item)]


def _script(rng: random.Random) -> str:
    things = [json.dumps(_thing(rng, 0), ensure_ascii=rng.random() < 0.5) for _ in range(2)]
    draw = rng.random()
    frame = "%s" if draw < 0.5 else rng.choice(_MENDED if draw < 0.75 else _BROKEN)
    return frame % tuple(things[: frame.count("%s")])


def _types(rng: random.Random) -> list[str]:
    return [rng.choice(_BEFORE) + name for name in rng.sample(TYPES, rng.choice((0, 1, 1, 1, 2)))]


def _thing(rng: random.Random, depth: int) -> dict[str, Any]:
    said: dict[str, Any] = {}
    if rng.random() < 0.5:
        said["@context"] = rng.choice(("https://schema.org", "http://schema.org/", {"@vocab": "https://schema.org/"}))
    types = _types(rng)
    if types:
        said["@type"] = types if len(types) > 1 or rng.random() < 0.2 else types[0]
    elif rng.random() < 0.3:
        said["@type"] = rng.choice((5, None, [], [None, 3]))
    if said and rng.random() < 0.2:
        said["@id"] = rng.choice(("#a", "/b", "http://c.example/"))
    if rng.random() < 0.1 and depth < 3:
        said["@graph"] = [_thing(rng, depth + 1) for _ in range(rng.randrange(3))]
    for name in rng.sample(_NAMES, rng.randrange(1, 5)):
        said[name] = _value(rng, depth)
    return said


def _value(rng: random.Random, depth: int) -> Any:
    draw = rng.random()
    if depth < 4 and draw < 0.3:
        return _thing(rng, depth + 1)
    if depth < 4 and draw < 0.4:
        return [_value(rng, depth + 1) for _ in range(rng.randrange(4))]
    return rng.choice((*_TEXTS, 5, 2.5, True, False, None, 0))


def _item(rng: random.Random, depth: int, prop: str = "") -> str:
    types = [name if "/" in name else f"http://schema.org/{name.removeprefix('schema:')}" for name in _types(rng)]
    marks = f' itemprop="{prop}"' if prop else ""
    marks += f' itemtype="{" ".join(types)}"' if types else ""
    marks += ' itemid="#i"' if rng.random() < 0.2 else ""
    inside = "".join(_property(rng, depth) for _ in range(rng.randrange(5)))
    tag = rng.choice(("div", "section", "span"))
    return f"<{tag} itemscope{marks}><p>{inside}</{tag}>"


def _property(rng: random.Random, depth: int) -> str:
    name, text = " ".join(rng.sample(_NAMES, rng.choice((1, 1, 1, 2)))), escape(rng.choice(_TEXTS))
    if depth < 3 and rng.random() < 0.3:
        return _item(rng, depth + 1, name)
    form = rng.choice(
        (
            '<span itemprop="{}">{}</span>', '<meta itemprop="{}" content="{}">', '<a itemprop="{}" href="{}">a</a>',
            '<img itemprop="{}" src="{}">', '<time itemprop="{}" datetime="{}">now</time>', '<b>{}</b><i>{}</i>',
            '<div itemprop="{}"><h2>{}</h2><ul><li>a<li>b</ul><script>x</script></div>', '<link itemprop="{}" href="{}">',
        )
    )  # fmt: skip
    return form.format(name, text)
