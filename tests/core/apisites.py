"""Synthetic sites whose pages show links only after their scripts asked an API: one of each kind."""

from __future__ import annotations

import base64
import random
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl, quote, urlsplit
from zlib import crc32

from scrapy_focus.web.apis.answers import Call

if TYPE_CHECKING:
    from collections.abc import Callable

HOST = "http://a.test"


class Shown(NamedTuple):
    """What a rendered page shows: what its scripts asked for, and the links that the plain page has not, and has."""

    calls: list[Call]
    links: list[str]
    plain: list[str] = []


class ApiSite(NamedTuple):
    """Pages of one template, how each is rendered, and what the API answers to a URL."""

    pages: list[str]
    render: Callable[[str], Shown]
    api: Callable[[str], Any]


def query(url: str) -> dict[str, str]:
    """Return the query of a URL."""
    return dict(parse_qsl(urlsplit(url).query))


def call(api: Callable[[str], Any], path: str) -> Call:
    """Ask an API."""
    return Call(HOST + path, api(HOST + path))


def by_next_url(n: int = 40) -> ApiSite:
    """Lists whose answers name the URL of the next one, as those of many frameworks do; titles mislead."""

    def api(url: str) -> Any:
        page = int(query(url)["page"])
        if not 1 <= page <= n:
            return None
        following = f"{HOST}/api/sets/?format=json&page={page + 1}" if page < n else None
        rows = [{"id": 1000 + 10 * page + k, "title": "1", "lang": "en", "rank": k} for k in range(10)]
        return {"count": 10 * n, "next": following, "previous": None, "results": rows}

    def render(url: str) -> Shown:
        page = int(query(url)["page"])
        asked = call(api, f"/api/sets/?format=json&page={page}")
        links = [f"{HOST}/app/set/{row['id']}/" for row in asked.data["results"]]
        if page < n:
            links.append(f"{HOST}/app/sets?page={page + 1}")
        return Shown([asked], links)

    return ApiSite([f"{HOST}/app/sets?page={page}" for page in range(1, n + 1)], render, api)


def by_number(n: int = 40) -> ApiSite:
    """Lists by number, with how many there are; pages link to the next, the one before, and some others."""

    def api(url: str) -> Any:
        page = int(query(url)["p"])
        if page > n:
            return {"page": page, "totalPages": n, "items": []}
        items = [{"code": f"S{page}x{k}", "org": {"slug": f"org-{(page + k) % 7}"}} for k in range(8)]
        return {"page": page, "totalPages": n, "items": items}

    def render(url: str) -> Shown:
        page = int(query(url)["p"])
        asked = call(api, f"/api/list?p={page}&lang=en")
        links = [f"{HOST}/{row['org']['slug']}/set/{row['code'].lower()}" for row in asked.data["items"]]
        links += [f"{HOST}/list?p={other}" for other in range(page - 2, page + 3) if 1 <= other <= n and other != page]
        return Shown([asked], links)

    return ApiSite([f"{HOST}/list?p={page}" for page in range(1, n + 1)], render, api)


def by_offset(n: int = 30) -> ApiSite:
    """Pages by number over an API by offset and limit, with a total."""

    def api(url: str) -> Any:
        asked = query(url)
        offset, limit = int(asked["offset"]), int(asked["limit"])
        rows = [{"name": f"table-{k}"} for k in range(offset, min(offset + limit, 20 * n - 3))]
        return {"total": 20 * n - 3, "rows": rows}

    def render(url: str) -> Shown:
        page = int(urlsplit(url).path.rsplit("/", 1)[1])
        asked = call(api, f"/api/tables?limit=20&offset={20 * (page - 1)}")
        links = [f"{HOST}/download?file={row['name']}&as=csv" for row in asked.data["rows"]]
        if page < n:
            links.append(f"{HOST}/tables/{page + 1}")
        return Shown([asked], links)

    return ApiSite([f"{HOST}/tables/{page}" for page in range(1, n + 1)], render, api)


def by_cursor(n: int = 25) -> ApiSite:
    """Topics whose lists go on by a cursor, which a button asks for; the first is in the page already."""

    def api(url: str) -> Any:
        asked = query(url)
        at = int(base64.b64decode(asked["after"]).decode()[3:]) if "after" in asked else 0
        names = [f"{asked['topic']}/{k}" for k in range(at, min(at + 5, 13))]
        cursor = base64.b64encode(f"at:{at + 5}".encode()).decode() if at + 5 < 13 else None
        return {"files": [{"path": f"/files/{name}.csv"} for name in names], "page_info": {"end_cursor": cursor}}

    def render(url: str) -> Shown:
        topic = urlsplit(url).path.rsplit("/", 1)[1]
        asked = [call(api, f"/api/files?topic={topic}")]
        while cursor := asked[-1].data["page_info"]["end_cursor"]:
            asked.append(call(api, f"/api/files?topic={topic}&after={quote(cursor, '')}"))
        links = [HOST + row["path"] for each in asked for row in each.data["files"]]
        return Shown(asked, links[3:], links[:3])

    return ApiSite([f"{HOST}/topic/t{n}-{k * 7}" for k in range(n)], render, api)


