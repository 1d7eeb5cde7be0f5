"""Vectors of links: one computed by hand, and how words, paths, groups and domains are counted."""

from __future__ import annotations

import pickle
import zlib

import numpy as np
import pytest

from scrapy_focus import ConfigError, Crawl, Outcome, Pick, memory_frontier
from scrapy_focus.policies.domains import Domains
from scrapy_focus.policies.treeq.features import (
    HUB,
    IN_LINKS,
    IN_SHARE,
    LEARNED,
    PROBABILITY,
    PUBLISHED,
    WORDS,
    Features,
    Groups,
    LinkReader,
    bucket,
    codes,
    layout,
    path_after,
    url_pattern,
)
from scrapy_focus.policies.treeq.policy import TreeQ
from scrapy_focus.web.domains import domain_of
from scrapy_focus.web.words import url_words
from tests.made import failure, fetch, link, page

PICK = Pick(1, 1, "", "", 0, 0, 0.0, None, -1, "GET", b"")


class Said:
    """A classifier that knows what to say of each text."""

    digest = "said"

    def __init__(self, **probabilities: float) -> None:
        self.probabilities = probabilities
        self.asked: list[str] = []

    def score(self, texts):
        self.asked += texts
        return np.array([max(self.probabilities.get(word, 0.0) for word in [*text.split(), ""]) for text in texts])


def named(policy: TreeQ, pick) -> dict[str, float]:
    """Return the features of a pick by name, as codes."""
    return dict(zip(policy.layout.names, pick.memo.astype(int).tolist(), strict=False))


def test_one_vector_by_hand() -> None:
    """Each feature of a link that is two irrelevant pages away from a relevant one, on a host that is half relevant.

    The path is seed (relevant), a (relevant), b and c (not): 2 of 4 pages, the last relevant one three clicks before.
    """
    model = Said(cheese=0.9)
    policy = TreeQ(keywords=["cheese", "goat milk"], relevance=model, rules={"link_model": False})
    crawl = Crawl(
        policy, frontier=memory_frontier, goal=lambda outcome: float(outcome.pick.key in (1, 2)), seed=0, strict=True
    )
    crawl.add([link(1, host="www.one.test")])
    fetch(crawl, link(2, host="one.test"))
    fetch(crawl, link(3, host="one.test"))
    fetch(crawl, link(4, host="one.test"))
    fetch(crawl, link(5, host="blog.one.test", url="http://blog.one.test/Cheese/5", anchor="About Goat-Milk!"))
    pick = crawl.next()
    assert pick.key == 5
    assert named(policy, pick) == {
        "parent relevant": 0,
        "nearness of a relevant page": round(63 / 3),
        "relevant share of the path": round(63 * 2 / 4),
        "keyword in the URL": 63,
        "keyword in the anchor": 63,
        "probability": round(63 * 0.9),
        "relevant share of its host": round(63 * 2 / 3),  # the fourth page was under way when the link was found
        "unknown host": 0,
        "share of links from relevant pages": 0,
        "links from relevant pages": 0,
    }
    assert model.asked[-1] == "about goat milk blog one cheese"
    x = dict(zip(policy.layout.names, policy._chosen[pick.id].tolist(), strict=True))
    assert x["relevant share of its host"] == round(63 * 2 / 4), "as it is when the link is chosen"


def test_the_example_of_the_paper_by_hand() -> None:
    """Figure 1 (section 2.4.1): seed and A are relevant, C behind them is not, and its link to D is examined.

    The last relevant page is two clicks away; of the path's three pages two are relevant, of the host's four three.
    """
    policy = TreeQ(keywords=["sport"], relevance=Said(**{"": 0.25}), preset="tres-2023")
    crawl = Crawl(
        policy, frontier=memory_frontier, goal=lambda outcome: float(outcome.pick.key < 4), seed=0, strict=True
    )
    crawl.add([link(1, host="en.wikipedia.test")])
    seed, a, b, c, d = (link(key, host="en.wikipedia.test", depth=1) for key in range(1, 6))
    fetch(crawl, a, b)
    for pick in [crawl.next(), crawl.next()]:
        crawl.sent(pick.id)
        crawl.report(page(pick), [c] if pick.key == a.key else [])
    fetch(crawl, d)
    pick = crawl.next()
    assert (seed.key, b.key, pick.key) == (1, 3, d.key)
    shares = (policy._chosen[pick.id] / 63).round(2).tolist()
    assert shares == [0, 0.51, 0.67, 0, 0, 0.25, 0.75, 0], "64 levels: 1/2, 2/3, 1/4 and 3/4 are rounded"


