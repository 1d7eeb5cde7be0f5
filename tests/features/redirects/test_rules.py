"""What is learned from the redirects of a host, and when it ends."""

from __future__ import annotations

import pytest

from scrapy_focus.web.redirect_rules import RedirectRules

CHANGES = [
    ("http://a.test/x{}", "http://a.test/x{}/", "http://a.test/new", "http://a.test/new/"),
    ("http://a.test/x{}?b=1", "http://a.test/x{}/?b=1", "http://a.test/new?c", "http://a.test/new/?c"),
    ("http://a.test/x{}/", "http://a.test/x{}", "http://a.test/new/", "http://a.test/new"),
    ("http://a.test/x{}.html", "https://a.test/x{}.html", "http://a.test/new.html", "https://a.test/new.html"),
    ("http://a.test/x{}.html", "http://www.a.test/x{}.html", "http://a.test/", "http://www.a.test/"),
    ("http://www.a.test/x{}.html", "http://a.test/x{}.html", "http://www.a.test/", "http://a.test/"),
    ("http://a.test/x{}", "https://www.a.test/x{}/", "http://a.test/new", "https://www.a.test/new/"),
]
IDS = ["slash", "slash and query", "no slash", "https", "www", "no www", "all at once"]


def target(rules: RedirectRules, url: str) -> str:
    """Return the URL to request for a URL."""
    guess = rules.guess(url)
    return url if guess is None else guess.url


def learn(rules: RedirectRules, url: str, leads_to: str, n: int = 10) -> None:
    for i in range(n):
        assert not rules.observe(url.format(i), 301, leads_to.format(i))


@pytest.mark.parametrize(("url", "leads_to", "new", "expected"), CHANGES, ids=IDS)
def test_ten_redirects_make_a_rule(url: str, leads_to: str, new: str, expected: str) -> None:
    """Nine do not."""
    rules = RedirectRules()
    learn(rules, url, leads_to, 9)
    assert target(rules, new) == new
    learn(rules, url, leads_to, 1)
    assert target(rules, new) == expected


@pytest.mark.parametrize(("url", "leads_to", "new", "expected"), CHANGES, ids=IDS)
def test_a_page_at_its_own_url_ends_a_rule(url: str, leads_to: str, new: str, expected: str) -> None:
    """After that it takes twenty redirects, then forty."""
    rules = RedirectRules()
    learn(rules, url, leads_to)
    for needed in (20, 40):
        assert rules.observe(new, 200)
        learn(rules, url, leads_to, needed - 1)
        assert target(rules, new) == new
        learn(rules, url, leads_to, 1)
        assert target(rules, new) == expected


def test_a_page_at_its_own_url_begins_the_count_again() -> None:
    """It takes ten redirects in a row, and nothing ends where no rule was used."""
    rules = RedirectRules()
    learn(rules, "http://a.test/x{}", "http://a.test/x{}/", 9)
    assert not rules.observe("http://a.test/own", 200)
    learn(rules, "http://a.test/x{}", "http://a.test/x{}/", 9)
    assert rules.guess("http://a.test/new") is None
    learn(rules, "http://a.test/x{}", "http://a.test/x{}/", 1)
    assert target(rules, "http://a.test/new") == "http://a.test/new/"


@pytest.mark.parametrize(
    ("url", "status"), [("http://a.test/gone", 404), ("http://a.test/x.html", 200), ("http://b.test/x", 200)]
)
def test_other_answers_end_nothing(url: str, status: int) -> None:
    """Errors, URLs of another shape, and other hosts."""
    rules = RedirectRules()
    learn(rules, "http://a.test/x{}", "http://a.test/x{}/")
    assert not rules.observe(url, status)
    assert target(rules, "http://a.test/new") == "http://a.test/new/"


@pytest.mark.parametrize(
    "new",
    [
        "http://a.test/new.pdf", "http://a.test/new/", "http://b.test/new", "http://a.test", "http://a.test:81/new",
        "http://a.test/new?query",
    ],
)  # fmt: skip
def test_other_urls_are_requested_as_they_are(new: str) -> None:
    """Files, other hosts, ports, and URLs with a query, where redirects without one were seen."""
    rules = RedirectRules()
    learn(rules, "http://a.test/x{}", "http://a.test/x{}/")
    assert rules.guess(new) is None


