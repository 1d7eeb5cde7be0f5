"""Pages of a bookshop and of a collection of quotes, as people learn to crawl on: lists, details, tags, authors.

They are made from numbers alone, so each call gives the same pages. This module needs nothing but Python.
"""

from __future__ import annotations

from dataclasses import dataclass

_STYLES = ("Travel", "Mystery", "Poetry", "History", "Science", "Cooking", "Music", "Art", "Nature", "Sports")
_RATINGS = ("One", "Two", "Three", "Four", "Five")
_TAGS = ("life", "humor", "books", "truth", "time", "work", "home", "sea")


@dataclass(frozen=True)
class Books:
    """A shop under ``/books/``: lists of all books, a list for each category, and a page for each book.

    Parameters
    ----------
    books, categories
        Their numbers.
    listed
        Books on one page of a list; ``li.next`` leads to its next page.
    """

    books: int = 60
    categories: int = 6
    listed: int = 6

    def category(self, book: int) -> int:
        """Return the category of a book."""
        return book * 7 % self.categories

    def image(self, book: int) -> str:
        """Return the path of the cover of a book."""
        return f"/books/media/{book:03d}.png"

    def pages(self) -> dict[str, str]:
        """Return the HTML of each path."""
        found = self._list("/books/", range(self.books), "All books")
        for each in range(self.categories):
            members = [book for book in range(self.books) if self.category(book) == each]
            found |= self._list(self._category(each), members, self._style(each))
        return found | {self._book(book): self._detail(book) for book in range(self.books)}

    def _style(self, category: int) -> str:
        return f"{_STYLES[category % len(_STYLES)]} {category}"

    def _category(self, category: int) -> str:
        return f"/books/category/{_slug(self._style(category))}/"

    def _book(self, book: int) -> str:
        return f"/books/book-{book:03d}/index.html"

    def _list(self, path: str, members: range | list[int], title: str) -> dict[str, str]:
        """Return the pages of a list: ``path``, ``path``page-2.html and so on."""
        starts = range(0, len(members), self.listed)
        pages = {}
        for number, start in enumerate(starts, 1):
            cards = "".join(self._card(book) for book in members[start : start + self.listed])
            back = f'<li class="previous"><a href="page-{number - 1}.html">previous</a></li>' if number > 1 else ""
            on = f'<li class="next"><a href="page-{number + 1}.html">next</a></li>' if number < len(starts) else ""
            pager = f'<ul class="pager">{back}<li class="current">Page {number}</li>{on}</ul>'
            where = path if number == 1 else f"{path}page-{number}.html"
            pages[where] = _html(title, f"{self._side()}<section><h1>{title}</h1><ol>{cards}</ol>{pager}</section>")
            if number == 1 and len(starts) > 1:
                pages[f"{path}page-1.html"] = pages[where]
        return pages

    def _side(self) -> str:
        rows = "".join(
            f'<li><a href="{self._category(each)}">{self._style(each)}</a></li>' for each in range(self.categories)
        )
        return f'<aside class="side"><ul><li><a href="/books/">Books</a><ul>{rows}</ul></li></ul></aside>'

    def _card(self, book: int) -> str:
        path = self._book(book)
        return (
            f'<li><article class="product"><a href="{path}"><img src="{self.image(book)}" alt="cover"></a>'
            f'<p class="star {_rating(book)}"></p><h3><a href="{path}" title="{_title(book)}">{_title(book)}</a></h3>'
            f'<p class="price">£{_price(book)}</p></article></li>'
        )

    def _detail(self, book: int) -> str:
        style = self._style(self.category(book))
        crumbs = f'<ul class="crumbs"><li><a href="/books/">Home</a></li><li><a href="{self._category(self.category(book))}">{style}</a></li></ul>'
        seen = "".join(self._card((book + step) % self.books) for step in (1, 11, 17))
        table = (
            f"<table><tr><th>UPC</th><td>{book * 7919:08x}</td></tr><tr><th>Stock</th><td>{book % 23}</td></tr></table>"
        )
        return _html(
            _title(book),
            f'{crumbs}<article class="page"><h1>{_title(book)}</h1><p class="price">£{_price(book)}</p>'
            f'<p class="star {_rating(book)}"></p><img src="{self.image(book)}">{table}</article>'
            f'<section class="seen"><h2>Seen before</h2><ol>{seen}</ol></section>',
        )


@dataclass(frozen=True)
class Quotes:
    """A collection under ``/quotes/``: pages of quotes, of tags, of authors."""

    quotes: int = 40
    authors: int = 8
    listed: int = 5

    def pages(self) -> dict[str, str]:
        """Return the HTML of each path."""
        found = self._list("/quotes/page/", range(self.quotes))
        found["/quotes/"] = found["/quotes/page/1/"]
        for tag in _TAGS:
            found |= self._list(f"/quotes/tag/{tag}/page/", [n for n in range(self.quotes) if tag in self.tags(n)])
        for author in range(self.authors):
            name = self.author(author)
            about = f'<h3 class="name">{name}</h3><span class="born">{1800 + author * 13}</span>'
            found[f"/quotes/author/{_slug(name)}/"] = _html(name, f"{about}<p>About {name}.</p>")
        return found

    def author(self, quote: int) -> str:
        """Return who said a quote."""
        return f"Author {'ABCDEFGHIJKLMNOPQRSTUVWXYZ'[quote % self.authors]}"

    def tags(self, quote: int) -> list[str]:
        """Return the tags of a quote."""
        return sorted({_TAGS[quote % len(_TAGS)], _TAGS[(quote * 3 + 1) % len(_TAGS)]})

    def text(self, quote: int) -> str:
        """Return a quote."""
        return f"“What is said {quote} times stays”"

    def _list(self, path: str, members: range | list[int]) -> dict[str, str]:
        starts = range(0, len(members), self.listed)
        pages = {}
        for number, start in enumerate(starts, 1):
            cards = "".join(self._card(quote) for quote in members[start : start + self.listed])
            on = f'<li class="next"><a href="{path}{number + 1}/">Next</a></li>' if number < len(starts) else ""
            top = "".join(f'<a class="tag" href="/quotes/tag/{tag}/page/1/">{tag}</a>' for tag in _TAGS[:4])
            body = f'<div class="col">{cards}<nav><ul class="pager">{on}</ul></nav></div><div class="top">{top}</div>'
            pages[f"{path}{number}/"] = _html("Quotes", body)
        return pages

    def _card(self, quote: int) -> str:
        name = self.author(quote)
        tags = "".join(f'<a class="tag" href="/quotes/tag/{tag}/page/1/">{tag}</a>' for tag in self.tags(quote))
        return (
            f'<div class="quote"><span class="text">{self.text(quote)}</span><span>by <small class="author">{name}</small>'
            f' <a class="about" href="/quotes/author/{_slug(name)}/">(about)</a></span><div class="tags">{tags}</div></div>'
        )


def _title(book: int) -> str:
    return f"The Book of {book}"


def _price(book: int) -> str:
    return f"{10 + book * 37 % 50}.{book * 13 % 100:02d}"


def _rating(book: int) -> str:
    return _RATINGS[book % 5]


def _slug(text: str) -> str:
    return text.lower().replace(" ", "-")


def _html(title: str, body: str) -> str:
    return f"<!DOCTYPE html><html><head><title>{title}</title></head><body>{body}</body></html>"
