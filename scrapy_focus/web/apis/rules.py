"""What pages of one template ask for, and how the links that only a browser sees are made of the answers.

A rendered page shows both: which URLs its scripts asked for, and which links it has that the plain page has not. All
readings of these URLs are kept, as texts with holes that the page's URL and the answers fill. Each further page drops
those that would have asked for something else, or made a link that the page does not show. So a rule never says more
than its pages did; where nothing explains a link, there is no rule, and the page has to be rendered.
"""

from __future__ import annotations

from collections import ChainMap, Counter
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from scrapy_focus.web.apis.answers import Call, located
from scrapy_focus.web.apis.paging import Next, cursor_name, is_page, last_number, next_of, page_number, without_page
from scrapy_focus.web.apis.patterns import (
    Ground,
    Hole,
    Pattern,
    Rows,
    joined,
    leaf_holes,
    made_of,
    readings,
    relative,
    slot_holes,
)
from scrapy_focus.web.apis.templates import origin_of, slots_of, spelled, template_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

_CALLS = 32  # of a page that are looked at
_FAMILIES = 32  # APIs that are kept
_LINKS = 2_000  # of a page that are looked at ...
_READ = 40  # ... and of which readings are made
_TRIED = 2_000  # readings of the links of a page
_PATTERNS = 300  # that are kept
_ALIKE = 6  # paths with one URL that are told apart
_LEAVES = 40_000  # of the answers of a page
_GUESSED = 3  # pages that are predicted before a rule counts that knows no list
_FAILURES = 8  # pages after which nothing is expected any more ...
_WITHDRAWN = 3  # ... and rules that were wrong
_SHAPES = 100  # templates of links that are counted
_CHAINS = 1_000  # answers whose next pages are followed
_TOTALS = 200  # APIs whose totals are compared
_CHAIN = 500  # answers in a row, where no total says how many there are
_AHEAD = 4  # pages further on in a list than a rendering has shown that are read, where no total says where it ends
_DIGITS = 9  # of a number that is looked at
_NAMES = 64  # of parts of URLs that are numbers
_GROWTH = 3  # times that a total may grow with the number that is asked for
_FORMAT = 1


class _Family:
    """One API: the readings of the URL that pages ask for, and on how many pages in a row they held."""

    def __init__(self, patterns: list[Pattern]) -> None:
        self.patterns = patterns
        self.pages = 1  # in a row
        self.missed = 0  # in a row

    def urls(self, ground: Ground) -> set[str]:
        """Return what a page would ask for by each reading that can say it."""
        return {spelled(url) for pattern in self.patterns for url in made_of(pattern, ground)}


class _Record:
    """What became of a pattern of links."""

    def __init__(self, since: int) -> None:
        self.since = since  # the page from which it comes
        self.pages = 0  # on which it made a link
        self.needed = False  # whether it explained a link that others did not
        self.made = ""  # a digest of all that it made: equal readings have equal ones


class _Link(NamedTuple):
    depth: int
    total: int
    grown: int
    digest: str


class _Page(NamedTuple):
    """A rendered page, as patterns are compared with it."""

    ground: Ground
    goes_on: bool  # whether one of its answers says that there is more
    shown: set[str]  # its own URL and all of its links, spelled


