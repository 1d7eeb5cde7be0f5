"""Links to log in, share or print, and those of kinds that bring errors alone: last in every crawl, and never lost."""

from __future__ import annotations

import inspect
import json
from typing import TYPE_CHECKING, Any

import pytest

import scrapy_focus.policies
from scrapy_focus import Crawl, FilesGoal, Job, Mission, Policy, memory_frontier
from scrapy_focus.policies.branching.policy import BranchingBandit
from scrapy_focus.policies.orderings import BreadthFirst
from scrapy_focus.policies.tagpath.oracles import Informed
from scrapy_focus.web.poorlinks import PoorLinks, is_utility
from tests.made import EachAgain, classes_of, failure, fetch, file, link, page

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy_focus import Link, Pick

ARTICLES = 20
POLICIES = [
    cls
    for cls in classes_of(scrapy_focus.policies)
    if issubclass(cls, Policy) and not inspect.isabstract(cls) and not issubclass(cls, Informed)
]


def article(i: int) -> Link:
    """Return the link to an article."""
    return link(1 + i, url=f"http://h/2026/{i}", tag_path="html/body/main/a", anchor=f"article {i}", depth=1)


def links_on(url: str) -> list[Link]:
    """Return the links of a blog's pages: the first links to articles and to missing pages; each article to a file,
    to its own login, and to the next article.
    """
    if url == "http://h/":
        gone = [link(300 + i, url=f"http://h/old/{i}", tag_path="html/body/ul/li/a") for i in range(ARTICLES)]
        return [*gone, *[article(i) for i in range(1, ARTICLES + 1)]]
    name = url.rpartition("/")[2]
    if "/2026/" not in url or not name.isdigit():
        return []
    i = int(name)
    login = link(100 + i, url=f"http://h/wp-login.php?redirect_to={i}", tag_path="html/body/main/a", anchor="Log in")
    pdf = link(200 + i, url=f"http://h/{i}.pdf", tag_path="html/body/main/p/a", anchor="report")
    return [login, pdf, article(i % ARTICLES + 1)]


def answer(crawl: Crawl, pick: Pick) -> None:
    """Report what the blog answers."""
    crawl.sent(pick.id)
    if pick.method == "HEAD" and pick.url.endswith(".pdf"):
        crawl.report(file(pick, reward=1.0))
    elif "login" in pick.url or "/old/" in pick.url:
        crawl.report(failure(pick))
    elif pick.url.endswith(".pdf"):
        crawl.report(file(pick))
    else:
        crawl.report(page(pick), [] if pick.method == "HEAD" else links_on(pick.url))


def asked(crawl: Crawl, most: int = 1000) -> list[str]:
    """Crawl the blog to its end, and return what was asked for."""
    crawl.add([link(1, url="http://h/")])
    return resumed(crawl, most)


def resumed(crawl: Crawl, most: int = 1000) -> list[str]:
    """Do the same with a crawl that began."""
    urls = []
    while len(urls) < most and (pick := crawl.next()) is not None:
        urls.append(pick.url)
        answer(crawl, pick)
    return urls


def crawl_of(policy: Policy, **options: Any) -> Crawl:
    """Return a crawl for files where poor links come last."""
    goal = FilesGoal(types=["pdf"])
    mission = Mission.of(goal, words=["report"])
    return Crawl(policy, goal=goal, mission=mission, poor=PoorLinks(), strict=True, seed=1, **options)