def test_a_classifier_may_read_the_anchor_alone() -> None:
    """As in the paper; keywords are still looked for in both."""
    model = Said(cheese=0.9)
    reader = LinkReader(["cheese"], model, url_words=False)
    links = [link(1, url="http://a.test/cheese", anchor="More"), link(2, url="http://a.test/2", anchor="Cheese")]
    assert reader.read(links).tolist() == [[1, 0, 0], [0, 1, 0.9]]
    assert model.asked == ["more", "cheese"]
    policy = TreeQ(keywords=["cheese"], relevance=model, rules={"url_words": False})
    Crawl(policy, frontier=memory_frontier)
    assert not policy._features.reader.url_words


def test_features_of_domains_may_be_left_out() -> None:
    """Section 3.6.3: the network and the tree read 0 for them, whatever is known of the domain."""
    policy = TreeQ(keywords=["cheese"], preset="tres-2023", rules={"hosts": False})
    crawl = Crawl(policy, frontier=memory_frontier, goal=lambda outcome: 1.0, seed=0, strict=True)
    crawl.add([link(1)])
    fetch(crawl, link(2), link(3, host="new.test"))
    for pick in (crawl.next(), crawl.next()):
        assert policy._chosen[pick.id].tolist() == [63, 63, 63, 0, 0, 0, 0, 0]


def test_a_seed_has_no_path() -> None:
    """A seed has no path; its host is unknown, its own words count."""
    policy = TreeQ(keywords=["cheese"], rules={"link_model": False})
    crawl = Crawl(policy, frontier=memory_frontier, seed=0, strict=True)
    crawl.add([link(1, host="cheese.test")])
    pick = crawl.next()
    expected = dict.fromkeys(PUBLISHED + IN_LINKS, 0)
    expected |= {"keyword in the URL": 63, "relevant share of its host": 32, "unknown host": 63}
    assert named(policy, pick) == expected


def test_more_links_to_a_page_are_counted() -> None:
    """A queued link keeps the path of its first discovery, and counts links from relevant and other pages."""
    policy = TreeQ(keywords=["cheese"], rules={"link_model": False})
    crawl = Crawl(
        policy, frontier=memory_frontier, goal=lambda outcome: float(outcome.pick.key in (1, 2)), seed=0, strict=True
    )
    crawl.add([link(1), link(2), link(3)])
    picks = {pick.key: pick for pick in (crawl.next(), crawl.next(), crawl.next())}
    target = link(9, url="http://other.test/9")
    counts = []
    for key in (1, 2, 3):
        crawl.sent(picks[key].id)
        anchored = target._replace(anchor="cheese" if key == 1 else "")
        crawl.report(page(picks[key]), [anchored, anchored])  # the second on the same page does not count
        vector = crawl.frontier.vectors([9])[0]
        counts.append(vector[policy.layout.counts :].tolist())
    assert counts == [[1, 1], [2, 2], [3, 3]], "seeds count as relevant"
    assert vector[policy.layout.names.index("links from relevant pages")] == round(12 * np.log2(1 + 3))
    assert vector[policy.layout.names.index("keyword in the anchor")] == 63, "the anchor with which it was found counts"
    other = page(crawl.next())
    crawl.sent(other.pick.id)
    assert other.pick.key == 9
    crawl.report(other, [link(10)])
    pick = crawl.next()
    crawl.sent(pick.id)
    crawl.report(page(pick), [link(11), link(12)])
    pick = crawl.next()
    crawl.report(page(pick), [link(11), link(12)])
    last = crawl.frontier.vectors([11, 12])[:, policy.layout.counts :].tolist()
    assert sorted(last) == [[0, 0], [0, 2]], "one is fetched, to the other two pages led that were not relevant"


