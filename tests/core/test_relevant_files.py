"""Files on a topic: their relevance is that of their links and names, and it is their reward."""

from __future__ import annotations

import copy
import pickle
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from scrapy_focus import ConfigError, Crawl, FilesGoal, Link, Mission, Placement, memory_frontier
from scrapy_focus.core.mission import topic_of
from scrapy_focus.goals.link_relevance import LinkRelevance
from scrapy_focus.lab.compare.words import goal_text
from scrapy_focus.policies.orderings import BreadthFirst
from scrapy_focus.topic.keywords import KeywordRelevance
from scrapy_focus.web.html import title_of
from scrapy_focus.web.link_texts import text_of, words_in_url
from tests.made import PDF, fetch, link, page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from scrapy_focus import Outcome

MENU = "Home Contact"


class Share:
    """The share of the words of a text that are about water; learns by counting, as little as a model can."""

    about = "rivers and lakes"
    digest = "5a6e"
    alarm = ""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.links: list[str] = []
        self.refits = 0
        self.frequency: float | None = None

    def score(self, texts: Sequence[str]) -> NDArray[np.float64]:
        wet = {"river", "lake", "water"}
        return np.array([np.mean([word in wet for word in text.lower().split()] or [0.0]) for text in texts])

    def see(self, text: str, host: str = "") -> None:
        self.seen.append(text)
        self.refits, self.frequency = 1, 0.25

    def see_links(self, texts: Sequence[str]) -> None:
        self.links += texts

    def state(self) -> Any:
        return {"seen": list(self.seen)}

    def restore(self, state: Any) -> None:
        self.seen = list(state["seen"])


def pick(url: str, method: str = "GET"):
    """Return a pick of a URL."""
    frontier = memory_frontier()
    frontier.push([link(1, url=url)], [Placement(0, 0.0, None, method)])
    return frontier.pop(0)


