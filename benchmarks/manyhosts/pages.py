"""Writes the pages of a made-up web: text, links with the places where they stand, and the same as HTML.

A page is a list of rows, and a row is an element with text, perhaps a link, and text. Text, links and HTML are all made
of the rows, so that they agree. All random numbers of a page come from one array, which depends on seed, host and number.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from manyhosts import plan as plans
from manyhosts import words
from manyhosts.entities import NOTHING_SHOWN
from manyhosts.plan import SECTIONS, STEPS, Plan, Traits, scramble, unit
from scrapy_focus.core.types import Link

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from manyhosts.entities import Shown
    from manyhosts.plan import Ints

NAV, TEXT, LIST, ASIDE, FOOT = range(5)  # blocks of a page
_SHOWN: Final = 200  # characters of an anchor or context
_CHOICES, _LINKS = 512, 80  # numbers drawn for a page: all but those of its words, of these for its anchors
MOST_WORDS: Final = 420  # numbers drawn for the words of a page

# What lists an external link chooses from, by where it stands: chances of same topic, neighbouring topic, portal section
# of the topic, directory of the topic, junk with the words of the topic, any topical host, any portal, trap, junk.
_CHANCES: Final = np.cumsum(
    [
        [0.26, 0.13, 0.12, 0.03, 0.05, 0.08, 0.12, 0.02],  # page about a topic
        [0.12, 0.08, 0.06, 0.02, 0.04, 0.14, 0.18, 0.03],  # other page of a host with topics
        [0.00, 0.00, 0.00, 0.00, 0.00, 0.29, 0.24, 0.03],  # anything else
        [0.40, 0.16, 0.12, 0.02, 0.06, 0.08, 0.07, 0.01],  # directory
        [0.03, 0.02, 0.02, 0.01, 0.20, 0.08, 0.08, 0.03],  # junk with the words of a topic
    ],
    axis=1,
)
_BY_TOPIC: Final = np.array([plans.LIST_TOPICAL, plans.LIST_TOPICAL, plans.LIST_MIXED, plans.LIST_HUB, plans.LIST_LURE])
_FIXED: Final = np.array([plans.LIST_ANY_TOPICAL, plans.LIST_ANY_MIXED, plans.LIST_TRAP, plans.LIST_JUNK])

# (path from the body to the element around a link, for each block), one row for each template
_TEMPLATES: Final = (
    ("nav.menu/ul/li", "main/article.post/p", "main/div.entries/ul/li", "aside.related/ul/li", "footer/p"),
    (
        "div#menu/ul.nav/li.item",
        "div#content/p",
        "div#content/ul.list/li",
        "div#sidebar/ul.links/li",
        "div#footer/span",
    ),
    ("header/nav/a.group/span", "div.main/div.text/p", "div.main/div.teaser", "div.right/div.box", "div.bottom/div"),
    ("div.top/ul/li", "div.wrap/div.body/p", "div.wrap/ol.index/li", "div.wrap/div.more/ul/li", "div.wrap/div.legal/p"),
    ("ul#nav/li", "section.content/p", "section.content/section.cards/div.card", "section.see/ul/li", "footer.site/li"),
    (
        "div.bar/span",
        "div.page/div.entry/p",
        "div.page/dl.items/dd",
        "div.page/div.friends/ul/li",
        "div.page/div.base/p",
    ),
)


class Row(NamedTuple):
    """An element of a page: text, a link, text."""

    block: int
    before: str
    link: Link | None
    after: str


class Written(NamedTuple):
    """A page as it is written."""

    title: str
    heading: str
    rows: list[Row]
    head: str = ""  # HTML that readers do not see
    shown: Shown = NOTHING_SHOWN  # between the heading and the rest


class Writer:
    """Writes the pages of a plan."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        # "a.group" above would be a link in a link; browsers and parsers would take it apart
        self.templates = [tuple(path.replace("a.group", "div.group") for path in paths) for paths in _TEMPLATES]
        self.tag_paths = [tuple(f"html/body/{path}/a" for path in paths) for paths in self.templates]

    def write(self, host: int, page: int, own: Traits, depth: int) -> Written:
        """Return the page, of which the traits are known; its links get a depth, in clicks."""
        plan = self.plan
        x = scramble(STEPS[: _CHOICES + MOST_WORDS] + scramble(own.bits)[0])
        u = unit(x[:_CHOICES])
        language = int(plan.language[host])
        vocabulary = words.WORDS[language]
        hosts, pages, blocks, foreign = self._targets(host, page, own, u)
        everything = np.append(hosts, host), np.append(pages, page)
        *titles, title = plan.titles(*everything, plan.traits(*everything)).tolist()
        anchors = self._anchors(host, hosts, pages, titles, blocks, foreign, u[-_LINKS:], int(own.seeming[0]))
        sentences = self._sentences(host, own, x[_CHOICES:], vocabulary)
        rows = self._rows(host, page, depth, (hosts, pages, blocks), titles, anchors, sentences, vocabulary)
        heading = (
            " ".join([vocabulary[k] for k in title[:4]]).capitalize() if page >= 0 else self._static(language, page)
        )
        return Written(f"{heading} - {plan.domain_name(host).partition('.')[0].capitalize()}", heading, rows)

    def _static(self, language: int, page: int) -> str:
        return words.TERMS[language][(words.ABOUT, words.CONTACT, words.PRIVACY, words.LOG_IN)[-1 - page]]

    def _targets(
        self, host: int, page: int, traits: Traits, u: NDArray[np.float64]
    ) -> tuple[Ints, Ints, Ints, NDArray[np.bool_]]:
        """Return where the links of a page lead, in which blocks they stand, and whether they leave the host."""
        plan = self.plan
        kind, size = int(plan.kind[host]), int(plan.size[host])
        label, seeming = int(traits.label[0]), int(traits.seeming[0])
        static = [0, -1, -2, -3] + ([-4] if host % 5 == 0 else [])
        menu = static + list(range(1, min(SECTIONS, size - 1) + 1))
        n_text, n_list = 4 + int(u[0] * 5), min(6 + int(u[1] * 12), size)
        n_aside, n_foot = 5 + int(u[2] * 9), 2 + int(u[3] * 4)
        if kind == plans.HUB:
            n_list, n_aside = 10 + int(u[1] * 16), 6
        # in-host links
        inside = self._inside(page, kind, size, u[8:60], n_text + n_list)
        n_out = n_text + n_list + n_aside + n_foot
        v = u[60 : 60 + 4 * n_out].reshape(4, n_out)
        place = np.repeat((TEXT, LIST, ASIDE, FOOT), (n_text, n_list, n_aside, n_foot))
        # a directory lists other hosts; in the text of other pages, two of five links leave the host
        leaves = (place >= ASIDE) | ((place == TEXT) & (v[3] < 0.4)) | (kind == plans.HUB and place == LIST)
        lured = 4 if plan.lure[host] >= 0 else 1
        row = np.where(place == FOOT, 2, 3 if kind == plans.HUB else 0 if label >= 0 else lured if seeming >= 0 else 2)
        hosts, pages = self._outside(host, seeming, row, v)
        inside = np.concatenate((inside, np.zeros(n_aside + n_foot, np.int64)))
        hosts, pages = np.where(leaves, hosts, host), np.where(leaves, pages, inside)
        return (
            np.concatenate((np.full(len(menu), host), hosts)),
            np.concatenate((np.array(menu, np.int64), pages)),
            np.concatenate((np.full(len(menu), NAV), place)),
            np.concatenate((np.zeros(len(menu), np.bool_), leaves)),
        )

    def _inside(self, page: int, kind: int, size: int, u: NDArray[np.float64], n: int) -> Ints:
        v = u[:n]
        if kind == plans.TRAP:
            return page + 1 + (v * 40).astype(np.int64)
        near = max(page, 0) + 1 + np.arange(n)
        anywhere = 1 + ((size - 1) * v * v).astype(np.int64)
        chosen = np.where(np.arange(n) % 3 == 0, near, anywhere)
        if kind == plans.MIXED and page > 0:  # four of five links stay in the section
            same = chosen - (chosen - page) % SECTIONS
            chosen = np.where(np.arange(n) % 5 > 0, np.where(same > 0, same, same + SECTIONS), chosen)
        return np.where(chosen < size, chosen, chosen % max(size, 1))

    def _outside(self, host: int, topic: int, row: Ints, v: NDArray[np.float64]) -> tuple[Ints, Ints]:
        plan = self.plan
        chance = (v[0][:, None] > _CHANCES[row]).sum(1)
        bits = (v[0] * 4096).astype(np.int64)
        t = np.where(chance == 1, words.NEIGHBOURS[topic, bits % 3], topic)
        by_topic = chance < len(_BY_TOPIC)
        lists = np.where(by_topic, _BY_TOPIC[chance * by_topic] + t, _FIXED[(chance - len(_BY_TOPIC)) * ~by_topic])
        language = np.where(bits // 3 % 100 < 85, plan.language[host], bits // 3 % plans.LANGUAGES)
        lists = lists + language * plans.LISTS
        n = plan.list_size[lists]
        at = (n * v[1] ** 2).astype(np.int64)
        friend = (chance == 0) & (bits // 7 % 2 == 0) & (plan.kind[host] == plans.TOPICAL)
        near_by = (plan.position[host] + 1 + (12 * v[1] ** 2).astype(np.int64)) % n
        at = np.where(friend, near_by, at) + plan.list_start[lists]
        hosts, section = plan.listed[at], plan.listed_section[at]
        size = plan.size[hosts]
        size = np.where(size == plans.ENDLESS, 2000, size)
        w = np.maximum(v[2] - 0.45, 0) / 0.55
        deep = (size * w**3).astype(np.int64)
        in_section = 1 + section + SECTIONS * ((size - 1 - section) * w**2 / SECTIONS).astype(np.int64)
        pages = np.where(v[2] < 0.45, np.where(section >= 0, 1 + section, 0), np.where(section >= 0, in_section, deep))
        stale = (bits // 11 % 50 == 0) & (pages > 0)
        return hosts, np.where(stale, size + 1 + bits, np.where(pages < size, pages, 0))

    def _anchors(
        self, host: int, hosts: Ints, pages: Ints, titles: list[list[int]], blocks: Ints, foreign: NDArray[np.bool_],
        u: NDArray[np.float64], seeming: int,
    ) -> list[str]:  # fmt: skip
        """Return what the links say: most what they lead to, some nothing, some something else."""
        plan = self.plan
        language = int(plan.language[host])
        terms, vocabulary = words.TERMS[language], words.WORDS[language]
        generic = np.where(foreign, 0.15, 0.22)
        named = np.where(foreign, generic + 0.15, generic)
        lured = np.where(foreign & (blocks == FOOT), named + 0.25, np.where(foreign, named + 0.05, named))
        anchors = []
        rows = zip(
            hosts.tolist(), pages.tolist(), titles, blocks.tolist(), u[: len(hosts)].tolist(),
            generic.tolist(), named.tolist(), lured.tolist(), strict=True,
        )  # fmt: skip
        for h, i, title, block, x, a, b, c in rows:
            if block == NAV:
                anchors.append(self._menu(host, i, terms, vocabulary))
            elif x < a:
                anchors.append(terms[words.GENERIC[int(x * 997) % len(words.GENERIC)]])
            elif x < b:
                anchors.append(plan.name(h))
            elif x < c:
                topic = seeming if seeming >= 0 else int(x * 9973) % words.N_TOPICS
                told = words.keyword(topic, int(x * 7919) % 20, vocabulary)
                anchors.append(f"{vocabulary[title[0]]} {told}".capitalize())
            else:
                mine = vocabulary if plan.language[h] == language else words.WORDS[plan.language[h]]
                anchors.append(" ".join([mine[k] for k in title[: 2 + int(x * 997) % 3]]).capitalize())
        return anchors

    def _menu(self, host: int, page: int, terms: Sequence[str], vocabulary: Sequence[str]) -> str:
        if page <= 0:
            return terms[(words.HOME, words.ABOUT, words.CONTACT, words.PRIVACY, words.LOG_IN)[-page]]
        topic = int(self.plan.sections[host, (page - 1) % SECTIONS])
        if topic < 0 or self.plan.kind[host] == plans.TOPICAL:
            return vocabulary[int(words.STARTS[words.GENERAL]) + (host * 7 + page) % 90].capitalize()
        return words.keyword(topic, host % 5, vocabulary).capitalize()

    def _sentences(self, host: int, traits: Traits, x: NDArray[np.uint64], vocabulary: Sequence[str]) -> list[str]:
        """Return the sentences of a page: words of its topic among those of others, of junk, and of none."""
        plan = self.plan
        label, topic, weight = int(traits.label[0]), int(traits.seeming[0]), float(traits.weight[0])
        second = plan.second_label(label, int(traits.bits[0]))
        stray = second if second >= 0 else int(traits.bits[0] >> np.uint64(33)) % words.N_TOPICS
        junk = 0.12 if plan.kind[host] in (plans.JUNK, plans.TRAP) else 0.02
        shares = [weight * 0.72, weight * 0.28, weight * 0.8 if second >= 0 else 0.006, junk, 0.40]
        sources = np.array(
            [
                words.FIRST_TOPIC + max(topic, 0),
                int(words.GROUP_SOURCE[max(topic, 0)]),
                words.FIRST_TOPIC + stray,
                words.FIRST_JUNK + int(plan.junk[host]),
                words.FUNCTION,
                words.GENERAL,
            ]
        )
        n = 90 + int(traits.bits[0] >> np.uint64(3)) % (MOST_WORDS - 90 - 150)
        x = x[:n]
        source = sources[np.searchsorted(np.cumsum(shares) * 2048, x & np.uint64(0x7FF), "right")]
        text = [vocabulary[k] for k in plan.words_of(source, x).tolist()]
        sentences, at = [], 0
        while at < n:
            length = 7 + (n * 31 + at * 17) % 11
            sentences.append(" ".join(text[at : at + length]).capitalize() + ".")
            at += length
        return sentences

    def _rows(
        self, host: int, page: int, depth: int, targets: tuple[Ints, Ints, Ints], titles: list[list[int]],
        anchors: list[str], sentences: list[str], vocabulary: Sequence[str],
    ) -> list[Row]:  # fmt: skip
        plan, tag_paths = self.plan, self.tag_paths[self.plan.template[host]]
        hosts, pages, blocks = targets
        n_text = int((blocks == TEXT).sum())
        told, seen, rows = 0, {plan.key(host, page)}, []
        name_of, path_of = plan.name, plan.path
        for j, (h, i, block, key) in enumerate(
            zip(hosts.tolist(), pages.tolist(), blocks.tolist(), plan.keys(hosts, pages), strict=True)
        ):
            before = after = ""
            if block == TEXT:
                share = len(sentences) * (told + 1) // n_text
                mine = sentences[len(sentences) * told // n_text : share]
                before, after = " ".join(mine[: (len(mine) + 1) // 2]), " ".join(mine[(len(mine) + 1) // 2 :])
                told += 1
            elif block >= LIST and (h + j) % 3 == 0:
                title = titles[j]
                blurb = f"{vocabulary[title[4]]} {vocabulary[title[5]]} {vocabulary[title[6]]}"
                before, after = (blurb, "") if block == LIST else ("", blurb)
            if key in seen:
                if block == TEXT:
                    rows.append(Row(block, before, None, after))
                continue
            seen.add(key)
            name, anchor = name_of(h), anchors[j]
            context = f"{before} {anchor} {after}".strip()[:_SHOWN] if before or after else anchor
            url = f"http://{name}{path_of(h, i, titles[j])}"
            rows.append(Row(block, before, Link(url, key, name, depth, anchor, tag_paths[block], context), after))
        return rows


def text_of(page: Written) -> str:
    """Return what readers see of a page, with its title first."""
    lines = [page.title]
    above = True
    for block, before, link, after in page.rows:
        if above and block >= TEXT:
            lines += [page.heading, page.shown.text] if page.shown.text else [page.heading]
            above = False
        lines.append(f"{before} {link.anchor if link else ''} {after}".strip())
    return "\n".join(lines)


def html_of(page: Written, paths: Sequence[str], host: str, language: str) -> str:
    """Return a page as HTML."""
    parts = [
        f'<!DOCTYPE html>\n<html lang="{language}">\n<head><meta charset="utf-8"><title>{escape(page.title)}</title>{page.head}</head>\n<body>\n'
    ]
    block, ends = -1, ""
    for row in page.rows:
        container, _, element = paths[row.block].rpartition("/")
        if row.block != block:
            parts.append(ends)
            start, ends = _tags(container.split("/"))
            parts.append(start)
            if row.block >= TEXT and block < TEXT:
                parts.append(f"<h1>{escape(page.heading)}</h1>\n{page.shown.html}")
            block = row.block
        start, end = _tags([element])
        middle = f'<a href="{escape(_href(row.link.url, host))}">{escape(row.link.anchor)}</a>' if row.link else ""
        parts.append(f"{start}{escape(row.before)} {middle} {escape(row.after)}{end}\n")
    return "".join([*parts, ends, "\n</body>\n</html>\n"])


def _href(url: str, host: str) -> str:
    return url.removeprefix(f"http://{host}") if url.startswith(f"http://{host}/") else url


def _tags(names: Iterable[str]) -> tuple[str, str]:
    """Return what opens and closes elements that are written ``tag.class#id``."""
    start, end = "", ""
    for name in names:
        bare, _, identifier = name.partition("#")
        tag, _, classes = bare.partition(".")
        start += (
            f"<{tag}" + (f' class="{classes}"' if classes else "") + (f' id="{identifier}"' if identifier else "") + ">"
        )
        end = f"</{tag}>{end}"
    return start, end