def test_words_of_urls() -> None:
    """Escapes, user names and ports are not read, unescaped words are."""
    assert url_words("http://anna:secret@wine.example:8080/%C3%9Cber_uns/x?q=Red%20wine") == [
        "wine", "über", "uns", "red", "wine",
    ]  # fmt: skip


def test_codes_are_cut() -> None:
    """What is not between 0 and 1 gets the nearest code."""
    assert codes(np.array([-1, 0, 0.5, 1, 7, np.inf])).tolist() == [0, 0, 32, 63, 63, 63]


def test_paths_do_not_overflow() -> None:
    """Counts are halved where a byte ends, so that their share stays about the same."""
    path = np.zeros(3, np.uint8)
    for i in range(2000):
        path = path_after(path, relevant=i % 4 == 0)
    assert path[0] / (int(path[0]) + int(path[1])) == pytest.approx(0.25, abs=0.02)
    assert path[2] == 4
    for _ in range(300):
        path = path_after(path, relevant=False)
    assert path[2] == 255


def test_groups() -> None:
    """The reward of a link counts for its groups, and for those of the page where it was found."""
    groups = Groups()
    numbers = np.array([[7, 300, 9, 7, 301]], "<u2").view(np.uint8)[0]
    assert groups.codes(numbers[None, :6]).tolist() == [[0, 0, 63] * 3]
    groups.ask(numbers, 1)
    groups.settle(numbers, 0.0)
    groups.ask(numbers, 1)
    groups.settle(numbers, 1.0)
    first, second, third = groups.codes(numbers[None, :6]).reshape(3, 3).tolist()
    assert first == [32, round(63 * 0.5 / 1.5), 0], "the page was of the same tag path"
    assert second == [32, 0, 0], "and of another URL pattern"
    assert third == [32, 0, 0]
    assert groups.behind[1, 301] == 1


def test_groups_of_texts() -> None:
    """Numbers do not part groups; they are the same in every process."""
    assert bucket("html/ul/li#item-12/a") == bucket("html/ul/li#item-3/a") != bucket("html/ol/li#item-3/a")
    assert bucket("Seite 2") == zlib.crc32(b"Seite 0") % 65536
    assert url_pattern("http://a.test/x/1.html?b=1") != url_pattern("http://a.test/x/1.pdf?b=1")


def test_layouts_do_not_overlap() -> None:
    """Every byte of a vector has one meaning."""
    for in_links, link_model in ((False, False), (True, False), (True, True)):
        for groups in (False, True):
            made = layout(in_links=in_links, groups=groups, link_model=link_model)
            assert made.n_codes == len(set(made.names))
            assert made.path == made.n_codes
            assert made.width == made.n_codes + 3 + 2 * in_links + 10 * groups + 6 * link_model
    assert layout(in_links=True, groups=True, link_model=False).width == 35
    assert layout(in_links=True, groups=False, link_model=True).width == 23
    assert layout(in_links=True, groups=False, link_model=True).names[HUB : WORDS + 1] == LEARNED


def features_of(**probabilities: float) -> Features:
    """Return features with a link model, of a topic whose words have these probabilities."""
    made = layout(in_links=True, groups=False, link_model=True)
    return Features(made, LinkReader(["cheese"], Said(**probabilities)), Domains(), seeds_are_relevant=False)


def came(features: Features, key: int, *, reward: float = 0.0) -> Outcome:
    """Return the outcome of a page that was found on a seed."""
    vector = np.zeros(features.layout.width, np.uint8)
    return page(PICK._replace(key=key, memo=vector, origin=0))._replace(reward=reward)