class ApiRules:
    """The rules of one template of pages.

    Attributes
    ----------
    template
        Of the pages, by :func:`template_of`; ``""`` before the first.
    pages
        How many rendered pages it has learned from.
    withdrawn
        How many times a rule was wrong.
    reason
        Why there is no rule now, in words for a log; ``""`` where there is one.

    Notes
    -----
    What is kept is bounded: 32 APIs and 300 patterns of links, and what the last 1,000 answers said of the next. No
    value of a page is kept.

    Examples
    --------
    >>> rules = ApiRules()
    >>> for n in (7, 8):
    ...     answer = Call(f"http://a.test/api/sets/{n}", {"files": [{"name": f"{n}-a"}, {"name": f"{n}-b"}]})
    ...     links = [f"http://a.test/files/{n}-{x}.csv" for x in "ab"]
    ...     rules.learn(f"http://a.test/set/{n}", [answer], links)
    >>> rules.is_sure, rules.calls_of("http://a.test/set/9")
    (True, ['http://a.test/api/sets/9'])
    >>> answer = Call("http://a.test/api/sets/9", {"files": [{"name": "prices"}]})
    >>> rules.links_of("http://a.test/set/9", [answer])
    [('http://a.test/files/prices.csv', '/files/{files[].name}.csv')]
    """

    def __init__(self) -> None:
        self.template = ""
        self.pages = 0
        self.withdrawn = 0
        self.reason = "no page was rendered yet"
        self._agreed = 0  # pages in a row that were predicted
        self._failed = 0  # pages that were not, in all since the last that was
        self._families: dict[int, _Family] = {}
        self._patterns: dict[Pattern, _Record] = {}
        self._numbered = 0
        self._cursors: set[str] = set()  # names of parameters that have them
        self._by_flag = False  # scripts went on by a flag, and it was seen to end
        self._went_on = False
        self._ended = False
        self._zero = False
        self._counts: dict[str, int] = {}  # links by template that no answer counts, on the last page
        self._varied: set[str] = set()  # templates of which pages show more and fewer
        self._pagers: set[str] = set()  # slots of the page's URL that number its pages
        self._chains: dict[str, _Link] = {}
        self._totals: dict[str, tuple[int, int]] = {}  # what an API was asked for last, and the total that it stated
        self._endless: set[str] = set()  # APIs whose total grows with the number that is asked for
        self._steady: set[str] = set()  # APIs whose total is the same whatever number is asked for
        self._forward: set[str] = set()  # slots of the page's URL by whose number pages lead on to the next one
        self._shown_to: dict[str, int] = {}  # by slot: the largest number of a page that was rendered

    # -- what is known

    @property
    def is_sure(self) -> bool:
        """Whether the rules say what a rendering would show."""
        return not self.reason

    @property
    def is_hopeless(self) -> bool:
        """Whether so many pages were not as expected that no rule is looked for any more."""
        return self.withdrawn >= _WITHDRAWN or self._failed >= _FAILURES

    def predicts(self, page_url: str) -> bool:
        """Whether the rules say what a rendering of this page would show: it is one of the template, and all readings
        agree on what it asks for.
        """
        return (
            self.is_sure
            and not self._leads_on
            and template_of(page_url) == self.template
            and self._asked(page_url) is not None
        )

    def is_far(self, page_url: str) -> bool:
        """Whether a page is further on in a list than renderings have shown, and no total says where that ends.

        An API that answers any number would lead on for ever, so such a page has to be rendered, which shows whether
        the list is there. Four pages at most are read from the API before the next one that is rendered.
        """
        if self._steady:
            return False
        slots = slots_of(page_url)
        return any(_number_in(slots, name) > self._shown_to.get(name, 0) + _AHEAD for name in self._forward)

    def calls_of(self, page_url: str) -> list[str]:
        """Return what to ask for in place of rendering a page. There is nothing to ask for where the page's URL says
        all, and where the rules do not predict the page.
        """
        return list((self._asked(page_url) or {}).values()) if self.predicts(page_url) else []

    def links_of(self, page_url: str, calls: Sequence[Call]) -> list[tuple[str, str]]:
        """Return the links that the answers make, each once with its place, which is the pattern of its URL.

        ``calls`` are answers to what :meth:`calls_of` said, or that came behind one of these (:meth:`next_calls`), all
        at once or one by one. Where two readings were alike so far and differ now, what both make is returned.
        """
        return self._links(page_url, calls)[0]

    def is_decided(self, page_url: str, calls: Sequence[Call]) -> bool:
        """Whether all readings make the same links of these answers. Otherwise the page should be rendered, and learned
        from: this decides which one is right.
        """
        return self._links(page_url, calls)[1]

    def _links(self, page_url: str, calls: Sequence[Call]) -> tuple[list[tuple[str, str]], bool]:
        if not self.predicts(page_url):
            return [], False
        given = self._told_apart(page_url, calls[:_CALLS])
        ground = Ground(page_url, slots_of(page_url), _rows(given))
        goes_on = self._goes_on([call for _, call in given])
        answered = {number for number, _ in given}
        found: dict[str, tuple[str, str]] = {}
        is_decided = True
        for alike in self._used():
            able = _able(alike, answered)
            sets = [_links_by_key(pattern, self._made(pattern, ground, goes_on)) for pattern in able]
            if not sets:
                continue
            is_decided &= _is_same(sets)
            for key, link in _made_by_all(sets).items():
                found.setdefault(key, link)
        found.pop(spelled(page_url), None)
        return list(found.values()), is_decided and not self._leads_on

    def _told_apart(self, page_url: str, calls: Sequence[Call]) -> list[tuple[int, Call]]:
        """Return of which API each answer is: by its URL, its path, or as there is only one."""
        asked = {spelled(url): number for number, url in (self._asked(page_url) or {}).items()}
        paths = {url.partition("?")[0]: number for url, number in asked.items()}
        given = []
        for call in calls:
            url = spelled(call.url)
            number = asked.get(url, paths.get(url.partition("?")[0], -1))
            if number < 0 and len(asked) == 1:
                number = next(iter(asked.values()))
            if number >= 0:
                given.append((number, call))
        return given

    def listed(self, page_url: str, call: Call) -> list[tuple[str, str]]:
        """Return the links that an answer makes which is further on in the list of a page that was rendered.

        One rendering is enough for that: how a list is made into links does not change within it.
        """
        ground = Ground(page_url, slots_of(page_url), {})
        number = self._family_at(_path_of(call.url), ground)
        if number is None:
            return []
        ground = ground._replace(rows=_rows([(number, call)]))
        used = self._grouped(
            pattern
            for pattern, record in self._patterns.items()
            if record.needed and _is_counted(pattern) and pattern.families == {number}
        )
        found: dict[str, tuple[str, str]] = {}
        for alike in used:
            sets = [_links_by_key(pattern, made_of(pattern, ground)) for pattern in alike]
            if _is_same(sets):
                found.update(sets[0])
        found.pop(spelled(page_url), None)
        return list(found.values())

    def _family_at(self, path: str, ground: Ground) -> int | None:
        """Return the number of the first API from which a page would ask for something at a path."""
        for number, family in self._families.items():
            for pattern in family.patterns:
                if any(_path_of(url) == path for url in made_of(pattern, ground)):
                    return number
        return None

    def next_calls(self, call: Call) -> list[str]:
        """Return what to ask for behind an answer, where it says that there is more, on the same site.

        A chain of answers ends where one has nothing in its lists or the same as the one before, and where the total
        grows with the number that was asked for.
        """
        if self._is_endless(call):
            return []
        said = self._next(call)
        before = self._chains.get(spelled(call.url), _Link(0, said.total, 0, ""))
        digest = _digest_of_lists(call)
        if not said.url or not said.items or before.digest == digest:
            return []
        grown = before.grown + (said.total > before.total >= 0)
        is_counted = said.how == "number" and said.total >= 0
        if grown >= _GROWTH or (before.depth >= _CHAIN and not is_counted):
            return []
        if not self._append(spelled(said.url), _Link(before.depth + 1, said.total, grown, digest)):
            return []
        return [said.url]

    def _append(self, key: str, link: _Link) -> bool:
        """Add the next answer to a chain; ``False`` where it came earlier in one, so that they form a circle."""
        if key in self._chains and self._chains[key].depth < link.depth:
            return False
        self._chains[key] = link
        while len(self._chains) > _CHAINS:
            del self._chains[next(iter(self._chains))]
        return True

    # -- learning

    def learn(self, page_url: str, calls: Sequence[Call], links: Sequence[str], *, plain: Sequence[str] = ()) -> None:
        """A page of the template was rendered.

        Parameters
        ----------
        page_url
            Of the page.
        calls
            What its scripts asked for, in their order.
        links
            Those of the rendered page that the plain one has not.
        plain
            Those that both have: a rule may make them.
        """
        template = template_of(page_url)
        if not template or self.is_hopeless:
            return
        if self.template and template != self.template:
            return
        self.template = template
        self.pages += 1
        given = self._learn_calls(page_url, calls[:_CALLS])
        answers = [call for _, call in given]
        own = spelled(page_url)
        new = {spelled(url): url for url in links[:_LINKS]}
        page = _Page(
            ground=Ground(page_url, slots_of(page_url), _rows(given)),
            goes_on=self._goes_on(answers),
            shown={own, *new, *map(spelled, plain)},
        )
        named = _urls(page.ground)
        self._look_ahead(page_url, new.values())
        made = self._hold(page, new)
        explained = self._explained(made, named)
        left = {key: url for key, url in new.items() if key not in explained and key != own}
        numbers = self._numbers(answers)
        numbered = {key for key, url in left.items() if self._is_numbered(url, page_url, numbers)}
        self._score(unexplained=bool(left.keys() - numbered), explained=bool(explained & new.keys()))
        bare = self._read(left, numbered, page, named, made)
        uncounted = new.keys() - _counted(made) - numbered - {own}
        self._count(key for key in new if key in uncounted)
        self._choose(made, set(new) - {own})
        self._bound()
        self._conclude(bare)

    def _hold(self, page: _Page, new: Collection[str]) -> dict[Pattern, set[str]]:
        """Forget the patterns that make a link which a page does not show, and return what the others make."""
        alike_so_far = self._grouped(self._patterns)
        made: dict[Pattern, set[str]] = {}
        for pattern, record in list(self._patterns.items()):
            urls = self._shown(pattern, page)
            if urls is None:
                del self._patterns[pattern]
                continue
            made[pattern] = urls
            self._note(record, urls, new)
        # Where patterns that were alike differ on this page, those that make fewer links are not needed any more.
        for alike in alike_so_far:
            held = [pattern for pattern in alike if pattern in made]
            most = max((len(made[pattern]) for pattern in held), default=0)
            for pattern in held:
                if len(made[pattern]) < most:
                    self._patterns[pattern].needed = False
        return made

    def _explained(self, made: Mapping[Pattern, set[str]], named: Mapping[str, Sequence[Hole]]) -> set[str]:
        """Return the links that patterns explain: those of lists, and others of templates whose number never varied."""
        explained = set()
        for pattern, keys in made.items():
            if _is_counted(pattern):
                explained |= keys
                continue
            for key in keys:
                if key not in named and template_of(key) not in self._varied:
                    explained.add(key)
        return explained

    def _score(self, *, unexplained: bool, explained: bool) -> None:
        """Count a page as predicted or not; one that shows nothing new is neither."""
        if unexplained:
            self._agreed = 0
            self._failed += 1
        elif explained:
            self._agreed += 1
            self._failed = 0

    def check(self, page_url: str, predicted: Sequence[str], seen: Sequence[str], *, plain: Sequence[str] = ()) -> bool:
        """Return whether a page that was rendered as a sample shows what was predicted. Otherwise the rules are
        withdrawn, and ``reason`` says why; what is learned from then on may make others.

        Parameters
        ----------
        page_url
            Of the page.
        predicted
            Links by the rules.
        seen
            Links of the rendered page that the plain one has not.
        plain
            Those that both have.
        """
        wrong, missed = self.differences(page_url, predicted, seen, plain=plain)
        if not wrong and not missed:
            return True
        self._withdraw(
            f"{page_url} does not show {wrong[0]}" if wrong else f"{page_url} shows {missed[0]}, which no rule makes"
        )
        return False

    def differences(
        self, page_url: str, predicted: Sequence[str], seen: Sequence[str], *, plain: Sequence[str] = ()
    ) -> tuple[list[str], list[str]]:
        """Return which links that were predicted a rendered page does not show, and which that it shows were not;
        parameters as for :meth:`check`.
        """
        own = {spelled(page_url)}
        said, new = {spelled(url): url for url in predicted}, {spelled(url): url for url in seen}
        wrong = [url for key, url in said.items() if key not in own | new.keys() | {spelled(each) for each in plain}]
        missed = [
            url
            for key, url in new.items()
            if key not in own | said.keys() and not self._is_numbered(url, page_url, range(1 << 31))
        ]
        return wrong, missed

    def fail(self, page_url: str, url: str) -> None:
        """Something that :meth:`calls_of` said gave no answer: a header or a session may be missing."""
        self._withdraw(f"{url}, for {page_url}, gave no answer")

    # -- as JSON

    def to_json(self) -> dict[str, Any]:
        """Return the rules as values that JSON has."""
        return {
            "format": _FORMAT,
            "template": self.template,
            "pages": self.pages,
            "withdrawn": self.withdrawn,
            "reason": self.reason,
            "agreed": self._agreed,
            "failed": self._failed,
            "numbered": self._numbered,
            "cursors": sorted(self._cursors),
            "flags": [self._by_flag, self._went_on, self._ended, self._zero],
            "counts": dict(self._counts),
            "varied": sorted(self._varied),
            "pagers": sorted(self._pagers),
            "forward": sorted(self._forward),
            "shown_to": dict(self._shown_to),
            "apis": [
                [number, family.pages, family.missed, [_pattern_to_json(each) for each in family.patterns]]
                for number, family in self._families.items()
            ],
            "links": [
                [_pattern_to_json(pattern), record.since, record.pages, record.needed, record.made]
                for pattern, record in self._patterns.items()
            ],
        }

    @classmethod
    def of_json(cls, data: Any) -> Self:
        """Return the rules that :meth:`to_json` wrote.

        Raises
        ------
        ValueError
            If they are of another format, or broken.
        """
        rules = cls()
        try:
            if data["format"] != _FORMAT:
                raise ValueError(f"rules of format {data['format']!r}; this version reads {_FORMAT}")
            rules.template, rules.reason = str(data["template"]), str(data["reason"])
            rules.pages, rules.withdrawn = int(data["pages"]), int(data["withdrawn"])
            rules._agreed, rules._failed = int(data["agreed"]), int(data["failed"])
            rules._numbered = int(data["numbered"])
            rules._by_flag, rules._went_on, rules._ended, rules._zero = map(bool, data["flags"])
            rules._cursors = set(map(str, data["cursors"]))
            rules._pagers = set(map(str, data["pagers"]))
            rules._forward = set(map(str, data["forward"]))
            rules._varied = set(map(str, data["varied"]))
            rules._shown_to = {str(name): int(number) for name, number in data["shown_to"].items()}
            rules._counts = {str(template): int(n) for template, n in data["counts"].items()}
            for number, pages, missed, patterns in data["apis"][:_FAMILIES]:
                family = _Family([_pattern_of_json(each) for each in patterns])
                family.pages, family.missed = int(pages), int(missed)
                rules._families[int(number)] = family
            for pattern, since, pages, needed, made in data["links"][:_PATTERNS]:
                record = rules._patterns[_pattern_of_json(pattern)] = _Record(int(since))
                record.pages, record.needed, record.made = int(pages), bool(needed), str(made)
        except (KeyError, TypeError, IndexError, AttributeError, OverflowError) as error:
            raise ValueError(f"no rules: {error!r}") from error
        return rules

    # -- helpers: calls

    def _learn_calls(self, page_url: str, calls: Sequence[Call]) -> list[tuple[int, Call]]:
        """Narrow the readings of each API, and return which one each answer is of."""
        ground = Ground(page_url, slots_of(page_url), {})
        distinct = {spelled(call.url): call for call in calls}
        behind = self._look_at_all(distinct, ground)
        roots = [key for key in distinct if key not in behind]
        numbers = self._narrow(ground, roots)
        for key in roots:
            if key not in numbers and len(self._families) < _FAMILIES:
                numbers[key] = self._add_family(key, ground)
        given = []
        for key, call in distinct.items():
            root = _root_of(key, behind)
            if root in numbers:
                given.append((numbers[root], call))
        self._by_flag = self._went_on and self._ended
        return given

    def _add_family(self, key: str, ground: Ground) -> int:
        """Keep all readings of a URL that a page asks for, as those of a new API; return its number."""
        text = relative(key, ground.url)
        found = readings(text, slot_holes(ground.slots, text, is_call=True))
        number = self._numbered
        self._families[number] = _Family(found)
        self._numbered += 1
        return number

    def _look_at_all(self, distinct: Mapping[str, Call], ground: Ground) -> dict[str, str]:
        """Remember what answers say of how lists go on. Return those that came behind another, with the key of that."""
        behind: dict[str, str] = {}
        for key, call in distinct.items():
            before = next((root for root in distinct if root != key and self._is_behind(call, distinct[root])), None)
            # Two answers that name each other are not both behind the other: the first one is.
            if before is not None and behind.get(before) != key:
                behind[key] = before
            # After it was compared: what it says of its numbers counts for those that come later.
            self._look(call, ground)
        return behind

    def _narrow(self, ground: Ground, roots: Collection[str]) -> dict[str, int]:
        """Keep of each API the readings that ask for one of these URLs, and return which API each URL is of."""
        numbers: dict[str, int] = {}
        for number, family in list(self._families.items()):
            by_url: dict[str, list[Pattern]] = {}
            for pattern in family.patterns:
                for url in made_of(pattern, ground):
                    if (key := spelled(url)) in roots:
                        by_url.setdefault(key, []).append(pattern)
            if by_url:
                key, family.patterns = max(by_url.items(), key=lambda each: len(each[1]))
                family.pages += 1
                family.missed = 0
                numbers.setdefault(key, number)
                continue
            # One page may go without an API; two in a row, and it is not what the template asks for.
            family.pages = 0
            family.missed += 1
            if family.missed > 1:
                self._forget(number)
        return numbers

    def _is_behind(self, call: Call, before: Call) -> bool:
        """Whether an answer came behind another, and remember how one goes on there."""
        if origin_of(call.url) != origin_of(before.url) or call.url == before.url:
            return False
        key = spelled(call.url)
        said = next_of(before, cursors=self._cursors, zero=self._zero)
        if said.url and spelled(said.url) == key:
            return True
        if said.how == "flag":
            said = next_of(before, cursors=self._cursors, by_flag=True)
            if said.url and spelled(said.url) == key:
                self._went_on = True
                return True
        if name := cursor_name(call.url, before):
            self._cursors.add(name)
            return True
        return False

    def _look(self, call: Call, ground: Ground) -> None:
        """Remember what an answer says of how pages are numbered."""
        number = page_number(call)
        self._zero |= number == 0
        self._is_endless(call)
        said = next_of(call)
        self._ended |= said.flagged and said.how == "end"
        if number >= 0 and last_number(call) >= 0:
            self._pagers |= {name for name, value in ground.slots.items() if value == str(number)}
        if last_number(call) >= 0:
            self._pagers |= {name for name in ground.slots if is_page(name)}

    def _look_ahead(self, page_url: str, links: Iterable[str]) -> None:
        """Remember how far renderings have shown a list, and by which number its pages lead on."""
        slots = slots_of(page_url)
        for name in list(slots)[:_NAMES]:
            if (number := _number_in(slots, name)) >= 0 and (name in self._shown_to or len(self._shown_to) < _NAMES):
                self._shown_to[name] = max(number, self._shown_to.get(name, 0))
        for url in links:
            if template_of(url) == self.template:
                others = slots_of(url)
                self._forward |= {
                    name for name in self._shown_to if 0 <= _number_in(slots, name) == _number_in(others, name) - 1
                }

    @property
    def _leads_on(self) -> bool:
        """Whether pages lead to a next one, and only they know to which: the API says that there is always one more."""
        return bool(self._endless and self._forward)

    def _is_endless(self, call: Call) -> bool:
        """Whether the total that an API states grows as the number that it is asked for: it counts nothing."""
        number, total = page_number(call), last_number(call)
        if number < 0 or total < 0:
            return False
        api = _digest([without_page(call.url)])
        before = self._totals.pop(api, (number, total))
        self._totals[api] = (number, total)
        if number != before[0]:
            (self._steady.add if total == before[1] else self._steady.discard)(api)
        if number != before[0] and total - before[1] == number - before[0] and total - number <= 1:
            self._endless.add(api)
        while len(self._totals) > _TOTALS:
            self._endless.discard(oldest := next(iter(self._totals)))
            self._steady.discard(oldest)
            del self._totals[oldest]
        return api in self._endless

    def _next(self, call: Call) -> Next:
        self._ended |= (ended := next_of(call)).flagged and ended.how == "end"
        self._by_flag = self._went_on and self._ended
        self._zero |= page_number(call) == 0
        return next_of(call, cursors=sorted(self._cursors), by_flag=self._by_flag, zero=self._zero)

    def _goes_on(self, calls: Iterable[Call]) -> bool:
        """Whether an answer says that there is one behind it."""
        return any(
            next_of(call, cursors=sorted(self._cursors), zero=self._zero).how in ("url", "cursor", "number", "flag")
            for call in calls
            if not self._is_endless(call)
        )

    def _asked(self, page_url: str) -> dict[int, str] | None:
        """Return what a page asks for, by API; ``None`` where it is not known, or readings differ."""
        ground = Ground(page_url, slots_of(page_url), {})
        asked: dict[int, str] = {}
        for number in sorted({number for alike in self._used() for number in alike[0].families}):
            family = self._families.get(number)
            if family is None or family.pages < 2:
                return None
            urls = [url for pattern in family.patterns for url in made_of(pattern, ground)]
            if len({spelled(url) for url in urls}) != 1:
                return None
            asked[number] = urls[0]
        return asked

    # -- helpers: links

    def _made(self, pattern: Pattern, ground: Ground, goes_on: bool) -> Iterable[str]:
        if pattern.counts_on and not goes_on:
            return ()
        if any(hole.family < 0 and hole.plus < 0 for hole in pattern.holes) and not self._is_behind_first(
            pattern, ground
        ):
            return ()
        return made_of(pattern, ground)

    def _is_behind_first(self, pattern: Pattern, ground: Ground) -> bool:
        """Whether there is a page before this one, by its number."""
        return all(
            ground.slots.get(hole.name, "").isdecimal() and int(ground.slots[hole.name]) + hole.plus >= 1 - self._zero
            for hole in pattern.holes
            if hole.family < 0 and hole.plus < 0
        )

    def _shown(self, pattern: Pattern, page: _Page) -> set[str] | None:
        """Return what a pattern makes on a page, ``None`` if the page does not show all of it."""
        urls = set()
        for url in self._made(pattern, page.ground, page.goes_on):
            key = spelled(url)
            if key not in page.shown:
                return None
            urls.add(key)
        return urls

    def _read(
        self,
        links: Mapping[str, str],
        numbered: Collection[str],
        page: _Page,
        named: Mapping[str, Sequence[Hole]],
        made: dict[Pattern, set[str]],
    ) -> list[str]:
        """Add the readings of links that nothing explains, and return those that are made of nothing that is known.

        ``numbered`` are those that are reached by way of other pages: they need no reading.
        """
        if not links:
            return []
        values = leaf_holes(page.ground.rows)
        left, bare, tried = dict(links), [], 0
        for read, key in enumerate(links):
            if left.pop(key, None) is None:
                continue
            if read >= _READ or tried >= _TRIED:
                bare.append(links[key])
                continue
            is_bare = key not in numbered
            for pattern in _readings_of(key, page.ground, values, named):
                if pattern in made or (key in numbered and not pattern.holes):
                    continue
                tried += 1
                found = self._shown(pattern, page)
                if found is None or key not in found:
                    continue
                record = self._patterns[pattern] = _Record(self.pages)
                made[pattern] = found
                self._note(record, found, found)
                if pattern.holes:
                    is_bare = False
                    for each in found:
                        left.pop(each, None)
            if is_bare:
                bare.append(links[key])
        return bare

    def _count(self, urls: Iterable[str]) -> None:
        """Find out of which templates pages show more and fewer links, where no answer says how many."""
        counts = Counter(map(template_of, urls))
        for template, n in self._counts.items():
            if counts[template] != n and len(self._varied) < _SHAPES:
                self._varied.add(template)
        self._counts = dict(list(counts.items())[:_SHAPES])

    def _note(self, record: _Record, urls: set[str], new: Iterable[str]) -> None:
        record.pages += not urls.isdisjoint(new)
        record.made = _digest([record.made, *sorted(urls)])

    def _choose(self, made: Mapping[Pattern, set[str]], new: set[str]) -> None:
        """Mark the patterns that explain the links of a page: those that held on most pages, and make most, first."""
        groups = self._grouped(made)
        groups.sort(key=lambda alike: (-self._patterns[alike[0]].pages, -len(made[alike[0]] & new)))
        left = set(new)
        for alike in groups:
            explained = made[alike[0]] & left
            if explained:
                left -= explained
                for pattern in alike:
                    self._patterns[pattern].needed = True

    def _grouped(self, patterns: Iterable[Pattern]) -> list[list[Pattern]]:
        """Return the patterns by what they made: those of a group were never told apart. In each, those made of answers
        come first.
        """
        groups: dict[tuple[int, str], list[Pattern]] = {}
        for pattern in patterns:
            record = self._patterns[pattern]
            groups.setdefault((record.since, record.made), []).append(pattern)
        for alike in groups.values():
            alike.sort(key=lambda pattern: (not pattern.is_url, not pattern.families, len(pattern.holes)))
        return list(groups.values())

    def _used(self) -> list[list[Pattern]]:
        """Return the patterns by which links are predicted, in groups that were never told apart."""
        return self._grouped(
            pattern for pattern, record in self._patterns.items() if record.needed and record.pages >= 2
        )

    def _numbers(self, calls: Sequence[Call]) -> range:
        """Return the numbers of pages that answers speak of."""
        return range(0, max((last_number(call) for call in calls), default=-1) + 1)

    def _is_numbered(self, url: str, page_url: str, numbers: range) -> bool:
        """Whether a URL is the page's own with another number of a page, which is reached by way of the next ones."""
        if not self._pagers or template_of(url) != self.template:
            return False
        one, other = slots_of(page_url), slots_of(url)
        changed = [name for name in one.keys() | other.keys() if one.get(name) != other.get(name)]
        return (
            bool(changed)
            and set(changed) <= self._pagers
            and all(other.get(name, "").isdecimal() and int(other[name][:9]) in numbers for name in changed)
        )

    # -- helpers: state

    def _conclude(self, bare: Sequence[str]) -> None:
        if self.withdrawn >= _WITHDRAWN:
            return
        used = self._used()
        if any(_is_guess(alike) for alike in used):
            least = _GUESSED
        else:
            least = 1
        if self._failed >= _FAILURES:
            self.reason = f"{_FAILURES} pages were not as expected"
        elif self._leads_on:
            self.reason = "the API behind them says that there is always one more"
        elif bare:
            self.reason = f"{len(bare)} links are made of nothing that is known, such as {bare[0]}"
        elif not used:
            self.reason = "too few pages agree"
            self._agreed = 0
        elif self._agreed < least:
            self.reason = "too few pages agree"
        elif self._has_unknown_call(used):
            self.reason = "what pages ask for does not follow from their URLs"
        else:
            self.reason = ""

    def _has_unknown_call(self, used: Iterable[Sequence[Pattern]]) -> bool:
        """Whether patterns need an API that held on fewer than two pages in a row."""
        for alike in used:
            for number in alike[0].families:
                if number not in self._families or self._families[number].pages < 2:
                    return True
        return False

    def _withdraw(self, reason: str) -> None:
        self.withdrawn += 1
        self.reason = reason
        self._agreed = 0
        self._families.clear()
        self._patterns.clear()
        self._chains.clear()
        self._totals.clear()

    def _forget(self, number: int) -> None:
        del self._families[number]
        for pattern in [pattern for pattern in self._patterns if number in pattern.families]:
            del self._patterns[pattern]

    def _bound(self) -> None:
        """Keep as many patterns as there is room for: those that are needed, and that held on most pages."""
        if len(self._patterns) > _PATTERNS:
            kept = sorted(self._patterns.items(), key=lambda each: (not each[1].needed, -each[1].pages))
            self._patterns = dict(kept[:_PATTERNS])


