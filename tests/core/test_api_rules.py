"""Rules of APIs: what they predict on sites of several kinds, of pages that they have not learned from."""

from __future__ import annotations

import json
import pickle
import random
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_focus.web.apis.answers import Call
from scrapy_focus.web.apis.patterns import Ground, made_of, readings, relative, slot_holes
from scrapy_focus.web.apis.rules import ApiRules
from scrapy_focus.web.apis.templates import slots_of, spelled, template_of
from tests.core import apisites
from tests.core.apisites import HOST, ApiSite, Shown

KINDS = {
    "next": apisites.by_next_url,
    "number": apisites.by_number,
    "offset": apisites.by_offset,
    "cursor": apisites.by_cursor,
    "path": apisites.by_path,
    "flag": apisites.by_flag,
    "strings": apisites.of_strings,
    "urls": apisites.of_urls,
    "numbers": apisites.with_numbers_everywhere,
    "nested": apisites.nested,
    "everything": apisites.with_everything,
    "growing": apisites.with_growing_total,
}


class Figures(NamedTuple):
    """How a site was crawled by rules."""

    rendered: int  # until the rules were sure
    undecided: int  # pages rendered later, as readings differed
    predicted: int  # links ...
    wrong: int  # ... that no page of the site shows
    shown: int  # links of the pages that were not rendered, but to other pages of lists ...
    found: int  # ... and those of them that were predicted for their page
    asked: int  # distinct URLs of the API
    unanswered: int


def learn(rules: ApiRules, site: ApiSite, page: str) -> None:
    """Render a page."""
    shown = site.render(page)
    rules.learn(page, shown.calls, shown.links, plain=shown.plain)


def taught(site: ApiSite, seed: int = 1) -> tuple[ApiRules, list[str]]:
    """Render pages until the rules are sure or nothing is expected, and return the others."""
    pages = list(site.pages)
    random.Random(seed).shuffle(pages)
    rules = ApiRules()
    while pages and not rules.is_sure and not rules.is_hopeless:
        learn(rules, site, pages.pop())
    return rules, pages


def answers_of(rules: ApiRules, site: ApiSite, page: str) -> tuple[list[Call], int]:
    """Ask an API for a page, and for what comes behind; return the answers, and how many questions had none."""
    calls, seen, unanswered = [], set(), 0
    waiting = rules.calls_of(page)
    while waiting:
        url = waiting.pop()
        if url in seen:
            continue
        seen.add(url)
        data = site.api(url)
        if data is None:
            unanswered += 1
            continue
        calls.append(Call(url, data))
        waiting += rules.next_calls(calls[-1])
    return calls, unanswered


def crawled(site: ApiSite, seed: int) -> Figures:
    """Learn from a few pages in random order, and predict the others."""
    rules, pages = taught(site, seed)
    rendered = len(site.pages) - len(pages)
    everything = {
        spelled(url) for page in site.pages for url in (page, *site.render(page).links, *site.render(page).plain)
    }
    undecided = predicted = wrong = shown = found = unanswered = 0
    asked = set()
    for page in pages:
        calls, failed = answers_of(rules, site, page)
        asked |= {call.url for call in calls}
        unanswered += failed
        if not rules.is_decided(page, calls):
            undecided += 1
            learn(rules, site, page)
            continue
        links = {spelled(url) for url, place in rules.links_of(page, calls) if place}
        wanted = {spelled(url) for url in site.render(page).links if template_of(url) != template_of(page)}
        predicted += len(links)
        wrong += len(links - everything)
        shown += len(wanted)
        found += len(wanted & links)
    return Figures(rendered, undecided, predicted, wrong, shown, found, len(asked), unanswered)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_rules_predict_what_pages_show(kind: str, seed: int) -> None:
    """After two pages, or four where no answer says how many there are, all links of all other pages are predicted, and none that the site does not show."""
    site = KINDS[kind]()
    figures = crawled(site, seed)
    assert figures.rendered <= (4 if kind == "urls" else 2), figures
    assert figures.undecided <= 1, figures
    assert figures.wrong == 0, figures
    assert figures.shown == figures.found > 0, figures
    assert figures.unanswered == 0, figures
    assert figures.asked <= 4 * len(site.pages), figures


