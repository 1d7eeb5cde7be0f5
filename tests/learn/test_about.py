"""A topic given by a sentence: what it judges, what it learns from pages, and what it refuses."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from scrapy_focus import ConfigError, LearningTopic
from scrapy_focus.topic.about import AboutTopic
from scrapy_focus.topic.examples import Given
from scrapy_focus.topic.keywords import KeywordRelevance
from scrapy_focus.topic.models import made_of, relevance_of
from tests.topicwords import DAMAGE, OTHERS, WEATHER, page, pages

BUDGETS = "municipal budgets and annual accounts"


def after(topic: AboutTopic, seen: list[tuple[str, bool]]) -> AboutTopic:
    """Return a topic that has seen these pages."""
    for text, _ in seen:
        topic.see(text)
    return topic


def test_link_texts_close_to_the_sentence_are_on_the_topic() -> None:
    """Also those that share no word with it."""
    near, far = AboutTopic(BUDGETS), ["Opening hours", "Home", "Swimming lessons for children", "2024", "→", ""]
    assert (near.score(["Budget 2024", "Annual accounts of the city", "The council's financial statement"]) > 0.5).all()
    assert (near.score(far) < 0.5).all()


def test_links_are_compared_with_those_that_were_met() -> None:
    """Where all links are similar to the sentence, the most similar ones alone stay on the topic; pages are unaffected."""
    topic = AboutTopic("HTTP servers")
    links = ["Logging in the server", "Writing clients", "Serving HTTP requests", "Network connections", "Event loop"]
    page = "The network connection of a client is handled by the event loop of this program. " * 10
    alone, of_page = topic.score(links), topic.score([page])
    for number in range(12):
        topic.see_links([f"{each} {number}" for each in links])
    among = topic.score(links)
    assert among[2] == among.max() > 0.5
    assert (among <= alone).all()
    assert (among > 0.5).sum() < (alone > 0.5).sum()
    assert topic.score([page]) == of_page
    again = AboutTopic("HTTP servers")
    again.restore(topic.state())
    assert (again.score(links) == among).all()


def test_pages_are_judged_by_what_they_say() -> None:
    """Each page on the weather is on the topic, and no other."""
    topic = AboutTopic("weather and storms")
    seen = pages(60, 0.3)
    assert ((topic.score([text for text, _ in seen]) >= 0.5) == [on for _, on in seen]).all()


@pytest.mark.parametrize("asked", ["pages about music", "Everything about music!", "find me all articles on music"])
def test_words_of_a_request_do_not_count(asked: str) -> None:
    """A request and its subject are the same topic."""
    texts = ["Piano concerto", "Railway bridge", page(OTHERS["music"], np.random.default_rng(0))]
    assert AboutTopic(asked).score(texts) == pytest.approx(AboutTopic("music").score(texts))


def test_a_sentence_of_such_words_alone_is_used_as_it_is() -> None:
    """They may be the subject."""
    assert AboutTopic("articles and documents").score(["Documents"])[0] > 0.5


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ("", "about is ''; it takes a sentence"),
        (" \n", "it takes a sentence"),
        (7, "about is 7; it takes a sentence"),
        ("budget " * 1_500, "about has 10,499 characters; it takes a sentence of at most 1,000"),
        ("አዲስ አበባ", "no word of 'አዲስ አበባ' is known to the embedding"),
    ],
)
def test_sentences_that_say_nothing_are_refused(about: str, said: str) -> None:
    """In one line that says what is wrong."""
    with pytest.raises(ConfigError) as refused:
        AboutTopic(about)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_an_impossible_frequency_is_refused() -> None:
    """It is a share."""
    with pytest.raises(ConfigError, match=r"frequency is 1.5; it takes a share between 0 and 1"):
        AboutTopic(BUDGETS, frequency=1.5)


def test_it_says_which_words_spoke_for_a_text() -> None:
    """The strongest first, as they are written, and none of a text on something else."""
    topic = AboutTopic(BUDGETS)
    words = topic.words_for("Annual accounts 2024: the Municipality's swimming lessons")
    assert "accounts" in words
    assert "swimming" not in words
    assert topic.words_for("Swimming lessons for children") == []
    assert topic.words_for("") == []


@pytest.mark.parametrize("share", [0.05, 0.4])
def test_it_estimates_how_frequent_the_topic_is(share: float) -> None:
    """After some hundred pages; before the first it doesn't know."""
    topic = AboutTopic("weather and storms")
    assert topic.frequency is None
    after(topic, pages(400, share))
    assert topic.frequency == pytest.approx(share, rel=0.4)
    assert topic.refits == 5
    assert topic.alarm == ""


def test_a_given_frequency_stays() -> None:
    """Whatever the crawl meets."""
    assert after(AboutTopic("weather", frequency=0.03), pages(100, 0.5)).frequency == 0.03


def test_it_learns_what_pages_on_the_topic_have_in_common() -> None:
    """Words that the sentence lacks, and that only such pages have, come closer; those of other pages do not."""
    topic = AboutTopic("rain, wind and snow")
    before = topic.similarity([*DAMAGE, *OTHERS["law"]])
    gained = after(topic, pages(400, 0.3)).similarity([*DAMAGE, *OTHERS["law"]]) - before
    assert gained[: len(DAMAGE)].mean() > 0.05
    assert gained[len(DAMAGE) :].mean() < 0.02


