"""The pages of the synthetic portal, one method per kind of page (internal)."""

from __future__ import annotations

from calendar import monthrange

from scrapy_focus.lab.sites.portal.frame import Frame
from scrapy_focus.lab.sites.portal.plan import SECTIONS, SERIES_PER_PAGE, DataFile, Plan
from scrapy_focus.lab.sites.portal.words import LANGUAGES, PREFIXES, TERMS

_KEPT = 5  # one in so many items without a translation has a language link all the same, a dead one


class Pages:
    """Renders pages; every method is O(links on the page) and trusts its arguments.

    Parameters
    ----------
    plan : Plan
        What exists and where.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.frame = Frame(plan)

    def home(self, e: int) -> str:
        """Return the home page of an edition."""
        frame, terms, listed = self.frame, TERMS[e], self.plan.listed
        content = (
            f'<div class="hero"><p>{self.plan.sentence(e, "home")}</p></div>'
            f'<section class="latest"><h2>{terms["latest"]}</h2>'
            f"{frame.teasers(e, 'news', listed(e, 'news', 0, 8))}</section>"
            + "".join(
                frame.links(e, name, listed(e, name, 0, n), name, terms[name])
                for name, n in (("indicators", 4), ("publications", 2), ("data", 2), ("topics", 6))
            )
            + frame.tags(e, range(self.plan.n_tags(e)))
        )
        return frame.page(e, kind="front", title=terms["home"], content=content)

    def static(self, e: int, name: str) -> str:
        """Return a page of plain text."""
        return self.frame.page(
            e,
            kind=name,
            section=name,
            title=TERMS[e][name],
            content=self.frame.text(e, name, 4),
            elsewhere=[f"{prefix}/{name}" for prefix in PREFIXES],
        )

    def listing(self, e: int, section: str, k: int) -> str:
        """Return page `k` of a section."""
        per_page, n = SECTIONS[section].per_page, self.plan.n_listings(e, section)
        items = self.plan.listed(e, section, k * per_page, (k + 1) * per_page)
        content = self.frame.teasers(e, section, items, permalinks=section == "news") + self.frame.pager(e, k, n)
        return self.frame.page(
            e,
            kind=f"list-{section}",
            section=section,
            title=TERMS[e][section],
            content=content,
            elsewhere=[f"{prefix}/{section}" for prefix in PREFIXES],
        )

    def tag(self, e: int, tag: int, k: int) -> str:
        """Return page `k` of the news under a keyword."""
        per_page, n = SECTIONS["news"].per_page, self.plan.n_tagged(e, tag)
        items = [tag + self.plan.n_tags(e) * j for j in range(k * per_page, min((k + 1) * per_page, n))]
        content = self.frame.teasers(e, "news", items) + self.frame.pager(e, k, -(-n // per_page))
        crumbs = ((f"{PREFIXES[e]}/news", TERMS[e]["news"]),)
        return self.frame.page(
            e, kind="tag", section="news", title=self.plan.tag_name(e, tag), content=content, crumbs=crumbs
        )

    def item(self, e: int, section: str, i: int) -> str:
        """Return the page of an item."""
        plan, frame, key = self.plan, self.frame, f"{section}/{i}"
        content = {
            "news": self._news,
            "data": self._dataset,
            "publications": self._publication,
            "indicators": self._indicator,
            "topics": self._topic,
            "glossary": self._term,
        }[section](e, i)
        return frame.page(
            e,
            kind=f"node-type-{SECTIONS[section].item}",
            section=section,
            title=plan.title(e, key),
            content=f'<article id="node-{i}" class="node node-{section} view-mode-full clearfix">{content}</article>',
            crumbs=((f"{PREFIXES[e]}/{section}", TERMS[e][section]),),
            elsewhere=[self._translation(e, other, section, i) for other in range(len(LANGUAGES))],
            number=i,
        )

    def _translation(self, e: int, other: int, section: str, i: int) -> str:
        if i >= self.plan.counts[e][section]:  # added, and not translated yet
            return self.frame.home(other)
        if i < self.plan.counts[other][section]:
            return self.plan.path(other, section, i)
        if self.plan.draw(_KEPT, f"dead/{e}/{other}/{section}/{i}"):
            return self.frame.home(other)
        return PREFIXES[other] + self.plan.path(e, section, i).removeprefix(PREFIXES[e])

    def _others(self, e: int, section: str, key: str, n: int) -> list[int]:
        """Return up to `n` distinct items in the order of their draws."""
        count = self.plan.counts[e][section]
        return list(dict.fromkeys(self.plan.draw(count, f"{key}/{section}/{j}") for j in range(n)))

    def _news(self, e: int, i: int) -> str:
        plan, frame, terms, key = self.plan, self.frame, TERMS[e], f"news/{e}/{i}"
        picture = f"/media/images/{LANGUAGES[e]}-{i}.jpg"
        image = f'<img alt="" src="{picture}">'
        if plan.draw(4, f"lightbox/{key}") == 0:
            image = f'<a class="lightbox" href="{picture}">{image}</a>'
        parts = [
            f'<figure class="field-name-image">{image}</figure>',
            f'<span class="date">{1 + i % 28}/{1 + i % 12}/{plan.year(e, i)}</span>',
            frame.text(e, f"news/{i}", 3),
        ]
        if plan.draw(40, f"video/{key}") == 0:
            parts.append(f'<p><a class="video" href="/media/films/{LANGUAGES[e]}-{i}.mp4">{terms["video"]}</a></p>')
        if plan.draw(25, f"see/{key}") == 0:
            parts.append(frame.links(e, "data", self._others(e, "data", key, 1), "see-also", terms["see"]))
        parts += [self._file_link(file, terms["press"]) for file in plan.files(e, "news", i)]
        n_tags = plan.n_tags(e)
        parts.append(frame.tags(e, sorted({i % n_tags, plan.draw(n_tags, f"a/{key}"), plan.draw(n_tags, f"b/{key}")})))
        parts.append(frame.links(e, "news", self._others(e, "news", key, 5), "related", terms["related"]))
        return "".join(parts)

    def _dataset(self, e: int, i: int) -> str:
        plan, frame, terms, key = self.plan, self.frame, TERMS[e], f"data/{e}/{i}"
        rows = [(self._file_link(file, terms["download"]), file.title) for file in plan.files(e, "data", i)] + [
            (self._file_link(file, terms["copy"]), file.title) for file in plan.files(e, "copy", i)
        ]
        resources = "".join(
            f'<li class="resource-item {"even" if row % 2 else "odd"}" id="resource-{i}-{row}"><span class="heading">'
            f'{title}</span><div class="dropdown btn-group">{link}</div></li>'
            for row, (link, title) in enumerate(rows)
        )
        restricted = ""
        if plan.draw(12, f"micro/{key}") == 0:
            restricted = f'<p class="notice"><a href="{PREFIXES[e]}/private/microdata-{i}">{terms["micro"]}</a></p>'
        topic = i % plan.counts[e]["topics"]
        return (
            f'{frame.text(e, f"data/{i}", 1)}<section id="dataset-resources" class="resources"><h2>{terms["resources"]}'
            f'</h2><ul class="resource-list">{resources}</ul></section>{restricted}'
            + frame.links(e, "topics", [topic], "topic", terms["topics"])
            + frame.links(e, "data", self._others(e, "data", key, 2), "similar", terms["data"])
        )

    def _publication(self, e: int, i: int) -> str:
        plan, frame, terms = self.plan, self.frame, TERMS[e]
        buttons = "".join(
            self._file_link(file, f"{terms['download']} (PDF)") for file in plan.files(e, "publications", i)
        )
        return (
            f'<div class="cover"><img alt="" src="/media/images/{LANGUAGES[e]}-{i % plan.counts[e]["news"]}.jpg"></div>'
            f'{frame.text(e, f"publications/{i}", 2)}<div class="field-name-file">{buttons}</div>'
            + frame.links(
                e, "publications", self._others(e, "publications", f"pub/{e}/{i}", 3), "similar", terms["related"]
            )
        )

    def _indicator(self, e: int, i: int) -> str:
        plan, frame, terms, key = self.plan, self.frame, TERMS[e], f"indicator/{e}/{i}"
        count = plan.counts[e]["indicators"]
        values = plan.draw(1 << 60, f"values/{key}")
        rows = "".join(
            f'<tr class="{"even" if row % 2 else "odd"}"><th scope="row">{2012 + row}</th>'
            + "".join(f"<td>{(values >> (3 * row + 5 * column)) % 10_000 / 10}</td>" for column in range(4))
            + "</tr>"
            for row in range(12)
        )
        near = list(dict.fromkeys(((i - 1) % count, (i + 1) % count, *self._others(e, "indicators", key, 4))))
        parts = [
            f'<table class="indicator-table sticky-enabled"><thead><tr><th>{terms["period"]}</th><th>Q1</th><th>Q2</th>'
            f"<th>Q3</th><th>Q4</th></tr></thead><tbody>{rows}</tbody></table>{frame.text(e, f'indicators/{i}', 1)}",
            frame.links(e, "indicators", near, "similar", terms["indicators"]),
            frame.links(e, "topics", [i % plan.counts[e]["topics"]], "topic", terms["topics"]),
        ]
        if plan.draw(10, f"see/{key}") == 0:
            parts.append(frame.links(e, "data", self._others(e, "data", key, 1), "see-also", terms["see"]))
        return "".join(parts)

    def _topic(self, e: int, i: int) -> str:
        plan, frame, terms = self.plan, self.frame, TERMS[e]
        blocks = [frame.text(e, f"topics/{i}", 2)]
        for section, n in (("news", 6), ("indicators", 8), ("publications", 4), ("data", 8)):
            first, n_topics = plan.counts[e][section], plan.counts[e]["topics"]
            added = [j for j in range(plan.n_items(e, section) - 1, first - 1, -1) if j % n_topics == i]
            members = [*added, *range(i, first, n_topics)][:n]
            blocks.append(frame.links(e, section, members, f"topic-{section}", terms[section]))
        return "".join(blocks)

    def _term(self, e: int, i: int) -> str:
        see = self.frame.links(
            e, "glossary", self._others(e, "glossary", f"term/{e}/{i}", 3), "similar", TERMS[e]["glossary"]
        )
        return f'<dl class="definition"><dd>{self.frame.text(e, f"glossary/{i}", 1)}</dd></dl>{see}'

    def _file_link(self, file: DataFile, text: str) -> str:
        kilobytes = max(1, file.size // 1000)
        return (
            f'<a class="btn btn-primary resource-url-analytics" href="{file.link}">'
            f'<i class="icon-{file.extension}"></i>{text} '
            f'<span class="size">({file.extension.upper()}, {kilobytes} kB)</span></a>'
        )

    def archive(self, e: int, k: int) -> str:
        """Return page `k` of the list of series of old bulletins."""
        n = self.plan.n_series(e)
        rows = "".join(
            f'<li class="series {"even" if s % 2 else "odd"}"><a href="{self.plan.series_path(e, s)}">'
            f"{self.plan.title(e, f'series/{s}')}</a></li>"
            for s in range(k * SERIES_PER_PAGE, min((k + 1) * SERIES_PER_PAGE, n))
        )
        content = f'<ul class="archive-series">{rows}</ul>' + self.frame.pager(e, k, -(-n // SERIES_PER_PAGE))
        return self.frame.page(e, kind="archive", section="archive", title=TERMS[e]["series"], content=content)

    def series(self, e: int, s: int) -> str:
        """Return the years of a series."""
        path = self.plan.series_path(e, s)
        links = "".join(
            f'<li class="year-item"><a class="year" href="{path}/{year}">{year}</a></li>'
            for year, _ in self.plan.years_of(e, s)
        )
        return self.frame.page(
            e,
            kind="archive-series",
            section="archive",
            title=self.plan.title(e, f"series/{s}"),
            content=f'{self.frame.text(e, f"series/{s}", 1)}<ul class="years">{links}</ul>',
            crumbs=((f"{PREFIXES[e]}/archive", TERMS[e]["archive"]),),
        )

    def archive_year(self, e: int, s: int, year: int, a: int) -> str:
        """Return a table of old bulletins, with relative links."""
        rows = "".join(
            f'<tr class="{"even" if row % 2 else "odd"}"><td class="title">{file.title}</td><td><a class="pdf" '
            f'href="../files/{file.link.rpartition("/")[2]}">{TERMS[e]["bulletin"]} {row + 1}/{year}</a></td></tr>'
            for row, file in enumerate(self.plan.files(e, "archive", a))
        )
        title = self.plan.title(e, f"series/{s}")
        return self.frame.page(
            e,
            kind="archive-year",
            section="archive",
            title=f"{title} {year}",
            content=f'<table class="archive-table views-table"><tbody>{rows}</tbody></table>',
            crumbs=(
                (f"{PREFIXES[e]}/archive", TERMS[e]["archive"]),
                (self.plan.series_path(e, s), title),
            ),
        )

    def month(self, e: int, year: int, month: int) -> str:
        """Return a month of the calendar: it always has a next one, which is the trap."""
        base = f"{PREFIXES[e]}/calendar/"
        n_days = days_in(year, month)
        busy = {self.plan.draw(n_days, f"day/{e}/{year}/{month}/{j}") + 1 for j in range(6)}
        cells = "".join(
            f'<td class="day"><a href="{base}{year}-{month:02d}-{day:02d}">{day}</a></td>'
            if day in busy
            else f'<td class="day empty">{day}</td>'
            for day in range(1, n_days + 1)
        )
        before = f"{year - (month == 1)}-{(month - 2) % 12 + 1:02d}"
        after = f"{year + (month == 12)}-{month % 12 + 1:02d}"
        previous = f'<a class="prev" href="{base}{before}">{TERMS[e]["previous"]}</a>' if year > 1 else ""
        return self.frame.page(
            e,
            kind="calendar",
            section="calendar",
            title=f"{TERMS[e]['calendar']} {month}/{year}",
            content=f'<table class="cal"><tbody><tr>{cells}</tr></tbody></table><div class="cal-nav">{previous}'
            f'<a class="next" href="{base}{after}">{TERMS[e]["next"]}</a></div>',
            elsewhere=[f"{prefix}/calendar" for prefix in PREFIXES],
        )

    def day(self, e: int, year: int, month: int, day: int) -> str:
        """Return an empty day of the calendar."""
        return self.frame.page(
            e,
            kind="calendar-day",
            section="calendar",
            title=f"{day}/{month}/{year}",
            content=f'<p class="no-event">{TERMS[e]["noevent"]}</p>',
            crumbs=((f"{PREFIXES[e]}/calendar/{year}-{month:02d}", f"{month}/{year}"),),
        )

    def private(self, e: int) -> str:
        """Return the form before pages that robots.txt forbids."""
        form = (
            '<form method="post" action="/private/login"><input name="user"><input name="pass" type="password"></form>'
        )
        return self.frame.page(e, kind="login", title=TERMS[e]["private"], content=form)

    def missing(self, e: int) -> str:
        """Return the body of a 404."""
        content = f'<p class="message error">{TERMS[e]["missing"]}</p>'
        return self.frame.page(e, kind="404", title=TERMS[e]["missing"], content=content)


def days_in(year: int, month: int) -> int:
    """Return the number of days of a month of any year, beyond the range of the datetime module too."""
    return monthrange(2000 + year % 400, month)[1]