@pytest.mark.parametrize("kind", ["next", "number", "offset"])
def test_lists_lead_to_their_next_page(kind: str) -> None:
    """The link to the next page of a list is predicted, on all pages but the last."""
    site = KINDS[kind]()
    rules, pages = taught(site)
    for page, following in zip(site.pages, [*site.pages[1:], ""], strict=True):
        if page in pages:
            calls = [Call(url, site.api(url)) for url in rules.calls_of(page)]
            lists = {url for url, _ in rules.links_of(page, calls) if template_of(url) == template_of(page)}
            assert (following in lists) == bool(following)
            assert lists <= set(site.pages)


@pytest.mark.parametrize("make", [apisites.with_token, apisites.with_chance])
def test_what_follows_from_nothing_has_no_rule(make: Any) -> None:
    """Tokens are not made up, and pages whose links change by chance are rendered or left, with a reason."""
    site = make()
    rules, pages = taught(site)
    assert rules.is_hopeless
    assert rules.reason
    assert not rules.predicts(pages[0])
    assert rules.calls_of(pages[0]) == []
    assert rules.links_of(pages[0], site.render(pages[0]).calls) == []


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "make", [apisites.first_of_many, apisites.some_of_many, apisites.all_but_first, apisites.in_html, apisites.in_keys]
)
def test_links_that_no_answer_counts_have_no_rule(make: Any, seed: int) -> None:
    """Where pages show some of what an answer has, or what is read in no answer, nothing is predicted."""
    rules, _ = taught(make(), seed)
    assert not rules.is_sure
    assert rules.is_hopeless


def test_pages_from_zero_are_known_by_their_first() -> None:
    """Who has seen page 0 asks for no page behind the last."""
    site = apisites.from_zero()
    rules = ApiRules()
    for page in (site.pages[0], site.pages[4]):
        learn(rules, site, page)
    assert rules.is_sure
    call = Call(f"{HOST}/api/l?page=8", site.api(f"{HOST}/api/l?page=8"))
    assert rules.next_calls(call) == []
    assert len(rules.links_of(site.pages[8], [call])) == 5


@pytest.mark.parametrize("kind", ["everything", "growing"])
def test_an_api_that_answers_everything_is_left(kind: str) -> None:
    """From the last page on, such an API is asked five times at most."""
    site = KINDS[kind]()
    rules = ApiRules()
    for page in site.pages[:2]:
        learn(rules, site, page)
    calls, _ = answers_of(rules, site, site.pages[-1])
    assert 1 <= len(calls) <= 5
    alone = ApiRules()  # which has seen no page
    call = Call(f"{HOST}/api/endless?page=1", site.api(f"{HOST}/api/endless?page=1"))
    asked = 1
    while asked < 20 and (following := alone.next_calls(call)):
        call = Call(following[0], site.api(following[0]))
        asked += 1
    assert asked <= 5


def test_all_readings_are_kept_until_pages_decide() -> None:
    """Page 4 asked for cat=4&offset=4: the next page tells which of them is the page's."""
    site = apisites.by_flag()
    for first, second in ((3, 7), (7, 3), (11, 3)):  # the pages 4, 8 and 12, whose numbers are offsets, too
        rules = ApiRules()
        learn(rules, site, site.pages[first])
        assert not rules.is_sure
        learn(rules, site, site.pages[second])
        assert rules.calls_of(site.pages[9]) == [f"{HOST}/api/more?cat=10&offset=4"]