@pytest.mark.parametrize(
    "leads_to",
    [
        "http://a.test/login", "http://a.test/y{}/", "http://b.test/x{}", "http://a.test/x{}/?from=1",
        "https://a.test/start", "ftp://a.test/x{}", "http://a.test/x{}//",
    ],
)  # fmt: skip
def test_other_redirects_teach_nothing(leads_to: str) -> None:
    """A redirect must differ in nothing else."""
    rules = RedirectRules()
    learn(rules, "http://a.test/x{}", leads_to, 40)
    assert rules.guess("http://a.test/new") is None


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8000", "localhost", "[::1]", "a.test:8000"])
def test_a_port_keeps_its_scheme_and_an_address_its_name(host: str) -> None:
    """Only names have a www., and another scheme would have another port."""
    rules = RedirectRules()
    learn(rules, f"http://{host}/x{{}}", f"https://{host}/x{{}}" if ":" in host else f"http://www.{host}/x{{}}", 40)
    assert rules.guess(f"http://{host}/new") is None


def test_a_chain_of_redirects_is_foreseen_to_its_end() -> None:
    """To https, then to www., then with a slash."""
    rules = RedirectRules()
    learn(rules, "http://a.test/x{}", "https://a.test/x{}")
    learn(rules, "https://a.test/x{}", "https://www.a.test/x{}")
    learn(rules, "https://www.a.test/x{}", "https://www.a.test/x{}/")
    assert target(rules, "http://a.test/new") == "https://www.a.test/new/"


def test_opposite_rules_do_not_undo_each_other() -> None:
    """A host may add slashes in one part, and remove them in another."""
    rules = RedirectRules()
    learn(rules, "http://a.test/x/{}", "http://a.test/x/{}/")
    learn(rules, "http://a.test/y/{}/", "http://a.test/y/{}")
    assert target(rules, "http://a.test/new") == "http://a.test/new/"
    assert target(rules, "http://a.test/new/") == "http://a.test/new"


def test_a_section_has_rules_of_its_own() -> None:
    """One that does not redirect ends the rule of the host, but not those of other sections."""
    rules = RedirectRules()
    learn(rules, "http://a.test/tags/x{}", "http://a.test/tags/x{}/")
    assert target(rules, "http://a.test/posts/1") == "http://a.test/posts/1/"
    assert rules.observe("http://a.test/posts/1", 200)
    assert rules.guess("http://a.test/posts/2") is None
    assert rules.guess("http://a.test/new") is None
    assert target(rules, "http://a.test/tags/new") == "http://a.test/tags/new/"
    assert rules.observe("http://a.test/tags/own", 200)
    assert rules.guess("http://a.test/tags/new") is None


def test_a_section_learns_while_others_do_not_redirect() -> None:
    """Each redirect is followed by an exception in another section."""
    rules = RedirectRules()
    for i in range(10):
        learn(rules, f"http://a.test/tags/{i}", f"http://a.test/tags/{i}/", 1)
        assert not rules.observe(f"http://a.test/posts/{i}", 200)
    assert target(rules, "http://a.test/tags/new") == "http://a.test/tags/new/"
    assert rules.guess("http://a.test/new") is None


def test_one_url_in_32_is_requested_as_it_is() -> None:
    """So a rule that holds no longer is found out, even if every guess is answered with a page."""
    rules = RedirectRules()
    learn(rules, "http://a.test/x{}", "http://a.test/x{}/")
    checks = [i for i in range(320) if rules.guess(f"http://a.test/new{i}") is None]
    assert checks == list(range(31, 320, 32))


def test_too_many_failed_guesses_end_a_rule() -> None:
    """Of a site where most links are dead, ten; more, where other guesses were right."""
    for right, most in ((0, 10), (40, 30)):
        rules = RedirectRules()
        learn(rules, "http://a.test/x{}", "http://a.test/x{}/")
        guess = rules.guess("http://a.test/new")
        assert guess is not None
        for _ in range(right):
            rules.confirm(guess)
        assert [rules.miss(guess) for _ in range(most + 1)] == [False] * most + [True]
        assert not rules.holds(guess)
        assert rules.guess("http://a.test/new") is None