def test_one_vector_of_the_link_model_by_hand() -> None:
    """The probability is stored as log-odds; a link weighs 60 by the logarithm to base 2 of two more than its page
    has.
    """
    features = features_of(cheese=0.9, bread=0.02)
    links = [link(1, anchor="Cheese"), link(2, anchor="Bread"), *(link(i) for i in range(3, 15))]
    made = features.found(links, came(features, 100, reward=1.0))
    features.count(made)
    assert made[0, PROBABILITY] == round(63 * (np.log(9) / 10 + 0.5))
    assert made[1, PROBABILITY] == round(63 * (np.log(0.02 / 0.98) / 10 + 0.5))
    assert made[0, WORDS] == 32, "nothing was learned of words"
    assert features.layout.said(int(made[0, PROBABILITY]), PROBABILITY) == pytest.approx(0.9, abs=0.01)
    weight = round(60 / np.log2(2 + 14))
    assert made[0, features.layout.counts :].tolist() == [weight, weight, 1, 0, 0, 0, 0, 0], (
        "the first page, and no other"
    )
    assert made[0, IN_SHARE] == 63
    other = features.found(links[:1], came(features, 101))
    assert other[0, features.layout.counts :].tolist() == [0, round(60 / np.log2(3)), 2, 0, 0, 0, 0, 0]


def test_links_beside_a_link_speak_for_it() -> None:
    """Of two pages with links, those whose links led to relevant pages speak for their other links, those on both half."""
    features = features_of()
    list_ = features.found([link(1), link(2)], came(features, 100))
    other = features.found([link(3), link(4)], came(features, 101))
    assert features.now(list_, np.zeros(2, np.intp))[:, HUB].tolist() == [32, 32], "half, where nothing came"
    of = features.layout.sources_of
    features.model.hubs.settle(of(list_)[0], relevant=True)
    features.model.hubs.settle(of(other)[0], relevant=False)
    assert features.now(list_, np.zeros(2, np.intp))[1, HUB] == round(63 * (1 + 2 * 0.5) / (1 + 2))
    assert features.now(other, np.zeros(2, np.intp))[1, HUB] == round(63 * (0 + 2 * 0.5) / (1 + 2))
    both = list_[1:].copy()
    both[:, features.layout.sources + 2 : features.layout.sources + 4] = other[:1, features.layout.sources :][:, :2]
    assert features.now(both, np.zeros(1, np.intp))[0, HUB] == 32


def test_words_of_links_are_learned() -> None:
    """Words that led to relevant pages speak for links of other pages, beyond what their probability says; pickled, too."""
    features = features_of()
    links = [link(1, anchor="hive"), link(2, anchor="shop")]
    features.found(links, came(features, 100))
    for _ in range(5):
        features.model.words.learn(1, True, odds=-3.0)
        features.model.words.learn(2, False, odds=-3.0)
        features.model.words.learn(999, True, odds=-3.0)  # without a record
    again = [link(11, anchor="hive"), link(12, anchor="shop"), link(13, anchor="lamp")]
    hive, shop, lamp = features.found(again, came(features, 101))[:, WORDS].astype(int)
    assert hive > lamp + 3
    assert shop <= lamp
    copy = pickle.loads(pickle.dumps(features))
    assert copy.found(again, came(features, 101))[:, WORDS].tolist() == [hive, shop, lamp]
    copy.model.words.learn(1, False, odds=5.0)
    assert copy.found(again, came(features, 101))[0, WORDS] < hive, "it remembers the link"


def test_many_links_to_a_page_keep_their_share() -> None:
    """The sums of weights are halved where a byte ends; the newest three pages are remembered."""
    policy = TreeQ(relevance=Said(**{"": 0.02}))
    crawl = Crawl(
        policy, frontier=memory_frontier, goal=lambda outcome: float(outcome.pick.key % 4 == 0), seed=0, strict=True
    )
    crawl.add([link(1)])
    fetch(crawl, *(link(key, url=f"http://h{key}.test/") for key in range(4, 44)))
    target = link(1001, url="http://target.test/", host="target.test")
    for _ in range(40):
        pick = crawl.next([target.host])
        crawl.sent(pick.id)
        crawl.report(page(pick), [target])
    vector = crawl.frontier.vectors([1001])
    relevant, all_ = vector[0, policy.layout.counts : policy.layout.counts + 2].astype(int)
    assert 127 <= all_ <= 255
    assert relevant < 0.6 * all_, "of 40 pages that link there 10 are relevant, which may be the last"
    assert vector[0, IN_SHARE] == round(63 * relevant / all_)
    assert len({*policy.layout.sources_of(vector)[0].tolist()} - {0}) == 3


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("www.example.co.uk", "example.co.uk"),
        ("example.com", "example.com"),
        ("a.b.example.com:8080", "example.com"),
        ("anna.github.io", "anna.github.io"),
        ("github.io", "github.io"),
        ("localhost:1", "localhost:1"),
        ("127.0.0.1:80", "127.0.0.1:80"),
        ("x.y.invented", "y.invented"),
        ("", ""),
    ],
)
def test_domains_of_hosts(host: str, domain: str) -> None:
    """Registered domains by the Public Suffix List, hosts where there is none."""
    assert domain_of(host) == domain