def test_readings_that_differ_are_decided_by_a_rendering() -> None:
    """Where two readings were alike and differ now, only what both make is predicted, and the page is not decided."""

    def shown(number: int, codes: list[str]) -> Shown:
        answer = Call(f"{HOST}/api/{number}", {"id": number, "parts": [{"code": code} for code in codes]})
        return Shown([answer], [f"{HOST}/part/{number}/{code}" for code in codes])

    rules = ApiRules()
    for number in (7, 8):
        page = shown(number, [str(number)])
        rules.learn(f"{HOST}/set/{number}", page.calls, page.links)
    assert rules.is_sure
    page = shown(9, ["9", "x"])
    assert [url for url, _ in rules.links_of(f"{HOST}/set/9", page.calls)] == [f"{HOST}/part/9/9"]
    assert not rules.is_decided(f"{HOST}/set/9", page.calls)
    rules.learn(f"{HOST}/set/9", page.calls, page.links)
    page = shown(10, ["y"])
    assert rules.is_decided(f"{HOST}/set/10", page.calls)
    assert rules.links_of(f"{HOST}/set/10", page.calls) == [(f"{HOST}/part/10/y", "/part/{id}/{parts[].code}")]


def test_places_are_patterns() -> None:
    """The place of a link is the path of its URL in the answer, or how it is made of values."""
    site = apisites.by_path()
    rules, pages = taught(site)
    calls, _ = answers_of(rules, site, pages[0])
    places = {place for _, place in rules.links_of(pages[0], calls)}
    assert {"files[].url", "menu[].href", "/about/{related[].id}/{related[].name}"} <= places


def test_only_what_is_needed_is_asked_for() -> None:
    """An answer of which no link is made is not asked for."""
    rules = ApiRules()
    for number in (7, 8):
        calls = [Call(f"{HOST}/api/user", {"id": 1}), Call(f"{HOST}/api/{number}", [f"{number}.csv"])]
        rules.learn(f"{HOST}/set/{number}", calls, [f"{HOST}/file/{number}.csv"])
    assert rules.calls_of(f"{HOST}/set/9") == [f"{HOST}/api/9"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda links: [*links, f"{HOST}/other"], "shows http://a.test/other, which no rule makes"),
        (lambda links: links[1:], "does not show http://files.test/"),
    ],
)
def test_a_rule_that_fails_is_withdrawn(change: Any, reason: str) -> None:
    """A sample that shows more or less withdraws the rules with a reason; they may come back twice, and no more."""
    site = apisites.by_path()
    rules, pages = taught(site)
    for withdrawn in (1, 2, 3):
        page = pages.pop()
        calls, _ = answers_of(rules, site, page)
        links = [url for url, _ in rules.links_of(page, calls)]
        assert rules.check(page, links, links)
        assert rules.check(page, links, [url for url in links if "files" not in url], plain=links)
        assert not rules.check(page, links, change(links))
        assert reason in rules.reason
        assert rules.withdrawn == withdrawn
        assert not rules.predicts(page)
        assert rules.is_hopeless == (withdrawn == 3)
        for _ in range(2):
            learn(rules, site, pages.pop())
        assert rules.is_sure == (withdrawn < 3)


def test_an_api_that_gives_no_answer_is_left() -> None:
    """What answers scripts and not the crawl withdraws the rules, too."""
    site = apisites.by_path()
    rules, pages = taught(site)
    rules.fail(pages[0], rules.calls_of(pages[0])[0])
    assert not rules.is_sure
    assert "gave no answer" in rules.reason


def test_a_page_without_its_links_is_no_page_of_the_rule() -> None:
    """A button that makes a file itself has no URL: a rule for its neighbours does not survive it."""
    site = apisites.of_urls()
    rules, pages = taught(site)
    rules.learn(pages[0], [], [])
    assert not rules.is_sure


def test_pages_of_other_templates_are_not_predicted() -> None:
    """Rules are for one template, whatever else they are given."""
    site = apisites.by_path()
    rules, _ = taught(site)
    rules.learn(f"{HOST}/other/7", [], [f"{HOST}/x"])
    assert rules.is_sure
    assert not rules.predicts(f"{HOST}/other/7")
    assert not rules.predicts("no url")


@pytest.mark.parametrize("kind", KINDS)
def test_rules_survive_pickles_and_json(kind: str) -> None:
    """What is stored says the same as before, and is small."""
    site = KINDS[kind]()
    rules, pages = taught(site)
    stored = json.dumps(rules.to_json())
    assert len(stored) < 20_000
    for again in (pickle.loads(pickle.dumps(rules)), ApiRules.of_json(json.loads(stored))):
        assert again.to_json() == rules.to_json()
        for page in pages[:5]:
            calls, _ = answers_of(rules, site, page)
            assert again.calls_of(page) == rules.calls_of(page)
            assert again.links_of(page, calls) == rules.links_of(page, calls)


