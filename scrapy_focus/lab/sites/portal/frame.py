"""What all pages of the synthetic portal share: the frame around the content, pagers and teasers (internal)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_focus.lab.sites.portal.plan import SECTIONS, STATIC, Plan
from scrapy_focus.lab.sites.portal.words import LANGUAGE_NAMES, LANGUAGES, PREFIXES, TERMS

if TYPE_CHECKING:
    from collections.abc import Sequence

_MENU = ("news", "indicators", "topics", "data", "publications", "archive", "glossary", "calendar", "about")


class Frame:
    """Wraps content into a page of a content management system.

    Parameters
    ----------
    plan : Plan
        Where the pages are. The header and the footer of each language are rendered once, here.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._heads = [self._head(e) for e in range(len(LANGUAGES))]
        self._menus = [
            {active: self._menu(e, active) for active in ("", *_MENU, *STATIC)} for e in range(len(LANGUAGES))
        ]
        self._footers = [self._footer(e) for e in range(len(LANGUAGES))]

    def page(
        self,
        e: int,
        *,
        kind: str,
        title: str,
        content: str,
        section: str = "",
        crumbs: Sequence[tuple[str, str]] = (),
        elsewhere: Sequence[str] | None = None,
        number: int = 0,
    ) -> str:
        """Return the HTML of a page.

        Parameters
        ----------
        e : int
            Edition: the index of the language.
        kind, number
            Classes of the body, as ``page-<kind>`` and ``page-node-<number>``.
        title, content : str
            Text of the title; HTML of the main region.
        section : str
            Entry of the menu to mark as active.
        crumbs : sequence of (address, text)
            Between the home page and the title.
        elsewhere : sequence of str, optional
            Addresses of the page in every language, by edition; the home pages if missing.
        """
        links = elsewhere or [self.home(other) for other in range(len(LANGUAGES))]
        switch = "".join(
            f'<li class="lang lang-{LANGUAGES[o]}{" active" if o == e else ""}">'
            f'<a class="language-link" hreflang="{LANGUAGES[o]}" href="{links[o]}">{LANGUAGE_NAMES[o]}</a></li>'
            for o in range(len(LANGUAGES))
            if o != e
        )
        trail = "".join(
            f'<li class="breadcrumb-item"><a href="{href}">{text}</a></li>'
            for href, text in ((self.home(e), TERMS[e]["home"]), *crumbs)
        )
        return (
            f"{self._heads[e]}<title>{title} | {TERMS[e]['data']}</title></head>\n"
            f'<body class="html not-front page-{kind} page-node-{number} i18n-{LANGUAGES[e]}">\n'
            f'{self._menus[e].get(section, self._menus[e][""])}<div id="block-language" class="block block-locale">'
            f'<ul class="language-switcher">{switch}</ul></div></header>\n'
            '<div id="main-wrapper" class="layout-container"><nav class="breadcrumb" aria-label="breadcrumb">'
            f'<ol>{trail}<li class="breadcrumb-item active">{title}</li></ol></nav>\n'
            f'<main id="content" class="region region-content"><h1 class="page-title">{title}</h1>\n{content}\n'
            f"</main></div>\n{self._footers[e]}"
        )

    def home(self, e: int) -> str:
        """Return the address of the home page of an edition."""
        return PREFIXES[e] or "/"

    def pager(self, e: int, k: int, n: int) -> str:
        """Return links to the first page, the last one, those around page `k` of `n`, and the tenth from there."""
        if n < 2:
            return ""
        items = []
        if k > 0:
            items += [("pager-first", 0, TERMS[e]["first"]), ("pager-previous", k - 1, TERMS[e]["previous"])]
        items += [("pager-item", j, str(j + 1)) for j in range(max(0, k - 2), min(n, k + 3)) if j != k]
        if k + 10 < n:
            items.append(("pager-item pager-jump", k + 10, str(k + 11)))
        if k < n - 1:
            items += [("pager-next", k + 1, TERMS[e]["next"]), ("pager-last", n - 1, TERMS[e]["last"])]
        links = "".join(
            f'<li class="{c}"><a class="page-link" href="?page={j}">{text}</a></li>' for c, j, text in items
        )
        return f'<nav class="pager" role="navigation"><ul class="pager__items js-pager__items">{links}</ul></nav>'

    def teasers(self, e: int, section: str, items: Sequence[int], *, permalinks: bool = False) -> str:
        """Return one teaser per item; with `permalinks`, one in eight has a link that redirects."""
        plan, terms, rows = self.plan, TERMS[e], []
        more = terms["see"] if section == "data" else terms["more"]
        for row, i in enumerate(items):
            href, title = plan.path(e, section, i), plan.title(e, f"{section}/{i}")
            link = f'<a class="readmore" href="{href}">{more}</a>'
            if permalinks and plan.draw(8, f"permalink/{section}/{i}") == 0:
                link += (
                    f' <a class="permalink" rel="bookmark" href="{plan.node(e, section, i)}">{terms["permalink"]}</a>'
                )
            rows.append(
                f'<li class="views-row views-row-{row + 1} {"even" if row % 2 else "odd"}">'
                f'<div class="node node-teaser node-{section}" id="teaser-{section}-{i}">'
                f'<h3 class="node-title"><a href="{href}">{title}</a></h3>'
                f'<p class="summary">{plan.sentence(e, f"{section}/{i}/0")}</p>'
                f'<div class="links">{link}</div></div></li>'
            )
        return f'<div class="view view-{section}"><ul class="view-content">\n' + "\n".join(rows) + "\n</ul></div>"

    def links(self, e: int, section: str, items: Sequence[int], name: str, title: str) -> str:
        """Return a block with a bare list of links to items."""
        rows = "".join(
            f'<li class="{"even" if row % 2 else "odd"}"><a href="{self.plan.path(e, section, i)}">'
            f"{self.plan.title(e, f'{section}/{i}')}</a></li>"
            for row, i in enumerate(items)
        )
        return (
            f'<section class="block block-{name}"><h2 class="block-title">{title}</h2>'
            f'<ul class="{name}-list">{rows}</ul></section>'
        )

    def text(self, e: int, key: str, n_paragraphs: int) -> str:
        """Return paragraphs of four sentences; the first begins with the sentence that the teaser shows."""
        paragraphs = (
            " ".join(self.plan.sentence(e, f"{key}/{4 * p + j}") for j in range(4)) for p in range(n_paragraphs)
        )
        return '<div class="field field-name-body">' + "".join(f"<p>{text}</p>\n" for text in paragraphs) + "</div>"

    def tags(self, e: int, tags: Sequence[int]) -> str:
        """Return links to keywords."""
        nouns = [(self.plan.tag_name(e, tag), self.plan.tag_path(e, tag)) for tag in tags]
        links = "".join(f'<a class="tag" rel="tag" href="{path}">{noun}</a> ' for noun, path in nouns)
        return f'<div class="field-name-tags"><span class="label">{TERMS[e]["tags"]}</span> {links}</div>'

    def _head(self, e: int) -> str:
        return (
            f'<!DOCTYPE html>\n<html lang="{LANGUAGES[e]}" dir="ltr"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            '<link rel="stylesheet" href="/assets/site.css"><link rel="shortcut icon" href="/assets/favicon.ico">'
            '<script src="/assets/site.js" defer></script>'
        )

    def _menu(self, e: int, active: str) -> str:
        entries = [name for name in _MENU if name != "archive" or self.plan.archive_years[e]]
        items = "".join(
            f'<li class="menu-item{" active-trail" if name == active else ""}"><a class="menu-link'
            f'{" is-active" if name == active else ""}" href="{PREFIXES[e]}/{name}">{TERMS[e][name]}</a></li>'
            for name in entries
        )
        return (
            '<a class="visually-hidden skip-link" href="#content">Skip</a><header id="header" class="site-header" '
            f'role="banner"><div class="branding"><a class="site-logo" rel="home" href="{self.home(e)}">'
            '<img alt="" src="/assets/logo.png"></a></div>'
            f'<nav id="block-main-menu" class="main-nav" role="navigation"><ul class="menu clearfix">{items}</ul></nav>'
        )

    def _footer(self, e: int) -> str:
        own = "".join(f'<li class="leaf"><a href="{PREFIXES[e]}/{name}">{TERMS[e][name]}</a></li>' for name in STATIC)
        listings = "".join(
            f'<li class="leaf"><a href="{PREFIXES[e]}/{name}">{TERMS[e][name]}</a></li>' for name in SECTIONS
        )
        return (
            '<footer id="footer" class="site-footer" role="contentinfo"><div class="region region-footer">'
            f'<ul class="menu footer-menu">{own}<li class="leaf"><a href="{PREFIXES[e]}/private/">'
            f"{TERMS[e]['private']}</a></li>"
            f'<li class="leaf"><a href="{PREFIXES[e]}/index.html">{TERMS[e]["home"]}</a></li></ul>'
            f'<ul class="menu sitemap-menu">{listings}</ul><ul class="social">'
            '<li><a class="external" href="https://social.example.org/statistics">Social</a></li>'
            '<li><a class="external" href="mailto:info@statistics.example.org">E-mail</a></li>'
            '<li><a class="top" href="#header">Top</a></li></ul></div></footer></body></html>\n'
        )