def test_a_cap_counts_what_came_and_what_flies() -> None:
    """A failure makes room again, a page does not; hosts of one domain share their room."""
    domains = Domains(2)
    one, other = domains.row("www.one.test"), domains.row("two.test")
    assert domains.row("one.test") == one != other
    domains.ask(one)
    domains.ask(one)
    assert domains.is_full(np.array([one, other])).tolist() == [True, False]
    domains.settle(one, failure(PICK))
    assert not domains.is_full(np.array([one])).any()
    domains.settle(one, page(PICK, reward=1.0))
    domains.ask(one)
    assert domains.is_full(np.array([one])).all()
    domains.release(one)
    assert not domains.is_full(np.array([one])).any()
    assert domains.shares(np.array([one, other])).tolist() == [[0.5, 0.0], [0.5, 1.0]]


def test_shares_are_those_of_the_counts() -> None:
    """After hundreds of pages of 200 domains, and after a pickle, they are what the counts say."""
    domains, draws = Domains(), np.random.default_rng(0)
    for _ in range(600):
        row = domains.row(f"h{draws.integers(200)}.test")
        domains.ask(row)
        kind = draws.integers(4)
        if kind == 0:
            domains.release(row)
        elif kind < 3:
            domains.settle(row, failure(PICK) if kind == 1 else page(PICK, reward=float(draws.integers(2))))
    rows = np.arange(len(domains.rows([f"h{i}.test" for i in range(200)])))
    back = (domains.pages + domains.failed)[rows]
    shares = np.where(back > 0, domains.relevant[rows] / np.maximum(back, 1), 0.5)
    unknown = back + domains.flying[rows] == 0
    assert 0 < unknown.sum() < 150
    for those in (domains, pickle.loads(pickle.dumps(domains))):
        assert those.shares(rows) == pytest.approx(np.stack([shares, unknown], axis=1))


def test_a_falling_cap() -> None:
    """The cap is halved each third of the crawl, but not below its least."""
    domains = Domains(5, least=2, falls_every=10)
    row = domains.row("a.test")
    caps = []
    for _ in range(40):
        domains.ask(row)
        domains.settle(row, failure(PICK))
        caps.append(domains.cap)
    assert caps == [5] * 9 + [2] * 31


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ((0, None, 1), "per_domain=0"), ((5, 6, 1), "per_domain=5"), ((None, 2, 1), "per_domain=None"),
        ((5, 2, 0), "falls_every=0"),
    ],
)  # fmt: skip
def test_caps_that_cannot_be(params: tuple[int | None, int | None, int], said: str) -> None:
    """They are refused, and the message says what was got."""
    cap, least, every = params
    with pytest.raises(ConfigError, match=said):
        TreeQ(per_domain=cap, per_domain_least=least, falls_every=every)


def test_failures_count_for_their_host() -> None:
    """A host whose pages fail is one with few relevant pages."""
    policy = TreeQ(keywords=["xx"])
    crawl = Crawl(policy, frontier=memory_frontier, seed=0, strict=True)
    crawl.add([link(1)])
    pick = crawl.next()
    crawl.sent(pick.id)
    crawl.report(failure(pick))
    assert policy.domains.shares(np.array([policy.domains.row("h")])).tolist() == [[0.0, 0.0]]
