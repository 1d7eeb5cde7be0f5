"""Entities as the pages of a made-up web describe them: as data, as JSON-LD, as microdata, and as both go wrong."""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: What sections of hosts are about, whether or not they say so to machines; the index is the number of a content.
CONTENTS: Final = ("Recipe", "Product", "Event", "JobPosting", "Dataset", "Article")
VARIANTS: Final = 2  # of each: without and with what only some pages say
BREAKS: Final = 3  # ways in which JSON is broken

_CITIES: Final = ("Lindau", "Porto", "Bergen", "Split", "Ghent", "Turku", "Siena", "Leith")
_PEOPLE: Final = ("A. Moreno", "J. Holm", "K. Adeyemi", "P. Novak", "S. Laurent", "T. Mori")
_BRANDS: Final = ("Norda", "Velmo", "Kastel", "Orbi", "Tamarin")


class Facts(NamedTuple):
    """What a reader of machine-readable data finds in some entities."""

    types: tuple[str, ...]  # of each entity in document order, nested ones after what they are part of
    leaves: int  # values that are no entities


class Naming(NamedTuple):
    """What the entities of a page are called."""

    title: str
    url: str
    site: str  # name of the host
    bits: int  # for everything else


def _recipe(of: Naming, variant: int) -> dict[str, Any]:
    entity: dict[str, Any] = {
        "@type": "Recipe", "name": of.title, "recipeYield": f"{1 + of.bits % 8} servings",
        "totalTime": f"PT{5 + of.bits % 90}M", "author": {"@type": "Person", "name": _PEOPLE[of.bits % len(_PEOPLE)]},
        "recipeIngredient": [f"{1 + of.bits % 5} eggs", f"{50 + of.bits % 400} g flour", "salt"],
    }  # fmt: skip
    return entity | ({"aggregateRating": _rating(of)} if variant else {})


def _rating(of: Naming) -> dict[str, Any]:
    return {"@type": "AggregateRating", "ratingValue": 1 + of.bits % 40 / 10, "ratingCount": 1 + of.bits % 213}


def _offer(of: Naming) -> dict[str, Any]:
    return {
        "@type": "Offer", "price": f"{of.bits % 20_000 / 100:.2f}", "priceCurrency": ("EUR", "USD", "GBP")[of.bits % 3],
        "availability": "https://schema.org/InStock",
    }  # fmt: skip


def _product(of: Naming, variant: int) -> dict[str, Any]:
    entity: dict[str, Any] = {
        "@type": "Product", "name": of.title, "sku": f"{of.bits % 99_991:05}",
        "brand": {"@type": "Brand", "name": _BRANDS[of.bits % len(_BRANDS)]}, "offers": _offer(of),
    }  # fmt: skip
    return entity | ({"aggregateRating": _rating(of)} if variant else {})


def _place(of: Naming) -> dict[str, Any]:
    city = _CITIES[of.bits % len(_CITIES)]
    return {"@type": "Place", "name": city, "address": {"@type": "PostalAddress", "addressLocality": city}}


def _event(of: Naming, variant: int) -> dict[str, Any]:
    entity: dict[str, Any] = {
        "@type": "Event", "name": of.title, "startDate": _day(of), "eventStatus": "https://schema.org/EventScheduled",
        "location": _place(of),
    }  # fmt: skip
    return entity | ({"offers": _offer(of)} if variant else {})


def _day(of: Naming) -> str:
    return f"20{10 + of.bits % 15}-{1 + of.bits % 12:02}-{1 + of.bits % 28:02}"


def _job(of: Naming, variant: int) -> dict[str, Any]:
    entity: dict[str, Any] = {
        "@type": "JobPosting", "title": of.title, "datePosted": _day(of), "jobLocation": _place(of),
        "employmentType": ("FULL_TIME", "PART_TIME")[of.bits % 2],
        "hiringOrganization": {"@type": "Organization", "name": of.site},
    }  # fmt: skip
    return entity | ({"description": f"We are looking for: {of.title}"} if variant else {})


def _dataset(of: Naming, variant: int) -> dict[str, Any]:
    file = {"@type": "DataDownload", "encodingFormat": "text/csv", "contentUrl": f"{of.url}#csv"}
    entity = {
        "@type": "Dataset", "name": of.title, "description": f"All about {of.title}", "distribution": file,
        "license": "https://creativecommons.org/licenses/by/4.0/",
    }  # fmt: skip
    return entity | ({"creator": {"@type": "Organization", "name": of.site}} if variant else {})


def _article(of: Naming, variant: int) -> dict[str, Any]:
    entity: dict[str, Any] = {
        "@type": "Article", "headline": of.title, "datePublished": _day(of), "mainEntityOfPage": of.url,
        "inLanguage": "en", "author": {"@type": "Person", "name": _PEOPLE[of.bits % len(_PEOPLE)]},
        "articleSection": "News",
    }  # fmt: skip
    return entity | ({"publisher": {"@type": "Organization", "name": of.site}} if variant else {})


_MADE: Final[tuple[Callable[[Naming, int], dict[str, Any]], ...]] = (
    _recipe, _product, _event, _job, _dataset, _article,
)  # fmt: skip