@pytest.mark.parametrize("cls", POLICIES, ids=lambda cls: cls.__name__)
def test_logins_come_last_in_every_policy(cls: type[Policy]) -> None:
    """All are requested, and each login after everything else; in an endless crawl that revisits pages, none is."""
    crawl = crawl_of(cls(), frontier=memory_frontier)
    urls = asked(crawl, 200 if crawl.comes_back or cls.never_ends else 1000)
    logins = [i for i, url in enumerate(urls) if "login" in url]
    if crawl.comes_back or cls.never_ends:
        assert logins == []
        return
    others = [i for i, url in enumerate(urls) if "login" not in url and "/old/" not in url]
    gone = [i for i, url in enumerate(urls) if "/old/" in url]
    assert len({urls[i] for i in others}) == 1 + 2 * ARTICLES
    assert len({urls[i] for i in logins}) == len({urls[i] for i in gone}) == ARTICLES
    assert min(logins) > max(others)
    assert sum(i < max(others) for i in gone) <= 3 + 3, "three tell, and the 4th, 8th and 16th are tried"
    crawl.frontier.check()


def test_without_it_a_policy_decides_alone() -> None:
    """A crawl without a recogniser of poor links requests a login where the policy placed it."""
    urls = asked(Crawl(BreadthFirst(), frontier=memory_frontier, strict=True))
    assert urls[1] == "http://h/old/0"
    assert urls[1 + 2 * ARTICLES] == "http://h/wp-login.php?redirect_to=1"


def test_a_start_request_is_never_poor() -> None:
    """Who gives a login as a start URL wants it."""
    crawl = crawl_of(BreadthFirst(), frontier=memory_frontier)
    crawl.add([link(1, url="http://h/login"), link(2)])
    assert fetch(crawl).url == "http://h/login"


def test_logins_count_as_asleep_until_nothing_else_is_left() -> None:
    """They do not count as queued; they have no due time, and were not followed."""
    crawl = crawl_of(BreadthFirst(), frontier=memory_frontier)
    crawl.add([link(1, url="http://h/")])
    fetch(crawl, *links_on("http://h/2026/1"))
    status = crawl.status()
    assert (status.waiting, status.asleep, status.next_due, status.unfollowed) == (2, 1, None, 3)
    assert crawl.counts["poor/links"] == 1
    fetch(crawl)
    pick = crawl.next()
    assert pick is not None
    assert crawl.next() is None, "what is in flight may lead to more"
    crawl.report(page(pick))
    assert fetch(crawl).url == "http://h/wp-login.php?redirect_to=1"
    assert crawl.counts["poor/rounds"] == 1
    assert crawl.status().unfollowed == 0


def test_what_a_login_leads_to_is_fetched() -> None:
    """Links that a poor page gives are fetched as any others, and poor ones among them last again."""
    crawl = crawl_of(BreadthFirst(), frontier=memory_frontier)
    crawl.add([link(1, url="http://h/")])
    fetch(crawl, link(2, url="http://h/login"))
    fetch(crawl, link(3, url="http://h/logout"), link(4, url="http://h/new"))
    assert [fetch(crawl).url for _ in range(2)] == ["http://h/new", "http://h/logout"]
    assert crawl.next() is None


def test_no_more_poor_links_are_kept_than_may_wait() -> None:
    """At the limit of queued links, those of later pages are given up."""
    crawl = crawl_of(BreadthFirst(), frontier=memory_frontier, most_waiting=5)
    crawl.add([link(1, url="http://h/"), link(2)])
    for page_number in (1, 2):
        fetch(crawl, *[link(10 * page_number + i, url=f"http://h/{page_number}{i}/login") for i in range(6)])
    assert (crawl.sleepers.asleep, crawl.counts["link/given_up"]) == (6, 6)


def dead_and_good(n: int) -> list[Link]:
    """Return links to pages that are gone, and as many behind them that are not."""
    gone = [link(10 + i, url=f"http://h/old/{i}") for i in range(n)]
    return [*gone, *[link(1000 + i, url=f"http://h/new/{i}") for i in range(n)]]