@pytest.mark.parametrize("share", [0.3, 0.9])
def test_the_vector_stays_near_the_sentence(share: float) -> None:
    """However many pages have more in common than it says."""
    topic = AboutTopic("rain, wind and snow")
    assert topic.similarity(["rain wind snow"])[0] == pytest.approx(1)
    assert 0.75 < after(topic, pages(400, share)).similarity(["rain wind snow"])[0] < 0.99


def test_no_crawl_draws_it_away_from_the_sentence() -> None:
    """If all pages are on something else, texts on the sentence are still on the topic, and others are not."""
    topic = after(AboutTopic("weather and storms"), pages(800, 0.0))
    assert (topic.score(["Tornado warning", "Snow and rain", page(WEATHER, np.random.default_rng(1))]) > 0.5).all()
    rng = np.random.default_rng(2)
    assert (
        topic.score(["Railway station", "Cheese soup", *(page(words, rng) for words in OTHERS.values())]) < 0.5
    ).all()


def test_short_pages_and_pages_without_known_words_teach_nothing() -> None:
    """A crawl has many of them."""
    topic = AboutTopic(BUDGETS)
    for text in ["", "404 Not found", "ኢ" * 500] * 40:
        topic.see(text)
    assert topic.refits == 0
    assert topic.frequency is None


def test_a_restored_topic_goes_on_as_if_nothing_had_happened() -> None:
    """Its scores are the same, then and later, and its digest does not change."""
    seen = pages(300, 0.3)
    first = after(AboutTopic("weather"), seen[:150])
    second = AboutTopic("weather")
    second.restore(pickle.loads(pickle.dumps(first.state())))
    texts = [text for text, _ in pages(20, 0.5, seed=9)]
    for topic in (first, second):
        after(topic, seen[150:])
    assert (first.score(texts) == second.score(texts)).all()
    assert first.digest == second.digest == AboutTopic("weather").digest


def test_the_digest_tells_sentences_and_further_data_apart() -> None:
    """A crawl does not resume with another topic."""
    words = KeywordRelevance(["rain"])
    topics = [
        AboutTopic("weather"), AboutTopic("storms"), AboutTopic("weather", frequency=0.1),
        AboutTopic("weather", others=words), AboutTopic("weather", others=words, examples=1),
    ]  # fmt: skip
    assert len({topic.digest for topic in topics}) == len(topics)
    assert all(isinstance(topic, LearningTopic) for topic in topics)


def test_keywords_add_to_the_sentence() -> None:
    """A text with keywords is on the topic, too; one without is judged as before."""
    plain, with_words = AboutTopic("weather"), made_of(Given([], []), ["railway", "station"], None, about="weather")
    texts = ["Railway station", "Tornado", "Cheese soup"]
    before, then = plain.score(texts), with_words.score(texts)
    assert before[0] < 0.2
    assert then[0] > 0.4
    assert then[1:] == pytest.approx(before[1:])


def test_examples_add_to_the_sentence() -> None:
    """Pages like them score more than by the sentence alone, and pages like the others less."""
    rng = np.random.default_rng(3)
    given = Given([page(DAMAGE, rng) for _ in range(10)], [page(OTHERS["law"], rng) for _ in range(10)])
    plain, taught = AboutTopic("weather"), made_of(given, [], None, about="weather")
    texts = [page(DAMAGE, rng), page(OTHERS["law"], rng)]
    assert taught.score(texts)[0] > plain.score(texts)[0] + 0.5
    assert taught.score(texts)[1] < 0.1


def test_examples_that_contradict_the_sentence_raise_an_alarm() -> None:
    """The crawl finds what the examples say, which has nothing to do with the sentence."""
    rng = np.random.default_rng(4)
    given = Given([page(OTHERS["law"], rng) for _ in range(40)], [page(OTHERS["food"], rng) for _ in range(40)])
    topic = made_of(given, [], None, about="weather")
    for _ in range(200):
        topic.see(page(OTHERS["law"], rng))
        topic.see(page(OTHERS["maths"], rng))
    assert "were called relevant, and 0 of these have at least some similarity to the sentence" in topic.alarm


def test_pages_with_keywords_are_no_reason_for_an_alarm() -> None:
    """They are on the topic by the user's word, whatever they have in common with the sentence."""
    rng = np.random.default_rng(5)
    topic = made_of(Given([], []), ["court", "judge", "lawyer"], None, about="weather")
    for _ in range(200):
        topic.see(page(OTHERS["law"], rng))
        topic.see(page(OTHERS["maths"], rng))
    assert topic.score([page(OTHERS["law"], rng)])[0] > 0.5
    assert topic.alarm == ""


def test_a_dict_describes_it() -> None:
    """As ``FOCUS_TOPIC`` has it."""
    topic = relevance_of({"about": "weather", "keywords": ["rain"], "frequency": 0.1})
    assert isinstance(topic, AboutTopic)
    assert topic.digest == made_of(Given([], []), ["rain"], 0.1, about="weather").digest
    with pytest.raises(ConfigError, match="there is no sentence"):
        relevance_of({"keywords": ["rain"], "embedding": "some/folder"})
