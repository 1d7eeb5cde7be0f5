"""What outcomes are worth."""

from __future__ import annotations

import pickle
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from scrapy_focus import ConfigError, FilesGoal, ItemsGoal, Placement, memory_frontier
from scrapy_focus.goals.topic import TopicGoal
from scrapy_focus.topic.keywords import KeywordRelevance
from scrapy_focus.topic.relevance import LinearRelevance
from tests.learn.topics import examples, pages
from tests.made import PDF, failure, link, page

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy_focus import Outcome


def pick(url: str = "http://h/file", method: str = "GET"):
    """Return a pick of a URL."""
    frontier = memory_frontier()
    frontier.push([link(1, url=url)], [Placement(0, 0.0, None, method)])
    return frontier.pop(0)


@pytest.mark.parametrize(
    ("mime", "url", "rest", "worth"),
    [
        (PDF, "http://h/file", {}, 1.0),
        ("text/html", "http://h/a.pdf", {}, 0.0),
        ("application/octet-stream", "http://h/a.csv", {}, 1.0),
        ("", "http://h/a.csv", {}, 1.0),
        ("", "http://h/a", {}, 0.0),
        (PDF, "http://h/file", {"status": 404}, 0.0),
        (PDF, "http://h/file", {"status": 206}, 1.0),
        (PDF, "http://h/file", {"status": 301}, 0.0),
        (PDF, "http://h/file", {"status": None}, 0.0),
        (PDF, "http://h/file", {"error": "ignored"}, 0.0),
    ],
)
def test_a_file_of_a_wanted_type_is_worth_one(mime: str, url: str, rest: dict, worth: float) -> None:
    """The type counts, or the extension where there is none; an answer without success is worth nothing."""
    assert FilesGoal()(page(pick(url), mime=mime, **rest)) == worth


def test_only_wanted_types_are_targets() -> None:
    """With custom types, others are worth nothing; patterns work."""
    goal = FilesGoal(types=["image/*"])
    assert [goal(page(pick(), mime=mime)) for mime in ("image/png", PDF)] == [1.0, 0.0]
    assert repr(goal) == "files: image/*"
    assert repr(FilesGoal()) == "files: data"


def test_the_extension_is_that_of_the_final_url() -> None:
    """After a redirect the URL of the page counts, not the one that was asked for."""
    answer = SimpleNamespace(url="http://h/prices.csv")
    assert FilesGoal()(page(pick("http://h/download"), mime="", page=answer)) == 1.0


def test_a_file_may_have_to_be_stored() -> None:
    """With `stored` a file without an item is worth nothing; a HEAD cannot give items, and is believed."""
    goal = FilesGoal(stored=True)
    assert goal(page(pick(), mime=PDF)) == 0.0
    assert goal(page(pick(), mime=PDF, items=3)) == 1.0
    assert goal(page(pick(method="HEAD"), mime=PDF)) == 1.0


def test_items_are_worth_their_number() -> None:
    """The default goal counts items."""
    assert ItemsGoal()(page(pick(), items=2.5)) == 2.5
    assert (ItemsGoal.heads_tell, FilesGoal.heads_tell) == (False, True)


# Pages on a topic


@pytest.fixture(scope="module")
def wine() -> LinearRelevance:
    """A model of pages on wine."""
    return LinearRelevance().fit(*examples(10, 10))


def html(text: str) -> SimpleNamespace:
    """Return a page whose text is hidden among other words, which nobody sees."""
    unseen = "<script>steel engine</script><style>wine grape</style>"
    return SimpleNamespace(
        url="http://h/", text=f"<html><head>{unseen}</head><body><p>{text}</p>{unseen}</body></html>"
    )


def test_a_page_on_the_topic_is_worth_one(wine: LinearRelevance) -> None:
    """What is to be read on a page decides, at the threshold; the model can also be named by its file."""
    on, off = pages(1, on=True, seed=9)[0], pages(1, on=False, seed=9)[0]
    goal = TopicGoal(wine)
    assert [goal(page(pick(), page=html(text))) for text in (on, off, "")] == [1.0, 0.0, 0.0]
    probability = goal.probability(page(pick(), page=html(on)))
    assert probability == wine.score([on])[0]
    assert TopicGoal(wine, threshold=probability)(page(pick(), page=html(on))) == 1.0
    assert TopicGoal(wine, threshold=min(1.0, probability + 1e-9))(page(pick(), page=html(on))) == 0.0


def test_menus_are_not_judged() -> None:
    """Text on three or more pages of a host does not count; a resumed goal knows that, too."""
    topic = KeywordRelevance(["honey", "bees"])
    goal = TopicGoal(topic)

    def of(number: int, text: str) -> Outcome:
        menu = "<nav><p>Honey shop</p><p>Our bees</p></nav>"
        return page(pick(f"http://h/{number}"), page=SimpleNamespace(text=f"<html><body>{menu}<p>{text}</p></body>"))

    assert [goal(of(i, f"steel of the mill {'abc'[i]}")) for i in range(3)] == [1.0, 1.0, 0.0]
    assert goal(of(3, "honey of the bees")) == 1.0
    again = TopicGoal(topic)
    again.restore(pickle.loads(pickle.dumps(goal.state())))
    assert again(of(4, "coal for the mill")) == 0.0
    assert again.text("other", ["Honey shop", "coal"]) == "Honey shop coal"


def test_what_is_no_page_is_not_on_the_topic(wine: LinearRelevance) -> None:
    """Failures, other types and answers without a page are worth nothing, whatever their text is."""
    text = html(pages(1, on=True)[0])
    goal = TopicGoal(wine)
    assert goal(page(pick(), page=text)) == 1.0
    for rest in (
        {"status": 404},
        {"status": 301},
        {"status": None},
        {"error": "ignored"},
        {"mime": PDF},
        {"page": None},
    ):
        assert goal(page(pick(), **{"page": text, **rest})) == 0.0, rest
    assert goal(failure(pick())) == 0.0
    assert not TopicGoal.heads_tell


def test_a_topic_goal_says_which_model_it_has(wine: LinearRelevance, tmp_path: Path) -> None:
    """The name differs between models and thresholds, and is the same for a model and its file: a resumed crawl
    checks it.
    """
    wine.save(tmp_path / "wine.npz")
    assert repr(TopicGoal(wine)) == repr(TopicGoal(tmp_path / "wine.npz"))
    assert repr(TopicGoal(wine)) != repr(TopicGoal(LinearRelevance().fit(*examples(10, 11))))
    assert repr(TopicGoal(wine)) != repr(TopicGoal(wine, threshold=0.6))


@pytest.mark.parametrize(("relevance", "threshold"), [("none.npz", 0.5), (5, 0.5), ("", 0.5), (None, 0.0), (None, 1.5)])
def test_a_topic_goal_that_cannot_be(wine: LinearRelevance, relevance: object, threshold: float) -> None:
    """Not a model, or a threshold that is not a probability."""
    with pytest.raises(ConfigError):
        TopicGoal(wine if relevance is None else relevance, threshold=threshold)