@pytest.mark.parametrize("policy", [BreadthFirst, BranchingBandit])
def test_a_kind_that_brings_errors_alone_is_left_at_once(policy: type[Policy]) -> None:
    """Of 100 dead links, three are asked for until that is clear, and few as a trial; then the good ones; then the rest."""
    crawl = crawl_of(policy(), frontier=memory_frontier)
    crawl.add([link(1, url="http://h/")])
    fetch(crawl, *dead_and_good(100))
    urls = []
    while (pick := crawl.next()) is not None:
        urls.append(pick.url)
        crawl.sent(pick.id)
        crawl.report(failure(pick) if "/old/" in pick.url else page(pick))
    assert len(set(urls)) == len(urls) == 200
    last_good = max(i for i, url in enumerate(urls) if "/new/" in url)
    assert sum("/old/" in url for url in urls[:last_good]) <= 3 + 5
    assert urls[:3] != urls[-3:]


def test_a_kind_that_brings_errors_is_left_for_good_where_pages_come_back() -> None:
    """An endless crawl has no last link."""
    crawl = crawl_of(EachAgain(every=0.0), frontier=memory_frontier)
    crawl.add([link(1, url="http://h/")])
    fetch(crawl, *dead_and_good(100))
    urls = []
    for _ in range(500):
        pick = crawl.next()
        assert pick is not None
        urls.append(pick.url)
        crawl.sent(pick.id)
        crawl.report(failure(pick) if "/old/" in pick.url else page(pick))
    assert sum("/old/" in url for url in urls) <= 3 + 5
    crawl.frontier.check()


def learned(*answers: tuple[str, int | None]) -> PoorLinks:
    """Return what has seen these answers: a path, and a status."""
    crawl = Crawl(BreadthFirst(), frontier=memory_frontier, poor=(poor := PoorLinks()))
    crawl.add([link(i, url=f"http://h{path}") for i, (path, _) in enumerate(answers)])
    for _, status in answers:
        pick = crawl.next()
        assert pick is not None
        crawl.report(page(pick) if status == 200 else failure(pick, status))
    return poor


def test_every_2_to_the_nth_link_of_a_poor_kind_is_tried() -> None:
    """So that a kind that was misjudged is found out."""
    poor = learned(("/old/1", 404), ("/old/2", 410), ("/old/3", 404))
    assert [i for i in range(1, 40) if not poor.is_barren(f"http://h/old/x{i}")] == [4, 8, 16, 32]
    assert not poor.is_barren("http://h/new/1"), "another folder"
    assert not poor.is_barren("http://other/old/1"), "another host"


@pytest.mark.parametrize("status", [429, 503, 500, 401, 403, 408, None])
def test_what_a_site_may_answer_to_anything_says_nothing(status: int | None) -> None:
    """A server that is busy, asks who it is, or cannot be reached does not make a kind of links poor."""
    poor = learned(*[(f"/old/{i}", status) for i in range(9)])
    assert not poor.is_barren("http://h/old/99")


def test_a_page_clears_its_kind() -> None:
    """One page that came is enough, before the errors or after them."""
    for at in (0, 2, 5):
        answers = [(f"/old/{i}", 404) for i in range(5)]
        answers.insert(at, ("/old/good", 200))
        assert not learned(*answers, ("/old/a", 404), ("/old/b", 404)).is_barren("http://h/old/99")


def test_what_is_remembered_is_bounded() -> None:
    """Of kinds beyond 1,024 that which was heard of least lately is forgotten."""
    poor = learned(*[(f"/kind{letter}/x{j}?{i}=", 404) for letter in "ab" for i in range(600) for j in range(3)])
    assert len(poor.state()["errors"]) == 1024
    assert not poor.is_barren("http://h/kinda/x?0=")
    assert poor.is_barren("http://h/kindb/x?599=")


def test_what_was_learned_is_plain() -> None:
    """It goes through JSON, as the notes of a checkpoint do."""
    poor, other = learned(("/old/1", 404), ("/old/2", 404), ("/old/3", 404)), PoorLinks()
    poor.is_barren("http://h/old/4")
    other.restore(json.loads(json.dumps(poor.state())))
    assert other.state() == poor.state()
    assert [other.is_barren("http://h/old/5") for _ in range(4)] == [True, True, False, True]


