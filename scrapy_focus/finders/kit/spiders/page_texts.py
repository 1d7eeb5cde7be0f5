"""Store the main text of each page that was found, beside the list of pages or in it."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from scrapy.utils.asyncio import run_in_thread
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import DeferredLock

from scrapy_focus.core.files import write_atomically
from scrapy_focus.core.printable import printable
from scrapy_focus.finders.kit.records.folder_names import TEXTS
from scrapy_focus.finders.kit.spiders.items import PageSource, listed_fields
from scrapy_focus.web.page_texts import PageTexts, with_front_matter
from scrapy_focus.web.safe_names import safe_name
from scrapy_focus.web.text_process import TextProcess
from scrapy_focus.web.url_parts import parts_of

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.http import HtmlResponse

    from scrapy_focus.finders.kit.arguments.finder_arguments import FinderArguments

_TITLE = 200  # characters
_LANGUAGE = 35  # characters: the longest tags
_SHORT = 60  # bytes of the readable part of a file's name
_ENDINGS = {"text": "txt", "markdown": "md"}


class StoreTexts:
    """Extracts the contents of pages, and adds them to their items.

    Files are written before the item is listed, so each page of the list has its files, after a kill as well. Their
    names contain a digest of the URL, so a page that is fetched again has the same files. Pages are extracted one after
    the other in another process, while the crawl proceeds; if many are pending, Scrapy stops fetching. A page without a
    main text, or one that cannot be extracted, has empty files, and is counted.
    """

    def __init__(self, crawler: Crawler, asked: FinderArguments) -> None:
        self.crawler = crawler
        self.folder = asked.found_in
        self.formats = [name for name in _ENDINGS if getattr(asked, name)]
        self.process = TextProcess()
        self._lock = DeferredLock()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler, crawler.spider.asked)  # type: ignore[union-attr]  # finders have arguments

    def open_spider(self) -> None:
        if self.folder is not None:
            for unfinished in (self.folder / TEXTS).glob(".*.tmp"):  # left by a kill
                unfinished.unlink(missing_ok=True)

    def close_spider(self) -> None:
        self.process.close()

    async def process_item(self, item: Any) -> Any:
        source: PageSource | None = getattr(item, "source", None)
        if source is None:
            return item
        contents = await self._contents(source, item)
        for name, value in contents.items():
            setattr(item, name, value)
        return item

    async def _contents(self, source: PageSource, item: Any) -> dict[str, str]:
        """Return the fields of a page, which is stored with its first item."""
        await maybe_deferred_to_future(self._lock.acquire())
        try:
            if source.contents is not None:
                return source.contents
            stat, contents = await run_in_thread(self.store, source.html, item)
            source.html, source.contents = "", contents
            if self.crawler.stats is not None:
                self.crawler.stats.inc_value(stat)
            return contents
        finally:
            self._lock.release()

    def store(self, html: str, item: Any) -> tuple[str, dict[str, str]]:
        """Extract and store the texts of a page, in a thread; return the stat to count, and fields of its items."""
        texts = self.process.read(html, item.url)
        if texts is None:
            stat, texts = "focus/text/failed", PageTexts()
        else:
            stat = "focus/text/stored" if texts.text else "focus/text/empty"
        found = {"author": texts.author, "published": texts.published}
        written = {"text": texts.text, "markdown": texts.markdown}
        if self.folder is not None and texts.markdown:
            written["markdown"] = with_front_matter(
                texts.markdown, title=texts.title or item.title, author=texts.author, published=texts.published,
                language=item.language, url=item.url,
            )  # fmt: skip
        for name in self.formats:
            if self.folder is None:
                found[name] = written[name]
            else:
                found[f"{name}_file"] = path = f"{TEXTS}/{name_of(item.url)}.{_ENDINGS[name]}"
                _write(self.folder / path, written[name])
        return stat, found


def _write(path: Path, text: str) -> None:
    """Write a text, completely or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, f"{text}\n".encode(errors="backslashreplace") if text else b"")


def source_of(response: HtmlResponse, asked: FinderArguments) -> PageSource | None:
    """Return the source of a page for its items, ``None`` if no texts are stored."""
    return PageSource(response.text) if asked.contents else None


def feed_of(item: type, asked: FinderArguments) -> dict[str, Any]:
    """Return the options of the feed for the list of a crawl."""
    fields = listed_fields(item, asked.contents)
    return {"format": "jsonlines", "encoding": "utf-8", "overwrite": False, "fields": fields}


def name_of(url: str) -> str:
    """Return the name of the files of a page, without their endings: a part to read, and a digest of the URL.

    Examples
    --------
    >>> name_of("https://www.example.org/news/2025/ferry.html"), name_of("https://example.org/?id=7")
    ('ferry-ad68848cf97f', 'example.org-71f7e3614262')
    """
    host, path = parts_of(url)
    last = path.partition("?")[0].rstrip("/").rpartition("/")[2].rpartition(".")
    digest = blake2b(url.encode(errors="backslashreplace"), digest_size=6).hexdigest()
    return f"{safe_name(last[0] or last[2] or host, _SHORT)}-{digest}"


def title_of(response: HtmlResponse) -> str:
    """Return the title of a page."""
    title = response.selector.root.find(".//title")
    return "" if title is None else printable(" ".join("".join(title.itertext()).split()), _TITLE)


def declared_language(response: HtmlResponse) -> str:
    """Return the language that a page declares, ``""`` for none."""
    root = response.selector.root
    names = [root.get("lang"), root.get("xml:lang")]
    for meta in root.iterfind(".//meta[@http-equiv]"):
        if meta.get("http-equiv").lower() == "content-language":
            names.append(meta.get("content"))
    names.append((response.headers.get("Content-Language") or b"").decode("latin-1"))
    return next((name.strip()[:_LANGUAGE] for name in names if name and name.strip()), "")
