"""How well libraries find the main text of a page, and what they cost: trafilatura, resiliparse, and ``web/main_text.py``.

    pip install trafilatura lxml_html_clean resiliparse
    pip download --no-deps --no-binary newspaper4k newspaper4k==0.9.6 && tar xf newspaper4k-0.9.6.tar.gz
    python benchmarks/main_text.py --labelled newspaper4k-0.9.6/tests/data

Two sets of pages: those of ``main_text_pages.py``, eleven kinds of sites in six languages; and, with ``--labelled``, the
news articles that the source of newspaper4k has for its tests, as ``html/NAME.html``, ``txt/NAME.txt`` and, for date and
author, ``metadata/NAME.json``. Their texts are what that library extracted, corrected by its authors. Longer pages
are cut at 1 MB, as a search for a topic cuts them, unless ``--whole`` is given.

Measured per extractor, each in a process of its own: precision, recall and F1 of words, as the mean of pages (letters of
scripts without spaces count as words); the share of pages with F1 below one half; milliseconds of CPU a page; resident memory
after all pages, without that of the interpreter and lxml. Dates and authors are right, wrong or missing. The last table
has pages of a given size: how long a thread extracts, and how long the main thread was kept from running meanwhile.

Not measured: the order of paragraphs, and formatting.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Any, NamedTuple

from lxml import html as lxml_html

from main_text_pages import LANGUAGES, KnownPage, article, pages
from scrapy_focus.web.dates import read_markup
from scrapy_focus.web.html import page_blocks, parsed
from scrapy_focus.web.main_text import main_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_CUT = 1_000_000  # characters
_WORD = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u9fff]|[^\W_]+")
_SIZES = (10_000, 100_000, 500_000, 1_000_000)  # characters
_LABELLED = {"latvian_article": "lv", "spanish_article": "es", "thai_article": "th"}


def everything(html: str) -> str:
    """All readable text, to compare with."""
    root = parsed(html)
    return "" if root is None else "\n".join(page_blocks(root))


def ours(html: str) -> str:
    """The main text as the watch for news compares it."""
    root = parsed(html)
    return "" if root is None else "\n".join(main_blocks(root))


def resiliparse(html: str) -> str:
    """Main content by Resiliparse."""
    from resiliparse.extract.html2text import extract_plain_text

    return str(extract_plain_text(html, main_content=True, alt_texts=False, comments=False))


def trafilatura(**options: Any) -> Callable[[str], str]:
    """Main content by trafilatura, with some options."""

    def extracted(html: str) -> str:
        from trafilatura import extract

        return extract(html, include_comments=False, **options) or ""

    return extracted


EXTRACTORS: dict[str, Callable[[str], str]] = {
    "all text": everything,
    "web/main_text.py": ours,
    "resiliparse": resiliparse,
    "trafilatura": trafilatura(),
    "trafilatura, fast": trafilatura(fast=True),
    "trafilatura, precision": trafilatura(favor_precision=True),
    "trafilatura, recall": trafilatura(favor_recall=True),
}


class Score(NamedTuple):
    """Precision, recall and F1 of the words of a text."""

    precision: float
    recall: float
    f1: float


class Row(NamedTuple):
    """The results of an extractor on some pages."""

    scores: dict[str, Score]  # by page
    milliseconds: list[float]
    megabytes: float
    failed: int  # pages on which it raised


def words_of(text: str) -> Counter[str]:
    """Return the words of a text, and how often each occurs."""
    return Counter(word.lower() for word in _WORD.findall(text))


def score(text: str, expected: str) -> Score:
    """Compare an extracted text with what was expected."""
    got, wanted = words_of(text), words_of(expected)
    common = (got & wanted).total()
    precision, recall = common / max(1, got.total()), common / max(1, wanted.total())
    return Score(precision, recall, 2 * precision * recall / (precision + recall) if common else 0.0)


def labelled(folder: Path, cut: int) -> list[KnownPage]:
    """Return the pages of a folder that have a text."""
    found = []
    for path in sorted((folder / "txt").glob("*.txt")):
        source, noted = folder / "html" / f"{path.stem}.html", folder / "metadata" / f"{path.stem}.json"
        if not source.exists():
            continue
        said = json.loads(noted.read_text(encoding="utf-8")) if noted.exists() else {}
        found.append(KnownPage(
            path.stem, source.read_text(encoding="utf-8", errors="replace")[:cut], path.read_text(encoding="utf-8"),
            said.get("title") or "", ", ".join(said.get("authors") or []), (said.get("publish_date") or "")[:10],
            said.get("language") or _LABELLED.get(path.stem, ""),
        ))  # fmt: skip
    return found


def resident() -> float:
    """Return the resident memory of this process, in megabytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def measure(name: str, known: Sequence[KnownPage]) -> Row:
    """Extract all pages twice, and time the second pass."""
    extract, scores, times, failed = EXTRACTORS[name], {}, [], 0
    lxml_html.fromstring("<p>x</p>")
    before = resident()
    for page in [*known, *known]:
        started = time.process_time()
        try:
            text = extract(page.html)
        except Exception as error:
            print(f"{name} failed on {page.name}: {error!r}", file=sys.stderr)
            text, failed = "", failed + 1
        times.append(1000 * (time.process_time() - started))
        scores[page.name] = score(text, page.text)
    return Row(scores, times[len(known) :], resident() - before, failed // 2)


def quality(title: str, rows: dict[str, Row]) -> list[str]:
    """Return the table of a set of pages."""
    found = [
        f"| {title} | precision | recall | F1 | below .5 | ms, median | ms, 95 % | ms, most | MB |",
        "|---" + "|--:" * 8 + "|",
    ]
    for name, row in rows.items():
        times, scores = sorted(row.milliseconds), [*row.scores.values()]
        means = " | ".join(f"{fmean(each[i] for each in scores):.3f}" for i in range(3))
        low = sum(each.f1 < 0.5 for each in scores)
        costs = [
            f"{median(times):.1f}",
            f"{times[int(0.95 * len(times))]:.0f}",
            f"{times[-1]:.0f}",
            f"{row.megabytes:.0f}",
        ]
        failed = f" ({row.failed} failed)" if row.failed else ""
        found.append(f"| {name}{failed} | {means} | {low} of {len(scores)} | {' | '.join(costs)} |")
    return found


def by_part(title: str, rows: dict[str, Row], part: int) -> list[str]:
    """Return the mean F1 by kind (part 0 of the name of a page) or language (part 1)."""
    names = list(dict.fromkeys(name.split()[part] for row in rows.values() for name in row.scores))
    found = [f"| {title} | {' | '.join(names)} |", "|---" + "|--:" * len(names) + "|"]
    for extractor, row in rows.items():
        means = [fmean(s.f1 for page, s in row.scores.items() if page.split()[part] == name) for name in names]
        found.append(f"| {extractor} | {' | '.join(f'{mean:.2f}' for mean in means)} |")
    return found


def said_by_ours(page: KnownPage) -> tuple[str, str]:
    """Return the date of a page by ``web/dates.py``, which reads no authors."""
    root = parsed(page.html)
    published = None if root is None else read_markup(root).published
    return "" if published is None else time.strftime("%Y-%m-%d", time.gmtime(published.at)), ""


def said_by_trafilatura(page: KnownPage, *, guesses: bool = False) -> tuple[str, str]:
    """Return the date and the author of a page by trafilatura; it may guess the date from texts."""
    from trafilatura.metadata import extract_metadata

    found = extract_metadata(parsed(page.html), extensive=guesses)
    return found.date or "", found.author or ""


SAID: dict[str, Callable[[KnownPage], tuple[str, str]]] = {
    "web/dates.py": said_by_ours,
    "trafilatura, stated dates": said_by_trafilatura,
    "trafilatura, also guesses": partial(said_by_trafilatura, guesses=True),
}


def metadata(known: Sequence[KnownPage]) -> list[str]:
    """Return the table of dates and authors."""
    found = [
        "| | date right | wrong | missing | made up | author right | wrong | missing | made up | ms |",
        "|---" + "|--:" * 9 + "|",
    ]
    for name, said_of in SAID.items():
        dates: Counter[str] = Counter()
        authors: Counter[str] = Counter()
        started = time.process_time()
        for page in known:
            date, author = said_of(page)
            dates[_verdict(date, page.date)] += 1
            authors[_verdict(author.replace(";", ","), page.author)] += 1
        spent = 1000 * (time.process_time() - started) / len(known)
        cells = [counts[verdict] for counts in (dates, authors) for verdict in ("right", "wrong", "missing", "made up")]
        found.append(f"| {name} | {' | '.join(map(str, cells))} | {spent:.1f} |")
    return found


def _verdict(got: str, wanted: str) -> str:
    if not got:
        return "missing" if wanted else "none"
    if not wanted:
        return "made up"
    return "right" if {*got.lower().split(", ")} == {*wanted.lower().split(", ")} else "wrong"


def of_size(size: int) -> str:
    """Return a page of about so many characters: the article of the first language, again and again."""
    page, paragraphs = article(LANGUAGES[0]).html, LANGUAGES[0].paragraphs
    more = "".join(f"<p>{n}. {text}</p>" for n in range(size // 1500) for text in paragraphs)[: size - len(page)]
    return page.replace("</article>", more + "</article>")


def stall(name: str, size: int) -> tuple[float, float]:
    """Return for how long a thread extracts a page, and the longest pause of the main thread meanwhile, in ms."""
    extract, html = EXTRACTORS[name], of_size(size)
    extract(article(LANGUAGES[0]).html)
    started = time.perf_counter()
    thread = threading.Thread(target=extract, args=[html])
    thread.start()
    last, longest = time.perf_counter(), 0.0
    while thread.is_alive():
        time.sleep(0.001)
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
    return 1000 * (last - started), 1000 * longest


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labelled", type=Path, help="folder with html/NAME.html and txt/NAME.txt")
    parser.add_argument("--whole", action="store_true", help="do not cut the labelled pages")
    given = parser.parse_args(arguments)
    sets = {"built": list(pages())}
    if given.labelled:
        sets["labelled"] = labelled(given.labelled, sys.maxsize if given.whole else _CUT)
    lines: list[str] = []
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        for title, known in sets.items():
            rows = {name: pool.submit(measure, name, known).result() for name in EXTRACTORS}
            lines += [*quality(f"{len(known)} {title} pages", rows), ""]
            if title == "built":
                lines += [*by_part("F1 by kind", rows, 0), "", *by_part("F1 by language", rows, 1), ""]
            lines += [*pool.submit(metadata, known).result(), ""]
        lines += [f"| ms / longest pause, ms | {' | '.join(f'{size // 1000} kB' for size in _SIZES)} |"]
        lines += ["|---" + "|--:" * len(_SIZES) + "|"]
        for name in ("web/main_text.py", "resiliparse", "trafilatura", "trafilatura, fast"):
            cells = [pool.submit(stall, name, size).result() for size in _SIZES]
            lines.append(f"| {name} | {' | '.join(f'{took:,.0f} / {pause:,.0f}' for took, pause in cells)} |")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