def by_path(n: int = 40) -> ApiSite:
    """Data sets with numbers within a name, that show files by URL and by name, and others like it."""

    def api(url: str) -> Any:
        if url.endswith("/menu"):
            return {"menu": [{"href": "/about/us"}], "id": 1}
        number = int(urlsplit(url).path.rsplit("/", 1)[1])
        if not 100 <= number < 100 + n:
            return None
        files = [{"url": f"http://files.test/{number}/{k}.csv", "type": "csv"} for k in range(number % 3 + 1)]
        related = [{"id": 100 + (number * 3 + k) % n, "name": f"name {k}"} for k in range(2)]
        self_url = f"{HOST}/api/v1/sets/{number}"
        return {"id": number, "self": self_url, "files": files, "related": related, "sheets": ["a b", f"ü{number}"]}

    def render(url: str) -> Shown:
        number = urlsplit(url).path.rsplit("/", 1)[1].partition("-")[0]
        asked = call(api, f"/api/v1/sets/{number}")
        links = [row["url"] for row in asked.data["files"]]
        links += [f"{HOST}/about/{row['id']}/{quote(row['name'])}" for row in asked.data["related"]]
        links += [f"{HOST}/sheet/{number}/{quote(name)}.xlsx" for name in asked.data["sheets"]]
        site = call(api, "/api/v1/menu")
        return Shown([site, asked], [*links, f"{HOST}/about/us"])

    return ApiSite([f"{HOST}/set/{k}-air-quality-{k % 4}" for k in range(100, 100 + n)], render, api)


def by_flag(n: int = 24) -> ApiSite:
    """Collections that begin in the page and go on until the answer says that it is done; 4 is in every URL."""

    def api(url: str) -> Any:
        asked = query(url)
        category, offset = int(asked["cat"]), int(asked["offset"])
        items = [{"href": f"/files/m-{category}-{k}.csv", "label": "4"} for k in range(offset, min(offset + 8, 20))]
        return {"items": items, "done": offset + 8 >= 20}

    def render(url: str) -> Shown:
        category = urlsplit(url).path.rsplit("/", 1)[1]
        asked = [call(api, f"/api/more?cat={category}&offset=4"), call(api, f"/api/more?cat={category}&offset=12")]
        links = [HOST + row["href"] for each in asked for row in each.data["items"]]
        return Shown(asked, links, [f"{HOST}/files/m-{category}-{k}.csv" for k in range(4)])

    return ApiSite([f"{HOST}/more/{k}" for k in range(1, n + 1)], render, api)


def of_strings(n: int = 30) -> ApiSite:
    """Places whose answer is a list of texts, by a name with other letters."""

    def api(url: str) -> Any:
        place = query(url)["place"]
        return [f"{place} {k}/{year}" for k, year in ((1, 2020), (2, 2021), (3, 2022))][: len(place) % 3 + 1]

    def render(url: str) -> Shown:
        asked = call(api, f"/api/reports?place={urlsplit(url).path.rsplit('/', 1)[1].lower()}")
        return Shown([asked], [f"{HOST}/report/{quote(name, '')}" for name in asked.data])

    names = [f"Orte-{'ä' * (k % 3)}{k}" for k in range(n)]
    return ApiSite([f"{HOST}/place/{quote(name)}" for name in names], render, api)


def of_urls(n: int = 20) -> ApiSite:
    """Pages whose button leads to a URL that follows from their own, without any API."""
    return ApiSite(
        [f"{HOST}/dl/{k}" for k in range(1, n + 1)],
        lambda url: Shown([], [f"{HOST}/export?id={url.rsplit('/', 1)[1]}&all=1"]),
        lambda url: None,
    )


def with_everything() -> ApiSite:
    """An API that answers any number, and says nothing of how many there are."""

    def api(url: str) -> Any:
        page = int(query(url)["page"])
        return {"page": page, "results": [{"id": f"d{page * 100 + k}"} for k in range(5)]}

    def render(url: str) -> Shown:
        asked = call(api, f"/api/endless?page={query(url)['page']}&size=5")
        return Shown([asked], [f"{HOST}/set/{row['id']}" for row in asked.data["results"]])

    return ApiSite([f"{HOST}/endless?page={page}" for page in range(1, 11)], render, api)


def with_growing_total() -> ApiSite:
    """An API that answers any number, and always says that there is one more."""

    def api(url: str) -> Any:
        page = int(query(url)["page"])
        return {"pages": page + 1, "results": [{"id": f"d{page * 100 + k}"} for k in range(5)]}

    return with_everything()._replace(
        api=api,
        render=lambda url: Shown(
            [call(api, f"/api/endless?page={query(url)['page']}&size=5")],
            [f"{HOST}/set/d{int(query(url)['page']) * 100 + k}" for k in range(5)],
        ),
    )


