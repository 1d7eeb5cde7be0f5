"""The pages of a profile site, one method per kind of page (internal).

No link to the side leads more than one click deeper than the page that it is on: the plan counts on that.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from profiles.plan import STATIC, Section
from profiles.style import draw
from scrapy_focus.lab.sites.portal.words import LANGUAGE_NAMES, LANGUAGES, N_NOUNS, NOUNS, SENTENCES, TERMS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from profiles.paths import Paths

_N_SENTENCES: Final = 256  # per edition
_RELATED: Final = 5  # links to the side
_TEXT, _TYPE, _SHOWN, _BESIDE, _ELSEWHERE = range(16, 21)  # what is drawn, see `Plan.draw`


class Pages:
    """Renders pages; every method is O(links on the page) and trusts its arguments.

    Parameters
    ----------
    paths : Paths
        Where everything is. What the pages of an edition share is rendered once, here.
    """

    def __init__(self, paths: Paths) -> None:
        self.paths = paths
        self.plan = paths.plan
        self.style = paths.style
        self._sections = [[s for s in self.plan.sections if s.edition == e] for e in range(len(self.plan.prefixes))]
        self._sentences = [self._pool(e) for e in range(len(self.plan.prefixes))]
        self._heads = [self._head(e) for e in range(len(self.plan.prefixes))]
        self._footers = [self._footer(e) for e in range(len(self.plan.prefixes))]

    def listing(self, section: Section, listing: int) -> str:
        """Return a listing page: categories below, items or files, the pager, and some links to the side."""
        tree, paths = section.tree, self.paths
        category = tree.category_of(listing)
        pages = tree.pages_of(category)
        leaf = section.first_leaf + listing
        terms = TERMS[self.plan.languages[section.edition]]
        title = self._section_title(section)
        if category:
            title = f"{title}: {paths.category_title(section, category)}"
        if section.direct:
            content = self._text(section.edition, leaf, 3) + self._files(section, leaf) + self._others(leaf)
        else:
            content = self._teasers(section, section.leaves_of(listing))
        below = "" if listing != pages[0] else self._below(section, category)
        key = (section.number << 24) + listing
        content = (
            below
            + content
            + self._pager(section, category, listing - pages[0], len(pages))
            + self._aside(section, int(tree.depths[listing]), key, terms["latest"])
        )
        kind = "front" if section.style.kind == "front" else f"list-{section.style.type}"
        trail = self._trail(section, category)
        return self._page(section.edition, kind, title, content, trail if category else trail[:-1])

    def item(self, section: Section, i: int) -> str:
        """Return the page of an item."""
        plan, leaf = self.plan, section.first_leaf + i
        depth = section.depth_of(i)
        terms = TERMS[plan.languages[section.edition]]
        bits = plan.draw(_SHOWN, leaf)
        content = (
            f'<article class="{self._type(section, leaf)} full">{self._text(section.edition, leaf, 3 + bits % 6)}'
            f"{self._files(section, leaf)}{self._others(leaf)}</article>{self._related(section, i, terms['related'])}"
        )
        if bits >> 61 < 3:
            content += self._aside(section, depth, leaf, terms["see"])
        trail = self._trail(section, section.tree.category_of(section.listing_of(i)))
        kind = f"full-{section.style.type}"
        return self._page(section.edition, kind, self.paths.title(section, i), content, trail)

    def static(self, e: int, k: int) -> str:
        """Return a page of plain text."""
        terms = TERMS[self.plan.languages[e]]
        return self._page(e, STATIC[k], terms[STATIC[k]], self._text(e, (1 << 36) + k, 8))

    def missing(self) -> str:
        """Return the body of a 404."""
        text = TERMS[self.plan.languages[0]]["missing"]
        return self._page(0, "error", text, f'<p class="{self.style.css["summary"]}">{text}</p>')

    # --- the parts of a page

    def _page(self, e: int, kind: str, title: str, content: str, trail: Iterable[tuple[str, str]] = ()) -> str:
        css = self.style.css
        crumbs = "".join(f'<li><a href="{href}">{text}</a></li>' for href, text in trail)
        return (
            f'{self._heads[e][0]}<title>{title}</title></head>\n<body class="page-{kind}">\n{self._heads[e][1]}'
            f'<div class="{css["wrap"]}"><nav class="{css["crumbs"]}"><ol>{crumbs}<li>{title}</li></ol></nav>\n'
            f'<main class="{css["main"]}"><h1>{title}</h1>\n{content}\n</main></div>\n{self._footers[e]}'
        )

    def _teasers(self, section: Section, items: range) -> str:
        paths, css, style = self.paths, self.style.css, self.style
        opening, row, closing = section.style.table
        cell, end = ("<td>", "</td>") if row == "tr" else ("", "")
        more = TERMS[self.plan.languages[section.edition]]["more"]
        sentences = self._sentences[section.edition]
        rows = []
        for n, i in enumerate(items):
            href, leaf = escape(paths.item_path(section, i)), section.first_leaf + i
            stripe = f" {'even' if n % 2 else 'odd'} row-{n + 1}" if style.stripes else ""
            name = f' id="{section.style.type}-{leaf}"' if style.ids else ""
            links = f'<a class="{css["more"]}" href="{href}">{more}</a>' if style.twice else ""
            if short := paths.permalink(section, i):
                links += f' <a rel="bookmark" href="{short}">#{leaf}</a>'
            rows.append(
                f'<{row} class="{css["row"]} {self._type(section, leaf)}{stripe}"{name}>{cell}'
                f'<h3 class="{css["title"]}"><a href="{href}">{paths.title(section, i)}</a></h3>'
                f'<p class="{css["summary"]}">{sentences[self.plan.draw(_TEXT, leaf) % _N_SENTENCES]}</p>'
                f"{links}{end}</{row}>\n"
            )
        return opening.format(f"{css['list']} {_base(css['list'])}-{section.style.type}") + "".join(rows) + closing

    def _type(self, section: Section, leaf: int) -> str:
        """Return the class that names the type of an item: most of those with files are of the type of the section."""
        own = 20 if self.plan.files[leaf] else 13
        name = section.style.type if self.plan.draw(_TYPE, leaf) % 21 < own else "basic"
        return f"{self.style.type_prefix}{name}"

    def _files(self, section: Section, leaf: int) -> str:
        files = self.paths.files(leaf)
        if not files:
            return ""
        css = self.style.css
        opening, row, closing = self.style.files_table
        cell, middle, end = ("<td>", "</td><td>", "</td>") if row == "tr" else ("", " ", "")
        label = TERMS[self.plan.languages[section.edition]]["download"]
        return (
            opening.format(css["files"])
            + "".join(
                f'<{row} class="{css["file"]}">{cell}<span>{file.title}</span>{middle}<a class="{_base(css["file"])}-link '
                f'ext-{file.extension}" href="{file.link}">{label} ({file.extension.upper()}, {file.size // 1000} kB)'
                f"</a>{end}</{row}>\n"
                for file in files
            )
            + closing
        )

    def _others(self, leaf: int) -> str:
        links = []
        for number in self.plan.others_of(leaf):
            path = self.paths.other_path(number)
            text = path.rpartition("/")[2].partition(".")[0].replace("-", " ")
            links.append(f'<p class="{self.style.css["media"]}"><a href="{path}">{text}</a></p>')
        return "".join(links)

    def _related(self, section: Section, i: int, title: str) -> str:
        """Return links to items of the same category that are not deeper than the next step of the pager."""
        tree, listing = section.tree, section.listing_of(i)
        pages = tree.pages_of(tree.category_of(listing))
        last = min(listing + section.style.stride, pages[-1])
        low, high = section.leaves_of(pages[0])[0], section.leaves_of(last)[-1] + 1
        key = (section.first_leaf + i) << 3
        chosen = {low + self.plan.draw(_BESIDE, key + j) % (high - low) for j in range(_RELATED)} - {i}
        return self._links("related", title, ((section, j) for j in sorted(chosen)))

    def _aside(self, section: Section, depth: int, key: int, title: str) -> str:
        """Return links to leaves of other sections, at most one click deeper."""
        others = self._sections[section.edition]
        chosen = []
        for j in range(3):
            bits = self.plan.draw(_ELSEWHERE, (key << 2) + j)
            other = others[bits % len(others)]
            leaf = self.plan.near(other, depth + 1, bits >> 8)
            if leaf is not None and other is not section:
                chosen.append((other, leaf))
        return self._links("aside", title, chosen)

    def _links(self, role: str, title: str, leaves: Iterable[tuple[Section, int]]) -> str:
        paths, css = self.paths, self.style.css[role]
        rows = "".join(f'<li><a href="{escape(paths.leaf_path(s, i))}">{paths.title(s, i)}</a></li>' for s, i in leaves)
        return f'<div class="{css}"><h2>{title}</h2><ul>{rows}</ul></div>\n' if rows else ""

    def _below(self, section: Section, category: int) -> str:
        paths = self.paths
        rows = "".join(
            f'<li><a href="{paths.category_path(section, c)}">{paths.category_title(section, c)}</a></li>'
            for c in section.tree.below(category)
        )
        return f'<div class="{self.style.css["branches"]}"><ul>{rows}</ul></div>\n' if rows else ""

    def _pager(self, section: Section, category: int, k: int, n: int) -> str:
        """Return links to the first page, to those just before, and to those up to one stride after page `k` of `n`."""
        if n < 2:
            return ""
        stride = section.style.stride
        shown = sorted({0, *range(max(0, k - stride), min(n, k + stride + 1))} - {k})
        links = "".join(
            f'<li><a href="{escape(self.paths.page_path(section, category, j))}">{j + 1}</a></li>' for j in shown
        )
        following = ""
        if k + 1 < n:
            href = escape(self.paths.page_path(section, category, k + 1))
            text = TERMS[self.plan.languages[section.edition]]["next"]
            following = f'<a class="{_base(self.style.css["pager"])}-next" rel="next" href="{href}">{text}</a>'
        return f'<nav class="{self.style.css["pager"]}"><ul>{links}</ul>{following}</nav>\n'

    def _trail(self, section: Section, category: int) -> list[tuple[str, str]]:
        """Return the addresses and the titles from the home page down to a category."""
        trail: list[tuple[str, str]] = []
        while category > 0:
            path = self.paths.category_path(section, category)
            trail.append((path, self.paths.category_title(section, category)))
            category = int(section.tree.parents[category])
        terms = TERMS[self.plan.languages[section.edition]]
        if section.style.kind != "front":
            trail.append((section.root, self._section_title(section)))
        trail.append((self._sections[section.edition][0].root, terms["home"]))
        return trail[::-1]

    def _text(self, e: int, key: int, n_paragraphs: int) -> str:
        """Return paragraphs of four sentences; the first begins with the sentence that a teaser shows."""
        sentences, bits = self._sentences[e], self.plan.draw(_TEXT, key)
        parts = []
        for p in range(n_paragraphs):
            at = bits + p * 0x5F356495
            chosen = (sentences[(at >> shift) % _N_SENTENCES] for shift in (0, 9, 18, 27))
            parts.append(f"<p>{' '.join(chosen)}</p>\n")
        return f'<div class="{self.style.css["text"]}">{"".join(parts)}</div>'

    def _section_title(self, section: Section) -> str:
        if section.style.kind == "front":
            return TERMS[self.plan.languages[section.edition]]["home"]
        return section.folder.rpartition("/")[2].replace("-", " ").capitalize()

    # --- what the pages of an edition share

    def _pool(self, e: int) -> Sequence[str]:
        language = self.plan.languages[e]
        nouns, pool = NOUNS[language], []
        for n in range(_N_SENTENCES):
            bits = draw(f"{self.style.name}/{e}/{n}", 1 << 60)
            template = SENTENCES[language][bits % len(SENTENCES[language])]
            a, b = nouns[(bits >> 8) % N_NOUNS], nouns[(bits >> 16) % N_NOUNS]
            pool.append(template.format(a=a, b=b, n=2 + (bits >> 24) % 40))
        return pool

    def _head(self, e: int) -> tuple[str, str]:
        css, language = self.style.css, LANGUAGES[self.plan.languages[e]]
        home, *sections = self._sections[e]
        menu = "".join(
            f'<li class="{css["entry"]}"><a href="{s.root}">{self._section_title(s)}</a></li>'
            for s in sorted(sections, key=lambda s: self.style.menu_key(s.number - home.number))
        )
        switch = "".join(
            f'<li><a hreflang="{LANGUAGES[other]}" href="{self._sections[o][0].root}">{LANGUAGE_NAMES[other]}</a></li>'
            for o, other in enumerate(self.plan.languages)
            if o != e
        )
        switch = switch and f'<ul class="{css["languages"]}">{switch}</ul>'
        return (
            f'<!DOCTYPE html>\n<html lang="{language}"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="robots" content="index, follow">'
            f'<meta property="og:site_name" content="{self.style.name}"><meta property="og:type" content="website">'
            f'<link rel="stylesheet" href="/static/{self.style.name}.css"><link rel="icon" href="/static/favicon.ico">'
            f'<script src="/static/{self.style.name}.js" defer></script>',
            f'<header class="{css["header"]}"><a rel="home" href="{home.root}">{self.style.name}</a>{switch}'
            f'<nav class="{css["menu"]}"><ul>{menu}</ul></nav></header>\n',
        )

    def _footer(self, e: int) -> str:
        terms = TERMS[self.plan.languages[e]]
        rows = "".join(
            f'<li><a href="{self.paths.static_path(e, k)}">{terms[name]}</a></li>' for k, name in enumerate(STATIC)
        )
        return (
            f'<footer class="{self.style.css["footer"]}"><ul>{rows}<li><a href="https://social.example.org/'
            f'{self.style.name}">Social</a></li><li><a href="mailto:info@{self.style.name}.example.org">E-mail</a></li>'
            "</ul></footer></body></html>\n"
        )


def _base(names: str) -> str:
    """Return the first of some class names."""
    return names.partition(" ")[0]
