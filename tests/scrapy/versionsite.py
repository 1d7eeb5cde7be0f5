"""A site whose pages have versions, with validators that are right, missing or wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from mocksite import MockSite

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mocksite import Answer, Seen

#: ``fixed``: the same ETag whatever changes; ``deaf``: answers 304 to all conditions; ``unasked``: and to all other
#: from the second request on; ``dated``: only Last-Modified.
Validators = Literal["right", "weak", "dated", "none", "fixed", "deaf", "unasked"]
PROSE = "What stands here stays as it is, and is long enough to say what this page is about, at all of its visits. "


class VersionSite(MockSite):
    """Serves pages in versions: ``version`` returns the version of a path at its n-th request, from 1.

    Parameters
    ----------
    version
        Returns the version of a page, 0 for one that never changes; ``None`` for one that does not exist.
    validators
        The validators that the server sends, and how it answers conditions.
    links
        Paths that the page ``/`` links to.
    """

    def __init__(
        self, version: Callable[[str, int], int | None], validators: Validators = "right", *, links: tuple[str, ...] = ()
    ) -> None:  # fmt: skip
        super().__init__()
        self.version, self.validators, self.links = version, validators, links
        self.more: Mapping[str, str] = {}  # headers of all answers
        self.sizes: list[tuple[str, int, int]] = []  # path, status and bytes of the body of each answer

    def respond(self, seen: Seen) -> Answer:
        asked = sum(each.path == seen.path and each.method == "GET" for each in self.log)
        version = self.version(seen.path, asked)
        if seen.path == "/robots.txt" or "?" in seen.path or version is None:
            return super().respond(seen)
        status, headers, body = self._page(seen.path, version)
        if self._is_told(seen, headers, asked):
            status, headers, body = 304, {name: headers[name] for name in ("ETag",) if name in headers}, b""
        self.sizes.append((seen.path, status, len(body)))
        return status, {**headers, **self.more}, body

    def asks(self, path: str) -> list[str]:
        """Return the conditions of each request for a path: an ETag, a date, or ``""``."""
        gets = [seen.headers for seen in self.log if seen.path == path and seen.method == "GET"]
        return [headers.get("if-none-match", headers.get("if-modified-since", "")) for headers in gets]

    def _page(self, path: str, version: int) -> Answer:
        links = "".join(f'<li><a href="{link}">{link}</a></li>' for link in self.links) if path == "/" else ""
        text = f"<html><body><h1>{path}</h1><p>{PROSE * 20}</p><p>Version {version}</p><ul>{links}</ul></body></html>"
        headers = {"Content-Type": "text/html; charset=utf-8"}
        date = f"Mon, 02 Feb 2026 10:{version % 60:02}:00 GMT"
        match self.validators:
            case "right" | "deaf" | "unasked":
                headers |= {"ETag": f'"{path}{version}"', "Last-Modified": date}
            case "weak":
                headers["ETag"] = f'W/"{path}{version}"'
            case "dated":
                headers["Last-Modified"] = date
            case "fixed":
                headers["ETag"] = '"always"'
        return 200, headers, text.encode()

    def _is_told(self, seen: Seen, headers: Mapping[str, str], asked: int) -> bool:
        tag, date = seen.headers.get("if-none-match"), seen.headers.get("if-modified-since")
        if self.validators == "unasked":
            return asked > 1
        if self.validators == "deaf":
            return tag is not None or date is not None
        if tag is not None:
            return tag == headers.get("ETag")
        return date is not None and date == headers.get("Last-Modified")