def entity(content: int, variant: int, of: Naming) -> dict[str, Any]:
    """Return the entity that a page with a content describes, as JSON-LD without a context."""
    return _MADE[content](of, variant)


def organization(of: Naming) -> dict[str, Any]:
    """Return who publishes a site, as on every page of many."""
    url = f"http://{of.site}/"
    return {"@type": "Organization", "name": of.site, "url": url, "logo": f"{url}logo.png"}


def website(of: Naming) -> dict[str, Any]:
    """Return the site, as on front pages."""
    return {"@type": "WebSite", "name": of.site, "url": f"http://{of.site}/"}


def breadcrumbs(of: Naming) -> dict[str, Any]:
    """Return where on a site a page is."""
    steps = [("Home", f"http://{of.site}/"), (of.title, of.url)]
    items = [
        {"@type": "ListItem", "position": k, "name": name, "item": url} for k, (name, url) in enumerate(steps, start=1)
    ]
    return {"@type": "BreadcrumbList", "itemListElement": items}


def facts(entities: Sequence[dict[str, Any]]) -> Facts:
    """Return what there is to be read in entities."""
    types: list[str] = []
    leaves = 0

    def look(value: object) -> None:
        nonlocal leaves
        if isinstance(value, dict):
            types.append(value["@type"])
            for name, part in value.items():
                if not name.startswith("@"):
                    look(part)
        elif isinstance(value, list):
            for part in value:
                look(part)
        else:
            leaves += 1

    look(list(entities))
    return Facts(tuple(types), leaves)


def json_ld(entities: Sequence[dict[str, Any]], style: int, broken: int = -1) -> str:
    """Return script elements with entities.

    Parameters
    ----------
    entities : sequence of dict
        At least one.
    style : int
        Any number. What sites do that readers cope with: an element for each entity, a list, an ``@graph``, a comment
        before, types as lists or in full, ``http`` and ``https``, with and without a slash.
    broken : int
        A number below ``BREAKS``: no element is JSON, in that way. -1: all are.
    """
    context = ("https://schema.org", "http://schema.org/", "https://schema.org/", "http://www.schema.org")[style % 4]
    shape, full, before = style // 4 % 3, style // 12 % 8, style // 96 % 12
    named = [_typed(entity, context, full) for entity in entities]
    documents: list[Any] = [{"@context": context, **entity} for entity in named]
    if len(named) > 1 and shape:
        documents = [documents] if shape == 1 else [{"@context": context, "@graph": named}]
    texts = [json.dumps(document, ensure_ascii=False, indent=2 if style % 5 == 0 else None) for document in documents]
    if broken >= 0:
        texts = [_break(text, broken) for text in texts]
    comment = "// structured data\n" if before == 0 else ""
    return "".join(f'<script type="application/ld+json">{comment}{text}</script>\n' for text in texts)


def _typed(entity: dict[str, Any], context: str, full: int) -> dict[str, Any]:
    """Return an entity with its type as the site writes it."""
    name = entity["@type"]
    written = f"{context.rstrip('/')}/{name}" if full == 0 else [name] if full == 1 else name
    return {**entity, "@type": written}


def _break(text: str, how: int) -> str:
    """Return JSON as it is broken: cut off, a quote that is not escaped, a missing comma."""
    if how == 0:
        return text[: len(text) * 2 // 3].rstrip('" ,:{}[]')
    if how == 1:
        return text.replace('"@type"', '"size": "6" by 4"", "@type"', 1)
    return text.replace(",", " ", 1)


class Shown(NamedTuple):
    """A piece of a page as HTML, and what readers see of it."""

    html: str
    text: str


NOTHING_SHOWN: Final = Shown("", "")


def microdata(entities: Sequence[dict[str, Any]], style: int, *, broken: bool = False) -> Shown:
    """Return elements with entities; broken ones have properties and nothing that they are properties of."""
    scheme = ("https", "http")[style % 2]
    parts: list[str] = []
    seen: list[str] = []
    for entity in entities:
        _element(entity, "", scheme, broken, parts, seen)
    return Shown("\n".join(parts) + "\n", " ".join(seen))


def _element(
    entity: dict[str, Any], property: str, scheme: str, broken: bool, parts: list[str], seen: list[str]
) -> None:  # fmt: skip
    scope = "" if broken else f' itemscope itemtype="{scheme}://schema.org/{entity["@type"]}"'
    own = f' itemprop="{property}"' if property else ""
    parts.append(f"<div{own}{scope}>")
    for name, value in entity.items():
        if name.startswith("@"):
            continue
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, dict):
                _element(part, name, scheme, broken, parts, seen)
            elif str(part).startswith(("http://", "https://")):
                parts.append(f'<link itemprop="{name}" href="{escape(str(part))}">')
            elif name in ("name", "headline", "title", "price"):
                parts.append(f'<span itemprop="{name}">{escape(str(part))}</span>')
                seen.append(str(part))
            else:
                parts.append(f'<meta itemprop="{name}" content="{escape(str(part))}">')
    parts.append("</div>")