@given(st.data())
def test_broken_json_makes_no_rules(data: st.DataObject) -> None:
    """Whatever is in a file of rules, they work or are refused."""
    site = apisites.by_path(6)
    rules, pages = taught(site)
    stored = json.loads(json.dumps(rules.to_json()))
    holder, key = stored, data.draw(st.sampled_from(sorted(stored)))
    while isinstance(holder[key], (list, dict)) and holder[key] and data.draw(st.booleans()):
        holder = holder[key]
        key = data.draw(st.sampled_from(range(len(holder)) if isinstance(holder, list) else sorted(holder)))
    junk = st.none() | st.integers() | st.text(max_size=3) | st.floats() | st.lists(st.integers(), max_size=6)
    holder[key] = data.draw(junk)
    try:
        again = ApiRules.of_json(stored)
    except ValueError:
        return
    again.links_of(pages[0], [Call(url, site.render(pages[0]).calls[1].data) for url in again.calls_of(pages[0])])
    learn(again, site, pages[0])


ODD = st.recursive(
    st.sampled_from(
        ["1", "en", "4", 1, 4, True, None, "/files/4", "http://a.test/x", "a b", "ü", "\ud800", "%", "9" * 400]
    ),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "next", "page", "items"]), inner)
    ),
    max_leaves=12,
)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 5), ODD, st.lists(st.sampled_from(["/1", "/en/4", "/x?a=1", "/ü b", "//", "http://["]))
        ),
        max_size=6,
    )
)
def test_any_page_is_learned(pages: list[tuple[int, Any, list[str]]]) -> None:
    """Values that are everywhere, odd texts and links that change make no exception; state stays storable."""
    rules = ApiRules()
    for number, data, links in pages:
        url = f"{HOST}/p/{number}?a={number}"
        calls = [Call(f"{HOST}/api/{number}?page={number}", data), Call(f"{HOST}/api/4/{number}", data)]
        rules.learn(url, calls, [f"{HOST}{link}" for link in links])
        for call in calls:
            rules.next_calls(call)
        rules.links_of(url, calls)
        assert ApiRules.of_json(json.loads(json.dumps(rules.to_json()))).to_json() == rules.to_json()


@given(
    st.integers(0, 999),
    st.text("abAB ü/&=%.-", max_size=6),
    st.sampled_from(["{0}", "{0}/{1}", "x{0}.csv?a={1}", "{1}?b={0}&c={0}"]),
)
def test_readings_say_what_was_read(number: int, text: str, shape: str) -> None:
    """Each reading of a URL makes this URL on the page where it was read."""
    page = f"{HOST}/set/{number}?q={text.encode('utf-8').hex()}"
    url = spelled(f"{HOST}/api/{shape.format(number, text)}")
    slots = slots_of(page)
    known = slot_holes(slots, relative(url, page), is_call=True)
    found = readings(relative(url, page), known)
    assert found
    for pattern in found:
        assert {spelled(made) for made in made_of(pattern, Ground(page, slots, {}))} == {url}


def test_what_is_kept_is_bounded() -> None:
    """Links and answers that change at each page leave no more than so many patterns and answers."""
    rng = random.Random(1)
    rules = ApiRules()
    for number in range(12):
        rows = [{"id": rng.randrange(10**9), "name": "1"} for _ in range(50)]
        calls = [Call(f"{HOST}/api/{number}/{k}/{rng.random()}?page=1", {"pages": 9, "rows": rows}) for k in range(40)]
        links = [f"{HOST}/{row['id']}/{rng.randrange(3)}/1?a=1&b={number}" for row in rows]
        rules.learn(f"{HOST}/set/{number}", calls, links)
        for call in calls:
            rules.next_calls(call)
        assert len(pickle.dumps(rules)) < 1_000_000
    assert rules.is_hopeless
    for number in range(3_000):
        rules.next_calls(Call(f"{HOST}/api/x{number}?page=1", {"pages": 9, "rows": [number]}))
    assert len(pickle.dumps(rules)) < 1_000_000


