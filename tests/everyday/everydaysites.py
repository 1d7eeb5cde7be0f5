"""Sites of common kinds: a data portal, a blog, a ministry with scripts, walls, and broken servers.

Each behaves like real sites, and knows its content. They are served by
:class:`~scrapy_focus.lab.sites.server.SiteServer`, whose log has every request.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import time
from collections import Counter
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlencode, urlsplit

from scrapy_focus.lab.sites.portal.portal import Page

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
MIMES = {"csv": "text/csv", "xlsx": XLSX, "pdf": "application/pdf"}
HOSTILE = '<script>alert(1)</script> "quoted" & Ümläut ' + "verylongword" * 12  # a title


def page(title: str, body: str, head: str = "") -> Page:
    """Return a page of HTML."""
    top = f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>{head}</head>'
    return Page.of(f"{top}<body>{body}</body></html>".encode())


def robots(*lines: str) -> Page:
    """Return a robots.txt for all agents."""
    return Page.of("\n".join(["User-agent: *", *lines, ""]).encode(), mime="text/plain")


def missing() -> Page:
    """Return the response for an unknown URL."""
    return Page.of(b"<h1>Not found</h1>", status=404)


class DataPortal:
    """A portal like CKAN: lists by page, organization and facet, data sets, resources, downloads.

    A file is three clicks from a list: data set, resource, download.

    Parameters
    ----------
    datasets
        The number of data sets; they have one, two and three files in turn.
    """

    organizations = ("health", "statistics", "city", "transport", "water")

    def __init__(self, datasets: int = 60) -> None:
        self.datasets = datasets
        self.changed: set[str] = set()  # paths of files with new content
        self.gone: set[str] = set()  # paths that answer 410

    @property
    def files(self) -> dict[str, str]:
        """The extension of each file, by its path."""
        return {
            f"/dataset/ds-{i:03}/resource/{r}/download/ds-{i:03}-{r}.{ext}": ext
            for i in range(self.datasets)
            for r in range(1 + i % 3)
            for ext in [list(MIMES)[(i + r) % 3]]
        }

    def ask(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Page:
        if path == "/robots.txt":
            return robots("Disallow: /user/", "Disallow: /api/")
        if path in self.gone:
            return Page.of(b"gone", status=410)
        parts = urlsplit(path)
        words = parts.path.strip("/").split("/")
        if path == "/":
            return self._page("Open data", f"<h1>Open data</h1>{self._organizations()}")
        if parts.path == "/dataset" or words[0] == "organization":
            return self._list(parts.path, {name: values[0] for name, values in parse_qs(parts.query).items()})
        if path in self.files:
            return self._file(path)
        if words[0] == "dataset" and words[1].startswith("ds-") and int(words[1][3:]) < self.datasets:
            return self._dataset(words[1]) if len(words) == 2 else self._resource(words[1], words[-1])
        if words[0] in ("about", "contact"):
            return self._page(words[0], f"<p>Words.</p>{self._organizations()}")
        return missing()

    def _page(self, title: str, body: str) -> Page:
        menu = {"/dataset": "Datasets", "/about": "About", "/contact": "Contact", "/user/login": "Log in"}
        items = "".join(f'<li><a href="{path}">{name}</a></li>' for path, name in menu.items())
        return page(title, f'<nav><ul class="nav">{items}</ul></nav><main>{body}</main><footer>Imprint</footer>')

    def _organizations(self) -> str:
        items = "".join(
            f'<li class="org"><a href="/organization/{name}">{name}</a></li>' for name in self.organizations
        )
        return f"<ul>{items}</ul>"

    def _list(self, path: str, query: dict[str, str]) -> Page:
        chosen = list(range(self.datasets))
        if path != "/dataset":
            name = path.rpartition("/")[2]
            chosen = [i for i in chosen if self.organizations[i % 5] == name]
        if "tags" in query:
            chosen = [i for i in chosen if i % 9 == int(query["tags"])]
        at = int(query.get("page", 1))

        def link(name: str, css: str, **more: object) -> str:
            return f'<li class="{css}"><a href="?{urlencode({**query, **more})}">{name}</a></li>'

        facets = "".join(link(f"tag {tag}", "nav-item", tags=tag, page=1) for tag in range(9))
        facets += "".join(link(f"sort by {by}", "sort", sort=by) for by in ("name", "views"))
        sets = "".join(
            f'<li class="dataset-item"><h2><a href="/dataset/ds-{i:03}">Dataset {i}</a></h2></li>'
            for i in chosen[20 * (at - 1) : 20 * at]
        )
        pages = "".join(link(str(n), "page", page=n) for n in range(1, (len(chosen) + 19) // 20 + 1))
        return self._page(
            "Datasets",
            f'<section class="facets"><ul>{facets}</ul></section><ul class="dataset-list">{sets}</ul>'
            f'<div class="pagination"><ul>{pages}</ul></div>',
        )

    def _dataset(self, name: str) -> Page:
        i = int(name[3:])
        items = "".join(
            f'<li class="resource-item"><a href="/dataset/{name}/resource/{r}">Table {r}</a></li>'
            for r in range(1 + i % 3)
        )
        return self._page(
            name,
            f'<h1>Dataset {i}</h1><a href="/organization/{self.organizations[i % 5]}">more</a>'
            f'<section class="resources"><ul>{items}</ul></section>',
        )

    def _resource(self, name: str, number: str) -> Page:
        start = f"/dataset/{name}/resource/{number}/download/"
        path = next((path for path in self.files if path.startswith(start)), "")
        if not path:
            return missing()
        return self._page(
            "Resource",
            f'<h1>{name}</h1><p>URL: <a class="resource-url" href="{path}">Download</a></p>'
            f'<p><a href="/dataset/{name}">back</a></p>',
        )

    def _file(self, path: str) -> Page:
        seed = hashlib.sha256(path.encode()).digest()[0] + (path in self.changed)
        body = "year,value\n" + "\n".join(f"{2000 + k},{seed * 37 + k * 11}" for k in range(24)) + f"\n# {path}\n"
        tag = hashlib.sha256(body.encode()).hexdigest()[:16]
        return Page.of(body.encode(), mime=MIMES[self.files[path]], headers={"ETag": f'"{tag}"'})


class Blog:
    """A blog like WordPress: lists, posts with a sidebar of recent ones, feed, sitemap, login links.

    Even posts are about bees, odd ones about cats; every fifth describes a recipe as JSON-LD. Titles are hostile.
    """

    def __init__(self, posts: int = 40) -> None:
        self.posts = posts
        self.born = time.time()

    def path_of(self, post: int) -> str:
        """Return the path of a post."""
        return f"/2026/{1 + post % 12:02}/post-{post}/"

    def ask(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Page:
        base = f"http://{headers['host']}"
        parts = urlsplit(path)
        if path == "/robots.txt":
            return robots("Disallow: /wp-admin/", f"Sitemap: {base}/wp-sitemap.xml")
        if path == "/wp-sitemap.xml":
            return self._sitemap(base)
        if path == "/feed/":
            return self._feed(base)
        if parts.path in ("/", "/category/bees/", "/category/cats/") or parts.path.startswith("/page/"):
            return self._list(base, parts.path)
        for post in range(self.posts):
            if parts.path == self.path_of(post):
                return self._post(base, post)
        if parts.path.startswith("/wp-content/uploads/report-"):
            return Page.of(b"%PDF-1.4 " + parts.path.encode() * 20, mime="application/pdf")
        return missing()

    def _page(self, base: str, title: str, body: str) -> Page:
        head = f'<link rel="alternate" type="application/rss+xml" href="{base}/feed/">'
        menu = {"/": "Home", "/category/bees/": "Bees", "/category/cats/": "Cats", "/wp-login.php": "Log in"}
        nav = "".join(f'<a href="{path}">{name}</a> ' for path, name in menu.items())
        recent = "".join(
            f'<li><a href="{self.path_of(post)}">recent {post}</a></li>'
            for post in range(self.posts - 1, max(self.posts - 6, -1), -1)
        )
        return page(html.escape(title), f"<nav>{nav}</nav>{body}<aside><ul>{recent}</ul></aside>", head)

    def _list(self, base: str, path: str) -> Page:
        number = int(path.split("/")[2]) if path.startswith("/page/") else 1
        chosen = list(range(self.posts - 1, -1, -1))
        if "bees" in path or "cats" in path:
            chosen = [post for post in chosen if post % 2 == ("cats" in path)]
        shown = "".join(
            f'<article><h2><a href="{self.path_of(post)}" rel="bookmark">{html.escape(HOSTILE)} {post}</a></h2></article>'
            for post in chosen[10 * (number - 1) : 10 * number]
        )
        older = f'<a class="older" href="/page/{number + 1}/">Older posts</a>' if 10 * number < len(chosen) else ""
        return self._page(base, "Blog", shown + older)

    def _post(self, base: str, post: int) -> Page:
        about = "Beekeeping honey hive swarm queen bees nectar apiary." if post % 2 == 0 else "Cats purr and whiskers."
        kind = "Recipe" if post % 5 == 0 else "Article"
        data = {
            "@context": "https://schema.org", "@type": kind, "name": f"{HOSTILE} {post}",
            "recipeIngredient": ["1 kg honey"], "datePublished": self._date(post, "%Y-%m-%dT%H:%M:%SZ"),
        }  # fmt: skip
        script = json.dumps(data).replace("</", "<\\/")
        words = " ".join(f"word{(post * 31 + k * k) % 900}" for k in range(220))
        return self._page(
            base,
            f"{HOSTILE} {post}",
            f'<script type="application/ld+json">{script}</script><article><h1>{html.escape(HOSTILE)} {post}</h1>'
            f"<p>{about} {about} {words}</p>"
            f'<a href="/wp-content/uploads/report-{post}.pdf">Report &lt;img src=x onerror=alert(2)&gt; {post}</a> '
            f'<a href="/wp-login.php?redirect_to={post}">Log in to reply</a> '
            f'<a rel="prev" href="{self.path_of(max(post - 1, 0))}">previous</a></article>',
        )

    def _date(self, post: int, form: str) -> str:
        return time.strftime(form, time.gmtime(self.born - 60 * (self.posts - post)))

    def _sitemap(self, base: str) -> Page:
        urls = "".join(f"<url><loc>{base}{self.path_of(post)}</loc></url>" for post in range(self.posts))
        top = '<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
        return Page.of(f"{top}{urls}</urlset>".encode(), mime="application/xml")

    def _feed(self, base: str) -> Page:
        items = "".join(
            f"<item><title>{html.escape(HOSTILE)} {post}</title><link>{base}{self.path_of(post)}</link>"
            f"<pubDate>{self._date(post, '%a, %d %b %Y %H:%M:%S GMT')}</pubDate></item>"
            for post in range(self.posts - 1, max(self.posts - 11, -1), -1)
        )
        text = f'<?xml version="1.0"?><rss version="2.0"><channel><title>Blog</title>{items}</channel></rss>'
        return Page.of(text.encode(), mime="application/rss+xml")


class Ministry:
    """A ministry whose list of publications is filled by a script from an API, ten at each click."""

    script = """
