"""How each of the profile sites looks: its sections, its markup and its addresses, all drawn from its name (internal).

A learner that reads tag paths, addresses and anchors should not find the same class names and the same folders on
eighteen sites. So these are put together from word lists; another seed or another scale does not change them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of section."""

    role: str  # rich: most pages with files are in such sections; mixed: some; poor: next to none
    extra: float  # files after the first on a page with files, relative to the other kinds
    direct: bool = False  # files stand on the listing pages, and there are no items
    types: tuple[str, ...]  # class words of its items, one of which a site uses
    words: tuple[str, str, str]  # names of the section, by language


KINDS: Final = {
    "catalogue": Kind(
        role="rich",
        extra=13.0,
        types=("dataset", "table", "package", "series"),
        words=(
            "data statistics tables databases indicators",
            "donnees statistiques tableaux bases indicateurs",
            "daten statistik tabellen datenbanken indikatoren",
        ),
    ),
    "library": Kind(
        role="rich",
        extra=9.0,
        direct=True,
        types=("document",),
        words=(
            "documents reports resources library records",
            "documents rapports ressources bibliotheque dossiers",
            "dokumente berichte ressourcen bibliothek akten",
        ),
    ),
    "archive": Kind(
        role="rich",
        extra=17.0,
        types=("issue", "bulletin", "volume", "edition"),
        words=(
            "archives bulletins past-issues journals collections",
            "archives bulletins numeros revues collections",
            "archiv hefte ausgaben zeitschriften sammlungen",
        ),
    ),
    "publications": Kind(
        role="rich",
        extra=0.3,
        types=("publication", "paper", "study", "report"),
        words=(
            "publications studies papers surveys briefs",
            "publications etudes travaux enquetes notes",
            "publikationen studien papiere umfragen kurzberichte",
        ),
    ),
    "topics": Kind(
        role="mixed",
        extra=2.0,
        types=("topic", "subject", "theme", "overview"),
        words=(
            "topics themes subjects policies sectors",
            "themes sujets matieres politiques secteurs",
            "themen gebiete faecher politik sektoren",
        ),
    ),
    "news": Kind(
        role="poor",
        extra=0.05,
        types=("article", "story", "post", "release"),
        words=(
            "news press blog events speeches announcements",
            "actualites presse blog agenda discours annonces",
            "nachrichten presse blog termine reden mitteilungen",
        ),
    ),
    "pages": Kind(
        role="poor",
        extra=0.05,
        types=("page", "entry", "profile", "guide"),
        words=(
            "services regions careers people guides projects",
            "services regions metiers equipes guides projets",
            "dienste regionen karriere menschen ratgeber projekte",
        ),
    ),
    "front": Kind(
        role="poor",
        extra=0.05,
        types=("feature", "spotlight", "highlight"),
        words=("highlights", "a-la-une", "im-blick"),
    ),
}
#: Sections in the order in which a site gets them: as many as its size allows.
_ORDER: Final = (
    ("catalogue", "publications", "news", "pages", "topics", "library", "news", "pages", "news", "pages"),
    ("publications", "archive", "news", "topics", "pages", "catalogue", "news", "pages", "pages", "news"),
    ("library", "news", "publications", "pages", "catalogue", "topics", "news", "news", "pages", "news"),
    ("catalogue", "news", "archive", "topics", "publications", "pages", "pages", "news", "news", "pages"),
)

_CLASSES: Final = {
    "wrap": "wrapper container page layout site-inner",
    "header": "header masthead banner topbar site-head",
    "menu": "menu nav navigation mainnav megamenu",
    "entry": "menu-item nav-item leaf level1 entry",
    "languages": "languages lang-switch i18n translations",
    "crumbs": "breadcrumb trail path you-are-here fil-ariane",
    "main": "main content body region-content article-zone",
    "branches": "facets categories subthemes refine rubrics",
    "list": "list results view listing feed grid",
    "row": "row item teaser card result tile",
    "title": "title heading headline name caption",
    "summary": "summary intro lead abstract chapo",
    "more": "more readmore cta next-step link",
    "text": "text prose richtext field-body copy",
    "files": "downloads attachments resources documents files",
    "file": "download attachment resource document file",
    "related": "related similar seealso linked same-topic",
    "aside": "aside sidebar rail complement right",
    "pager": "pager pagination paging pages",
    "footer": "footer bottom site-foot contentinfo",
    "media": "media gallery figure lightbox visual",
}
_EXTRAS: Final = ("", "", " clearfix", " mb-3 p-2", " u-flex", " js-block")