def _rows(given: Sequence[tuple[int, Call]]) -> dict[tuple[int, str], Rows]:
    """Return the values of answers by API and path."""
    rows: dict[tuple[int, str], Rows] = {}
    left = _LEAVES
    for at, (number, call) in enumerate(given):
        for leaf in located(call.data):
            column = rows.setdefault((number, leaf.path), Rows([], [], {}, {}))
            column.indexes.append((at, *leaf.indexes))
            column.values.append(value := str(leaf.value))
            column.distinct[value] = None
            left -= 1
            if not left:
                return rows
    return rows


def _root_of(key: str, behind: Mapping[str, str]) -> str:
    """Return the first answer of the list in which an answer is."""
    for _ in range(_CALLS):  # they may form a circle
        key = behind.get(key, key)
    return key


def _path_of(url: str) -> str:
    """Return a URL in its compared spelling, without its query."""
    return spelled(url).partition("?")[0]


def _links_by_key(pattern: Pattern, urls: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return links with the pattern that made them, by their compared spelling."""
    place = str(pattern)
    return {spelled(url): (url, place) for url in urls}


def _able(alike: Sequence[Pattern], answered: set[int]) -> list[Pattern]:
    """Return the patterns of a group that need no other API than those that answered."""
    return [pattern for pattern in alike if pattern.families <= answered and pattern.is_url == alike[0].is_url]


def _is_same(sets: Sequence[Mapping[str, object]]) -> bool:
    """Whether all readings make the same links."""
    return all(each.keys() == sets[0].keys() for each in sets)


def _made_by_all(sets: Sequence[Mapping[str, tuple[str, str]]]) -> dict[str, tuple[str, str]]:
    """Return the links that each reading makes, as the first one makes them."""
    return {key: link for key, link in sets[0].items() if all(key in each for each in sets[1:])}


def _counted(made: Mapping[Pattern, set[str]]) -> set[str]:
    """Return the links of patterns for which answers say how many there are."""
    counted: set[str] = set()
    for pattern, keys in made.items():
        if _is_counted(pattern):
            counted |= keys
    return counted


def _readings_of(
    key: str, ground: Ground, values: dict[str, list[Hole]], named: Mapping[str, Sequence[Hole]]
) -> list[Pattern]:
    """Return the readings of a link: as a URL that an answer has, then as a text with holes."""
    text = relative(key, ground.url)
    slots = slot_holes(ground.slots, text, is_call=False)
    known = ChainMap({value: [*values.get(value, ()), *holes] for value, holes in slots.items()}, values)
    whole = [Pattern(("", ""), (hole,), is_url=True) for hole in named.get(key, ())]
    return [*whole, *readings(text, known)]


def _is_guess(alike: Sequence[Pattern]) -> bool:
    """Whether none of these patterns takes its links from a list or finds them as they are: as many as there were on
    some pages may not be on others.
    """
    return not any(
        _is_counted(pattern) or not pattern.holes or any(hole.is_reckoned for hole in pattern.holes)
        for pattern in alike
    )


def _is_counted(pattern: Pattern) -> bool:
    """Whether the answers say how many links a pattern makes."""
    return pattern.is_url or pattern.has_list


def _urls(ground: Ground) -> dict[str, list[Hole]]:
    """Return the values of answers that are URLs, as they are compared, with where they come from."""
    urls: dict[str, list[Hole]] = {}
    for (family, path), rows in ground.rows.items():
        hole = Hole(family, path)
        for value in rows.distinct:
            if ("/" in value or "." in value or "?" in value) and (url := joined(ground.url, value)):
                holes = urls.setdefault(spelled(url), [])
                if len(holes) < _ALIKE and hole not in holes:
                    holes.append(hole)
    return urls


def _number_in(slots: Mapping[str, str], name: str) -> int:
    """Return the number that is in a slot, -1 for none."""
    value = slots.get(name, "")
    return int(value) if value.isascii() and value.isdecimal() and len(value) <= _DIGITS else -1


def _digest(texts: Iterable[str]) -> str:
    return blake2b("\n".join(texts).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _digest_of_lists(call: Call) -> str:
    """Return a digest of how the lists of an answer begin: equal answers have equal ones."""
    return _digest(f"{leaf.path}={leaf.value}" for leaf in located(call.data, most=200) if "[]" in leaf.path)


def _pattern_to_json(pattern: Pattern) -> list[Any]:
    return [list(pattern.texts), [list(hole) for hole in pattern.holes], pattern.is_url]


def _pattern_of_json(data: Any) -> Pattern:
    texts, holes, is_url = data
    if not all(isinstance(text, str) for text in [*texts, *(hole[1] for hole in holes)]):
        raise ValueError("a pattern is made of texts")
    found = Pattern(tuple(map(str, texts)), tuple(map(_hole_of_json, holes)), bool(is_url))
    if len(found.texts) != len(found.holes) + 1 or len(found.holes) > 3:
        raise ValueError("a pattern has more or fewer holes than texts")
    if found.is_url and (len(found.holes) != 1 or found.holes[0].family < 0):
        raise ValueError("a pattern for a URL has one hole, for a value of an answer")
    return found


def _hole_of_json(data: Any) -> Hole:
    family, name, mode, times, plus = data
    hole = Hole(int(family), str(name), mode, int(times), int(plus))
    if hole.mode not in ("whole", "raw", "lower") or max(hole.times, abs(hole.plus)) > 1 << 53:
        raise ValueError("a hole is filled in a way that is not known")
    return hole