@pytest.mark.parametrize("policy", [BreadthFirst, BranchingBandit])
def test_a_kill_anywhere_loses_no_login(tmp_path: Path, policy: type[Policy]) -> None:
    """Stopped after each 7th answer, without a checkpoint: the crawl asks for the same URLs, in the same order."""
    whole = asked(crawl_of(policy(), frontier=memory_frontier))
    urls: list[str] = []
    for run in range(100):
        crawl = crawl_of(policy(), job=Job(tmp_path / "focus", every=11))
        part = asked(crawl, 7) if not run else resumed(crawl, 7)
        assert crawl.state.choices.otherwise == 0
        crawl.close()
        if not part:
            break
        urls += part
    assert urls == whole


@pytest.mark.parametrize(
    ("url", "anchor"),
    [
        ("http://a.test/wp-login.php?redirect_to=http%3A%2F%2Fa.test%2F5", ""),
        ("http://a.test/user/login?came_from=/dataset", ""), ("http://a.test/accounts/register/", ""),
        ("http://a.test/2026/post/?replytocom=17", ""), ("http://a.test/post/?share=facebook&nb=1", ""),
        ("http://a.test/comment/reply/12/34", ""), ("http://a.test/article?id=5&print=1", ""),
        ("http://a.test/w/index.php?title=Main&action=edit", ""), ("http://a.test/w/index.php?title=Special%3AUserLogin", ""),
        ("http://a.test/shop/?add-to-cart=99", ""), ("http://a.test/cart/", ""), ("http://a.test/events/?ical=1", ""),
        ("https://www.facebook.com/sharer/sharer.php?u=http://a.test", ""), ("https://twitter.com/intent/tweet?text=x", ""),
        ("http://a.test/anmelden", ""), ("http://a.test/a/warenkorb.html", ""), ("http://a.test/zaloguj/", ""),
        ("http://a.test/x", "Log in to reply"), ("http://a.test/x", "Reply to Ann"), ("http://a.test/x", "  LOG IN \n"),
        ("http://a.test/x", "Drucken"), ("http://a.test/x", "Se connecter"), ("http://a.test/x", "Войти"),
        ("http://a.test/x", "登录"), ("http://a.test/x", "Iniciar sesión"), ("http://a.test/print/5", "Print this page"),
        ("http://a.test/x.php", "Einloggen »"),
    ],
)  # fmt: skip
def test_a_utility_link_is_recognised(url: str, anchor: str) -> None:
    """By its URL or its whole anchor, in several languages."""
    assert is_utility(url, anchor)


@pytest.mark.parametrize(
    ("url", "anchor"),
    [
        ("http://a.test/", "Home"), ("http://a.test/login-trends-of-2026/", "Login trends"),
        ("http://a.test/how-to-print", "How to print"), ("http://a.test/register", "Register of companies"),
        ("http://a.test/share-prices/", "Share prices"), ("http://a.test/blog/logistics", "Logistics"),
        ("http://a.test/report.pdf", "Print"), ("http://a.test/prices.csv", "Drucken"),
        ("http://a.test/dataset?format=csv&print=1", ""), ("http://a.test/login/manual.pdf", ""),
        ("http://a.test/2026/?page=2", "Older posts"), ("http://a.test/x", "Reply of the minister"),
        ("http://a.test/calendar/2026-05", "May"), ("http://a.test/search?action=search", "Search"),
        ("http://a.test/compare", "Compare"), ("http://a.test/art/prints", "Prints"), ("http://[broken", "Login"),
        ("http://a.test/x", "Log in to " + 200 * "x"), ("https://www.facebook.com/a.page", "Facebook"),
    ],
)  # fmt: skip
def test_what_only_looks_like_one_is_not(url: str, anchor: str) -> None:
    """Words within others, files, and words that mean something else, too."""
    assert not is_utility(url, anchor)


def test_published_systems_are_as_published() -> None:
    """Poor links come last by default in our own policy alone."""
    assert [cls.__name__ for cls in POLICIES if cls.poor_last] == ["BranchingBandit"]