_LISTS: Final = (  # around the rows, around one row; {} takes the class
    ('<ul class="{}">', "li", "</ul>"),
    ('<div class="{}">', "div", "</div>"),
    ('<section class="{}">', "article", "</section>"),
    ('<table class="{}"><tbody>', "tr", "</tbody></table>"),
    ('<ol class="{}" start="1">', "li", "</ol>"),
)
_FORMS: Final = (  # of downloads, one of which each page uses
    ("plain",) * 9 + ("redirect",),
    ("plain",) * 5 + ("bare",) * 3 + ("redirect",) * 2,
    ("bare",) * 6 + ("plain",) * 3 + ("redirect",),
    ("plain",) * 6 + ("upper",) * 2 + ("query",) * 2,
    ("plain",) * 4 + ("query",) * 4 + ("redirect",) * 2,
    ("plain",) * 10,
)
EXTENSIONS: Final = (
    ("pdf",) * 14 + ("xlsx",) * 3 + ("docx", "zip", "ods"),
    ("csv",) * 6 + ("xlsx",) * 6 + ("pdf",) * 5 + ("zip",) * 2 + ("json",),
    ("pdf",) * 8 + ("xls",) * 6 + ("xlsx",) * 3 + ("csv", "zip", "xml"),
    ("pdf",) * 11 + ("xls",) * 4 + ("doc",) * 2 + ("csv",) * 2 + ("pptx",),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionStyle:
    """One entry of the menu, in all editions."""

    kind: str
    word: int  # which of the names of its kind
    type: str  # class word of its items
    per_page: int  # items of a full listing page
    stride: int  # a pager leads on by 1 to `stride` pages
    fresh_share: float  # of its listing pages that begin a category; the smaller, the longer the pagination
    address: int  # of its items, see `Plan.item_path`
    table: tuple[str, str, str]  # of its listings


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """What tells one site from another."""

    name: str
    sections: tuple[SectionStyle, ...]  # by importance; the menu is sorted by `menu_key`
    front: SectionStyle
    css: dict[str, str] = field(repr=False)  # class attribute by role
    type_prefix: str  # of the class that names the type of an item
    files_table: tuple[str, str, str]
    ids: bool  # teasers have ids
    stripes: bool  # rows are odd or even, and numbered
    twice: bool  # teasers have a second link to read more
    permalinks: bool  # some teasers of poor sections have a link that redirects
    branch: str  # folder of the categories of a section
    pager: str  # what a listing adds to the address of its first page
    by_offset: bool  # pagers count items
    suffix: str  # of addresses of items
    prefix: str  # of the first edition; the others have their language
    branching: int  # categories below one category at most
    folder: str  # of files
    bare: str
    redirect: str
    query: str
    media: str
    forms: tuple[str, ...]
    extensions: tuple[str, ...]

    def menu_key(self, n: int) -> int:
        """Return what to sort section `n` by in the menu."""
        return draw(f"{self.name}/menu/{n}", 1 << 30)


def draw(key: str, n: int) -> int:
    """Return a whole number in [0, n) that depends on `key` only."""
    return int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "big") % n


def style_of(name: str) -> Style:
    """Return the style of the site called `name`, always the same."""

    def pick(key: str, options: Sequence[T]) -> T:
        return options[draw(f"{name}/{key}", len(options))]

    def section(kind: str, n: int, word: int) -> SectionStyle:
        return SectionStyle(
            kind=kind,
            word=word,
            type=pick(f"type/{kind}", KINDS[kind].types),
            per_page=pick(f"per_page/{n}", (10, 12, 15, 20)),
            stride=pick(f"stride/{n}", (1, 2, 2, 3)),
            fresh_share=pick(f"fresh/{n}", (0.1, 0.25, 0.5)),
            address=draw(f"{name}/address/{n}", 5),
            table=pick(f"list/{kind}", _LISTS),
        )

    used: dict[str, int] = {}
    sections: list[SectionStyle] = []
    for n, kind in enumerate(pick("order", _ORDER)):
        n_words = len(KINDS[kind].words[0].split())
        first = used.setdefault(kind, draw(f"{name}/word/{kind}", n_words))
        sections.append(section(kind, n, (first + sum(s.kind == kind for s in sections)) % n_words))
    prefix = pick("prefix", ("", "", "c-", "m-", f"{name[:3]}-", "block-"))
    pager = pick("pager", ("?page={}", "?start={}", "/page/{}", "?p={}&sort=date"))
    return Style(
        name=name,
        sections=tuple(sections),
        front=section("front", 99, 0),
        css={
            role: prefix + pick(f"class/{role}", words.split()) + pick(f"extra/{role}", _EXTRAS)
            for role, words in _CLASSES.items()
        },
        type_prefix=pick("type", ("node-", "node--type-", "type-", "is-", prefix + "kind_")),
        files_table=pick("files", _LISTS),
        ids=draw(f"{name}/ids", 3) == 0,
        stripes=draw(f"{name}/stripes", 2) == 0,
        twice=draw(f"{name}/twice", 2) == 0,
        permalinks=draw(f"{name}/permalinks", 2) == 0,
        branch=pick("branch", ("category", "theme", "browse", "collection", "rubrique", "t")),
        pager=pager,
        by_offset="start" in pager,
        suffix=pick("suffix", ("", "", ".html", ".htm", ".aspx")),
        prefix=pick("edition", ("", "", "/web", "/portal", "/site")),
        branching=pick("branching", (40, 60, 80)),
        folder=pick("folder", ("/sites/default/files", "/content/dam", "/wp-content/uploads", "/fileadmin", "/docs")),
        bare=pick("bare", ("/download", "/attachment", "/file", "/getmedia")),
        redirect=pick("redirect", ("/go", "/dl", "/r", "/node-file")),
        query=pick("query", ("/getfile?id=", "/viewer?document=", "/export?table=", "/fetch?key=")),
        media=pick("media", ("/media", "/images", "/assets/pictures", "/uploads/img")),
        forms=pick("forms", _FORMS),
        extensions=pick("extensions", EXTENSIONS),
    )