def test_a_page_is_not_predicted_while_readings_of_its_calls_differ() -> None:
    """Two parts of a page's URL were equal so far: where they differ, it is not known which one is asked for."""
    rules = ApiRules()
    for number in (7, 8):
        calls = [Call(f"{HOST}/api/{number}", [{"url": f"/f/{number}x.csv"}])]
        rules.learn(f"{HOST}/set/{number}?id={number}", calls, [f"{HOST}/f/{number}x.csv"])
    assert rules.calls_of(f"{HOST}/set/9?id=9") == [f"{HOST}/api/9"]
    assert not rules.predicts(f"{HOST}/set/9?id=3")
    assert rules.calls_of(f"{HOST}/set/9?id=3") == []


def test_rules_explain_all_links_or_none() -> None:
    """A rule that holds is not used while another link of the page comes from nowhere."""
    rules = ApiRules()
    for number, other in ((7, []), (8, [f"{HOST}/z/{'q' * 8}"])):
        calls = [Call(f"{HOST}/api/{number}", [{"url": f"/f/{number}x.csv"}])]
        rules.learn(f"{HOST}/set/{number}", calls, [f"{HOST}/f/{number}x.csv", *other])
    assert not rules.is_sure
    assert "/z/qqqqqqqq" in rules.reason


def test_an_answer_that_repeats_itself_is_the_last() -> None:
    """An API that does not look at the number is left after the second answer."""
    rules = ApiRules()
    data = {"pages": 50, "rows": [{"id": 1}]}
    (second,) = rules.next_calls(Call(f"{HOST}/api?page=1", data))
    assert rules.next_calls(Call(second, data)) == []


def numbered_list(says: Any, n: int, *, last: int = 100) -> tuple[str, list[Call], list[str]]:
    """Return a page of a list with its answer, which says something of those behind it, and its links."""
    data = {"results": [{"id": f"d{n * 100 + k}"} for k in range(5)], **says(n)}
    links = [f"{HOST}/set/{row['id']}" for row in data["results"]] + [f"{HOST}/list/{n + 1}"] * (n < last)
    return f"{HOST}/list/{n}", [Call(f"{HOST}/api/list?page={n}", data)], links


@pytest.mark.parametrize("says", [lambda n: {"has_more": True}, lambda n: {"next": f"/api/list?page={n + 1}"}])
def test_lists_are_read_no_further_than_renderings_have_shown_them(says: Any) -> None:
    """Where no total says where a list ends, four pages are read before one is to be rendered; a total is believed."""
    rules, counted = ApiRules(), ApiRules()
    for n in (1, 2, 3):
        rules.learn(*numbered_list(says, n))
        counted.learn(*numbered_list(lambda n: {"pages": 100}, n))
    assert rules.is_sure
    assert counted.is_sure
    assert [rules.is_far(f"{HOST}/list/{n}") for n in (4, 7, 8, 20)] == [False, False, True, True]
    assert not counted.is_far(f"{HOST}/list/20")
    rules.learn(*numbered_list(says, 8))
    again = ApiRules.of_json(json.loads(json.dumps(rules.to_json())))
    assert [again.is_far(f"{HOST}/list/{n}") for n in (12, 13)] == [False, True]
    assert not rules.check(*_checked(rules, numbered_list(says, 12, last=12))), "the list ends, and the API goes on"


def _checked(rules: ApiRules, page: tuple[str, list[Call], list[str]]) -> tuple[str, list[str], list[str]]:
    url, calls, links = page
    return url, [link for link, _ in rules.links_of(url, calls)], links


@pytest.mark.parametrize("says", [lambda n: {"pages": n + 1}, lambda n: {"total": 5 * (n + 1)}])
def test_a_total_that_grows_leads_to_no_page(says: Any) -> None:
    """Where the API says that there is always one more, only renderings show which page comes next: there is no rule."""
    rules = ApiRules()
    for n in (1, 2, 3):
        rules.learn(*numbered_list(says, n))
    assert not rules.is_sure
    assert "always one more" in rules.reason
    assert not rules.predicts(f"{HOST}/list/4")