def with_token(seed: int = 1) -> ApiSite:
    """An API that wants a token, which is in no URL."""
    rng = random.Random(seed)

    def api(url: str) -> Any:
        number = query(url)["id"]
        return {"files": [{"url": f"/files/{crc32(f'{number}-{k}'.encode())}.csv"} for k in range(3)]}

    def render(url: str) -> Shown:
        number = url.rsplit("/", 1)[1]
        asked = call(api, f"/api/files?id={number}&token={rng.randrange(1 << 40):x}&t={rng.randrange(1 << 40)}")
        return Shown([asked], [HOST + row["url"] for row in asked.data["files"]])

    return ApiSite([f"{HOST}/vault/{k}" for k in range(30)], render, api)


def with_chance(seed: int = 1) -> ApiSite:
    """Pages that show other links at each rendering, beside those of their API."""
    rng = random.Random(seed)
    inner = by_path()

    def render(url: str) -> Shown:
        shown = inner.render(url)
        return shown._replace(links=[*shown.links, f"{HOST}/story/{rng.randrange(1 << 30)}-{rng.randrange(1 << 30)}"])

    return inner._replace(render=render)


def _number(url: str) -> int:
    return int(urlsplit(url).path.rsplit("/", 1)[1])


def _sets(api: Callable[[str], Any], links: Callable[[int, Any], list[str]]) -> ApiSite:
    """Return a site of 30 pages that ask one API each."""

    def render(url: str) -> Shown:
        asked = call(api, f"/api/s/{_number(url)}")
        return Shown([asked], [HOST + link for link in links(_number(url), asked.data)])

    return ApiSite([f"{HOST}/s/{k}" for k in range(1, 31)], render, api)


def first_of_many() -> ApiSite:
    """Pages that show five of twenty results."""
    return _sets(
        lambda url: {"results": [{"id": _number(url) * 100 + k} for k in range(20)]},
        lambda n, data: [f"/d/{row['id']}" for row in data["results"][:5]],
    )


def some_of_many() -> ApiSite:
    """Pages that show the files of one format."""
    return _sets(
        lambda url: {"files": [{"url": f"/f/{_number(url)}-{k}", "fmt": (_number(url) * k) % 5} for k in range(4)]},
        lambda n, data: [row["url"] for row in data["files"] if row["fmt"]],
    )


def in_html() -> ApiSite:
    """Pages that show what is in the HTML of an answer, more or less of it."""
    return _sets(
        lambda url: {"id": _number(url), "content": f'<a href="/f/{_number(url)}/0.csv">'},
        lambda n, data: [f"/f/{n}/{k}.csv" for k in range(n % 4 + 1)],
    )


def in_keys() -> ApiSite:
    """Pages whose links are made of the names of properties."""
    return _sets(
        lambda url: {"sets": {f"d{_number(url)}{k}": {"t": "x"} for k in range(4)}},
        lambda n, data: [f"/d/{key}" for key in data["sets"]],
    )


def with_numbers_everywhere() -> ApiSite:
    """Pages in whose answers the same small numbers mean many things."""
    return _sets(
        lambda url: {
            "id": _number(url),
            "rank": _number(url),
            "items": [{"id": k, "rank": k, "n": k, "lang": "en"} for k in range(1, _number(url) % 4 + 2)],
            "count": _number(url) % 4 + 1,
        },
        lambda n, data: [f"/s/{n}/part/{row['n']}" for row in data["items"]],
    )


def nested() -> ApiSite:
    """Pages whose links are made of two values, of lists within one another."""
    return _sets(
        lambda url: {
            "orgs": [{"slug": f"o{_number(url) % 5}{a}", "sets": [{"n": b} for b in range(a + 1)]} for a in range(3)]
        },
        lambda n, data: [f"/{org['slug']}/set?n={row['n']}&v=1" for org in data["orgs"] for row in org["sets"]],
    )


def from_zero(n: int = 9) -> ApiSite:
    """Lists whose pages are counted from zero."""

    def api(url: str) -> Any:
        page = int(query(url)["page"])
        return {"totalPages": n, "content": [{"uid": f"u{page}{k}"} for k in range(5)] if page < n else []}

    def render(url: str) -> Shown:
        page = int(query(url)["page"])
        asked = call(api, f"/api/l?page={page}")
        links = [f"{HOST}/u/{row['uid']}" for row in asked.data["content"]]
        return Shown([asked], [*links, f"{HOST}/l?page={page + 1}"] if page < n - 1 else links)

    return ApiSite([f"{HOST}/l?page={page}" for page in range(n)], render, api)


def all_but_first() -> ApiSite:
    """Pages that leave out the first file of each answer."""
    return _sets(
        lambda url: {"files": [{"url": f"/f/{_number(url)}-{k}"} for k in range(4)]},
        lambda n, data: [row["url"] for row in data["files"][1:]],
    )
