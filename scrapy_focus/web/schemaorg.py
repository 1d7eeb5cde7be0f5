"""Normalizes names of types and properties: ``Recipe`` for ``http://www.schema.org/Recipe``, ``schema:Recipe`` and
``{"@vocab": "https://schema.org/"}`` with ``Recipe``.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

_LONGEST = 500  # characters of a name
_CONTEXTS = 10  # of a list that are read
_SCHEMA_ORG = re.compile(r"(?:https?:)?(?://)?(?:www\.)?schema\.org(?:/#?|#)", re.IGNORECASE)
_SEPARATED = ("/", "#", ":")


def plain_name(name: str) -> str:
    """Return a name of schema.org without its prefix; others unchanged, of 500 characters at most.

    Examples
    --------
    >>> [plain_name(name) for name in ("https://www.schema.org/Recipe", "schema:Recipe", "Recipe")]
    ['Recipe', 'Recipe', 'Recipe']
    >>> plain_name("http://purl.org/goodrelations/v1#Offering")
    'http://purl.org/goodrelations/v1#Offering'
    """
    name = name.strip()[:_LONGEST]
    if name.startswith("schema:"):
        return name[len("schema:") :]
    found = _SCHEMA_ORG.match(name)
    rest = name[found.end() :].rstrip("/") if found else ""
    return rest if rest and not any(separator in rest for separator in _SEPARATED) else name


class Vocabulary(NamedTuple):
    """The names defined by a JSON-LD ``@context`` itself: nothing is fetched.

    ``base`` is the prefix of names that are not among the ``terms``: ``""`` for schema.org, which is also the default.
    """

    base: str = ""
    terms: dict[str, Any] | None = None
    outer: Vocabulary | None = None  # with further terms

    def within(self, context: Any) -> Vocabulary:
        """Return the vocabulary in an object with this ``@context``."""
        given = context[:_CONTEXTS] if isinstance(context, list) else [context]
        vocabulary = self._named([name for name in given if isinstance(name, str) and name.strip()])
        for terms in given:
            if not isinstance(terms, dict):
                continue
            base = terms.get("@vocab", vocabulary.base)
            if not isinstance(base, str) or _is_schema_org(base.strip()[:_LONGEST]):
                base = ""
            vocabulary = Vocabulary(base.strip()[:_LONGEST], terms, vocabulary)
        return vocabulary

    def _named(self, names: list[str]) -> Vocabulary:
        """Return the vocabulary of contexts that are named by their URLs."""
        if not names:
            return self
        if any("schema.org" in name.lower() for name in names):
            return self._replace(base="")
        return self._replace(base=_ending(names[-1].strip()[:_LONGEST]))

    def name(self, name: str) -> str:
        """Return the full name: of schema.org as it is, others with their vocabulary.

        Examples
        --------
        >>> activity = Vocabulary().within("https://www.w3.org/ns/activitystreams")
        >>> activity.name("Event"), activity.name("schema:Event")
        ('https://www.w3.org/ns/activitystreams#Event', 'Event')
        """
        name = name.strip()[:_LONGEST]
        meant = self._term(name)
        if meant is None:
            prefix, colon, rest = name.partition(":")
            if colon and not rest.startswith("//") and (before := self._term(prefix)) is not None:
                meant = rest if _is_schema_org(before) else before + rest
            elif colon:
                meant = name
            else:
                meant = self.base + name
        return plain_name(meant)

    def _term(self, name: str) -> str | None:
        """Return the IRI of a term, ``None`` for an unknown one."""
        vocabulary: Vocabulary | None = self
        while vocabulary is not None:
            meant = (vocabulary.terms or {}).get(name)
            if isinstance(meant, dict):
                meant = meant.get("@id")
            if isinstance(meant, str) and meant and not meant.startswith("@"):
                return meant.strip()[:_LONGEST]
            vocabulary = vocabulary.outer
        return None


def _is_schema_org(iri: str) -> bool:
    """Whether an address is that of schema.org, with or without a slash."""
    return _SCHEMA_ORG.fullmatch(iri.rstrip("/#") + "/") is not None


def _ending(iri: str) -> str:
    return iri if iri.endswith(_SEPARATED) else f"{iri}#"