let page = 1;
async function more() {
  const answer = await fetch("/api/publications?page=" + page + "&size=10");
  const found = await answer.json();
  const list = document.getElementById("list");
  for (const each of found.items) list.innerHTML += `<p><a href="${each.pdf}">${each.title}</a></p>`;
}
document.getElementById("next").onclick = () => { page++; more(); };
more();
"""

    def __init__(self, reports: int = 95) -> None:
        self.reports = reports

    def ask(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Page:
        parts = urlsplit(path)
        if path == "/":
            return self._page("Ministry", '<h1>Welcome</h1><a href="/publications/annual.pdf">Annual report</a>')
        if path == "/publications":
            return self._page(
                "Publications", '<div id="list"></div><button id="next">Next</button><script src="/app.js"></script>'
            )
        if path == "/app.js":
            return Page.of(self.script.encode(), mime="text/javascript")
        if parts.path == "/api/publications":
            at = int(parse_qs(parts.query)["page"][0])
            shown = range(10 * (at - 1), min(10 * at, self.reports))
            items = [{"title": f"Report {i}", "pdf": f"/publications/report-{i}.pdf"} for i in shown]
            text = json.dumps({"total": self.reports, "page": at, "items": items})
            return Page.of(text.encode(), mime="application/json")
        if path == "/press":
            return self._page("Press", "".join(f'<a href="/press/{i}">Press {i}</a> ' for i in range(30)))
        if path.startswith("/press/"):
            return self._page("Press", "<p>Some text.</p>")
        if path.endswith(".pdf"):
            return Page.of(b"%PDF-1.4 " + path.encode() * 50, mime="application/pdf")
        return missing()

    def _page(self, title: str, body: str) -> Page:
        nav = '<nav><a href="/">Ministry</a> <a href="/publications">Publications</a> <a href="/press">Press</a></nav>'
        return page(title, nav + body)


class Walled:
    """A site behind a wall: ``wall`` answers a request by path and headers, or returns ``None`` to let it pass.

    ``seen`` counts the received values of ``Authorization``.
    """

    def __init__(self, wall: Callable[[str, Mapping[str, str]], Page | None], inside: DataPortal | None = None) -> None:
        self.wall = wall
        self.inside = inside or DataPortal(6)
        self.seen: Counter[str] = Counter()

    def ask(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Page:
        self.seen[headers.get("authorization", "")] += 1
        return self.wall(path, headers) or self.inside.ask(method, path, headers, body)


def login_wall(path: str, headers: Mapping[str, str]) -> Page | None:
    """Redirect requests without a session to a form."""
    if path == "/robots.txt":
        return missing()
    if path.startswith("/login"):
        return page("Log in", '<form method="post"><input name="user"><input type="password" name="word"></form>')
    if "session=ok" in headers.get("cookie", ""):
        return None
    return Page.of(b"", status=302, location=f"/login?next={path}")


def basic_wall(path: str, headers: Mapping[str, str]) -> Page | None:
    """Require a name and a password: ``user:secret``."""
    if headers.get("authorization") == "Basic " + base64.b64encode(b"user:secret").decode():
        return None
    return Page.of(b"<h1>401</h1>", status=401, headers={"WWW-Authenticate": 'Basic realm="data"'})


def guard(path: str, headers: Mapping[str, str]) -> Page | None:
    """Refuse programs, as content delivery networks do."""
    text = b"<h1>Access denied</h1><p>Cloudflare Ray ID: 1234. Please enable JavaScript and cookies to continue</p>"
    return missing() if path == "/robots.txt" else Page.of(text, status=403, headers={"Server": "cloudflare"})


def unavailable(path: str, headers: Mapping[str, str]) -> Page | None:
    """Be unavailable to all."""
    return Page.of(b"<h1>Unavailable</h1>", status=503)


def forbidding(path: str, headers: Mapping[str, str]) -> Page | None:
    """Forbid everything in robots.txt."""
    return robots("Disallow: /") if path == "/robots.txt" else None