def answer(url: str, text: str = "", **headers: str) -> SimpleNamespace:
    """Return a page as it arrived."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return SimpleNamespace(url=url, status=200, headers=named, text=text, kind="")


def a_file(url: str, final: str = "", **rest: Any) -> Outcome:
    """Return a PDF that came back from a URL."""
    headers = rest.pop("headers", {})
    return page(pick(url), mime=PDF, page=answer(final or url, **headers), **rest)


def test_the_reward_of_a_file_is_the_relevance_of_its_link() -> None:
    """Text, surroundings, name and the title of the page count; a file that is not wanted earns nothing."""
    goal = FilesGoal(relevance=Share())
    source = page(pick("http://h/"), page=answer("http://h/", "<html><head><title>Lake</title></head></html>"))
    goal.see_links(
        [
            Link("http://h/one.pdf", 1, anchor="river", context="River levels"),
            Link("http://h/two.pdf", 2, anchor="roads"),
            Link("http://h/water.csv", 3, anchor="river"),
        ],
        source,
    )
    assert goal(a_file("http://h/one.pdf")) == pytest.approx(3 / 5)
    assert goal(a_file("http://h/two.pdf")) == pytest.approx(1 / 3)
    assert goal(page(pick("http://h/water.csv"), mime="text/csv")) == 1.0
    assert goal(page(pick("http://h/water.csv"), mime="text/html", page=answer("http://h/water.csv"))) == 0.0
    assert goal(page(pick("http://h/water.csv"), mime="text/csv", status=404)) == 0.0
    assert goal.relevance_of(a_file("http://h/one.pdf")) == pytest.approx(3 / 5)


def test_a_file_whose_link_was_not_seen_is_judged_by_its_names() -> None:
    """By that in its URL, the one that the server sends, and that after a redirect."""
    goal = FilesGoal(relevance=Share())
    assert goal(a_file("http://h/lake_roads.pdf")) == 0.5
    assert goal(a_file("http://h/7.pdf")) == 0.0
    named = {"Content_Disposition": 'attachment; filename="lake.pdf"'}
    assert goal(a_file("http://h/7.pdf", headers=named)) == 0.5
    assert goal(a_file("http://h/get", final="http://h/files/river.pdf")) == 0.5


def test_a_better_name_than_the_link_counts() -> None:
    """The link says "download", and the server names the file; a worse name changes nothing."""
    goal = FilesGoal(relevance=Share())
    goal.see_links([Link("http://h/d/1", 1, anchor="roads"), Link("http://h/d/2", 2, anchor="lake")], None)
    lake, road = ({"Content_Disposition": f"attachment; filename={name}.pdf"} for name in ("lake", "roads"))
    assert goal(a_file("http://h/d/1")) == 0.0
    assert goal(a_file("http://h/d/1", headers=lake)) == 1.0
    seen = goal(a_file("http://h/d/2"))
    assert 0 < seen == goal(a_file("http://h/d/2", headers=road))


def test_a_file_may_have_to_be_stored() -> None:
    """Without an item it earns nothing, whatever it is about; a HEAD cannot give items."""
    goal = FilesGoal(stored=True, relevance=Share())
    assert goal(a_file("http://h/lake.pdf")) == 0.0
    assert goal(a_file("http://h/lake.pdf", items=1.0)) == 1.0
    assert goal(page(pick("http://h/lake.pdf", "HEAD"), mime=PDF)) == 1.0


def test_files_that_scripts_made_are_judged_by_their_names() -> None:
    """And by the link to their page, if that is better; the reward of the page is the sum."""
    goal = FilesGoal(types=["csv"], relevance=Share())
    made = page(pick("http://h/map"), made=("lake.csv", "lake roads.csv", "river.txt"))
    goal.see_links([Link("http://h/map", 1, anchor="roads, lake")], None)
    assert goal(made) == pytest.approx(1.5)
    assert goal.relevance_of(made) == pytest.approx(0.75)
    wet = page(pick("http://h/levels"), made=("a.csv",))
    goal.see_links([Link("http://h/levels", 1, anchor="river water lake")], None)
    assert goal(wet) == pytest.approx(0.75)


def test_a_model_that_learns_sees_pages_and_texts_of_links() -> None:
    """Pages without what repeats on their host, links with all that they are judged by; files are not pages."""
    goal = FilesGoal(relevance=Share())
    for number in range(4):
        text = f"<html><body><p>{MENU}</p><p>water {'abcd'[number]}</p></body></html>"
        assert goal(page(pick(f"http://h/{number}"), page=answer("http://h/", text))) == 0.0
    goal(a_file("http://h/lake.pdf"))
    goal.see_links([Link("http://h/lake.pdf", 1, anchor="PDF", context="River: PDF")], None)
    assert isinstance(goal.relevance, Share)
    assert goal.relevance.seen == [f"{MENU} water a", f"{MENU} water b", "water c", "water d"]
    assert goal.relevance.links == ["PDF lake River: PDF"]
    assert goal.said() == [
        "each file counts as its relevance, a number from 0 to 1",
        "about 25 % of the pages seen are on the topic, by its estimate",
    ]
    assert goal.alarm == ""


def test_a_goal_resumes_with_what_it_knew() -> None:
    """The relevance of links, the model and what repeats on hosts survive a pickle."""
    goal = FilesGoal(relevance=Share())
    goal.see_links([Link("http://h/7.pdf", 1, anchor="lake")], None)
    goal(page(pick("http://h/"), page=answer("http://h/", "<html><body><p>water</p></body></html>")))
    again = FilesGoal(relevance=Share())
    again.see_links([Link("http://h/8.pdf", 1, anchor="lake")], None)
    again.restore(pickle.loads(pickle.dumps(goal.state())))
    assert isinstance(again.relevance, Share)
    assert again.relevance.seen == ["water"]
    assert goal(a_file("http://h/7.pdf")) == again(a_file("http://h/7.pdf")) == 0.5
    assert again(a_file("http://h/8.pdf")) == 0.0
    state = goal.state()["links"]
    assert (state["keys"].dtype, state["scores"].dtype, len(state["keys"])) == (np.uint64, np.float32, 1)


def test_a_copy_of_a_goal_remembers_for_itself() -> None:
    """A simulation also asks a copy; neither sees the links of the other."""
    goal = FilesGoal(relevance=Share())
    twin = copy.deepcopy(goal)
    twin.see_links([Link("http://h/7.pdf", 1, anchor="lake")], None)
    assert (goal(a_file("http://h/7.pdf")), twin(a_file("http://h/7.pdf"))) == (0.0, 0.5)


def test_a_goal_without_a_topic_is_as_it_was() -> None:
    """It pickles to the same attributes, has no state, and every file is relevant."""
    goal = FilesGoal(types=["csv"], stored=True)
    assert set(vars(goal)) == {"wanted", "types", "stored"}
    assert (goal.noun, goal.relevance, goal.state(), goal.said(), goal.alarm) == ("files", None, None, [], "")
    assert repr(goal) == "files: csv, each content once"
    assert goal.relevance_of(a_file("http://h/7.pdf")) == 1.0
    assert topic_of(goal) is None
    assert Mission.of(goal) == Mission(types=goal.types, heads_tell=True)


def test_a_goal_says_what_files_are_about() -> None:
    """By the sentence, or else the model; another sentence is another goal for a job."""
    share = Share()
    goal = FilesGoal(types=["csv"], relevance=share)
    assert repr(goal) == 'files: csv, about "rivers and lakes"'
    assert (goal.noun, Mission.of(goal).topic, Mission.of(goal).heads_tell) == ("relevant files", share, True)
    assert goal_text(goal) == 'files of these types: csv, about "rivers and lakes"'
    words = KeywordRelevance(["lake"])
    assert repr(FilesGoal(types=["csv"], relevance=words)) == f"files: csv, on the topic of model {words.digest[:12]}"
    assert isinstance(FilesGoal(relevance={"keywords": ["lake"]}).relevance, KeywordRelevance)


def test_a_model_that_cannot_be_used_is_refused() -> None:
    """The message says what it takes, or what a learning model lacks."""
    with pytest.raises(ConfigError, match=r"relevance is 7; it takes"):
        FilesGoal(relevance=7)  # type: ignore[arg-type]
    half = SimpleNamespace(score=lambda texts: np.zeros(len(texts)), digest="d", see=lambda text, host="": None)
    with pytest.raises(ConfigError, match="lacks refits, frequency, alarm"):
        FilesGoal(relevance=half)  # type: ignore[arg-type]


def test_the_newest_link_wins_a_place_and_others_are_forgotten() -> None:
    """Memory is bounded: with one place, one link is known, and a forgotten one is judged by its name."""
    known = LinkRelevance(Share(), places=1)
    known.see([Link(f"http://h/{n}.pdf", n, anchor="lake") for n in range(10)])
    assert [known.at(f"http://h/{n}.pdf") for n in range(10)] == [None] * 9 + [0.5]
    assert known.of("http://h/lake.pdf") == 1.0
    known.see([Link("http://h/9.pdf", 9, anchor="roads")])
    assert known.at("http://h/9.pdf") == 0.0


def test_scores_of_any_model_are_kept_between_0_and_1() -> None:
    """A custom model may return anything."""
    odd = SimpleNamespace(score=lambda texts: [np.nan, 7.0, -1.0][: len(texts)], digest="d")
    known = LinkRelevance(odd)  # type: ignore[arg-type]
    known.see([Link(f"http://h/{n}", n) for n in range(3)])
    assert [known.at(f"http://h/{n}") for n in range(3)] == [0.0, 1.0, 0.0]


def test_words_that_spoke_for_a_file_are_words() -> None:
    """Numbers and types of files say nothing, whatever a model thinks; a model need not tell any."""
    told = SimpleNamespace(
        score=lambda texts: np.ones(len(texts)), digest="d", words_for=lambda text: text.replace("(", " ").split()
    )
    goal = FilesGoal(relevance=told)  # type: ignore[arg-type]
    assert goal.words_at("http://h/lake-7.pdf", None, "", "Download (CSV 88 kB") == ["Download", "kB", "lake"]
    assert FilesGoal(relevance=Share()).words_at("http://h/lake.pdf") == FilesGoal().words_at("http://h/l.pdf") == []


def test_a_crawl_counts_relevance() -> None:
    """The sum of the rewards is the expected number of relevant files."""
    goal = FilesGoal(relevance=Share())
    crawl = Crawl(BreadthFirst(), frontier=memory_frontier, goal=goal, strict=True)
    crawl.add([Link("http://h/", 1)])
    fetch(crawl, Link("http://h/a.pdf", 2, anchor="lake"), Link("http://h/b.pdf", 3, anchor="roads"))
    fetch(crawl, mime=PDF)
    fetch(crawl, mime=PDF)
    assert crawl.rewards == 0.5
    assert len(crawl.found_at) == 1


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://h/Rates2024-Q3_final.xlsx", "Rates 2024 Q 3 final"),
        ("http://h/data/", "data"),
        ("http://h/wages/2024/07.csv", "2024 07"),
        ("http://h/m%C3%BCll_abfuhr.pdf", "müll abfuhr"),
        ("http://h/get?f=%2e%2e%2fbudget.pdf&f=plan%20b.pdf", "get plan b"),
        ("http://h", ""),
        ("http://[bad/x.pdf", ""),
        ("", ""),
    ],
)
def test_the_words_of_a_file_are_those_of_its_name(url: str, words: str) -> None:
    """Of the last part of the path, and of the folder above a number."""
    assert words_in_url(url) == words


def test_a_text_around_a_link_that_is_the_link_counts_once() -> None:
    """Most links are alone in their element."""
    assert text_of(Link("http://h/", 1, anchor="Lake", context="Lake")) == "Lake"


@pytest.mark.parametrize(
    ("source", "title"),
    [
        ("<head><meta charset=utf-8><TITLE data-x='1'>A\n  b &lt;c&gt;</TITLE>", "A b <c>"),
        ("<title>", ""),
        ("<titles>no</titles>", ""),
        ("no page", ""),
        ("<title>first</title><svg><title>second</title></svg>", "first"),
        ("<title" * 60_000, ""),
        ("<title>" * 60_000, ""),
        ("<title " + " " * 400_000, ""),
    ],
)
def test_the_title_of_a_page_is_read_without_parsing_it(source: str, title: str) -> None:
    """Entities are resolved and blanks single; whatever a site sends, it takes linear time."""
    assert title_of(source) == title
