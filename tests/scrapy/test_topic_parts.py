"""The parts of the spider ``topic``: its arguments, their error messages, and keywords as a topic."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy.crawler import Crawler
from scrapy.exceptions import UsageError
from scrapy.http import HtmlResponse, Request
from scrapy.settings import Settings

from scrapy_focus import ConfigError
from scrapy_focus.config import Config
from scrapy_focus.features import rows_of
from scrapy_focus.finders.files.spider import DatasetsSpider
from scrapy_focus.finders.kit.spiders import middlewares
from scrapy_focus.finders.kit.spiders.page_texts import declared_language
from scrapy_focus.finders.topic import spider as topic
from scrapy_focus.finders.topic.spider import TopicSpider
from scrapy_focus.goals.topic import TopicGoal
from scrapy_focus.policies.branching.policy import BranchingBandit
from scrapy_focus.policies.treeq.policy import TreeQ
from scrapy_focus.topic.adaptive import AdaptiveRelevance
from scrapy_focus.topic.examples import Given, read_given
from scrapy_focus.topic.keywords import KeywordRelevance

SEED = "http://a.test/"


def spider(settings: dict[str, Any] | None = None, **arguments: Any) -> Any:
    """Return a spider, ready to crawl."""
    crawler = Crawler(TopicSpider, settings)
    return TopicSpider.from_crawler(crawler, **{name: str(value) for name, value in arguments.items()})


def write_examples(folder: Path) -> Path:
    for kind, text in (("positive", "honey of the bees"), ("negative", "steel of the mill")):
        (folder / kind).mkdir()
        for i in range(4):
            (folder / kind / f"{i}.txt").write_text(f"{text} {i}")
    return folder


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "what is the topic?"),
        ({"keywords": "bees"}, "where to start?"),
        ({"keywords": "bees", "seeds": "# http://a.test/"}, "where to start?"),
        ({"keywords": "bees", "seeds": "a.test"}, "'a.test' in seeds is neither a URL nor a file; where to start?"),
        (
            {"keywords": "bees", "seeds": "http://a.test/,ftp://b.test/"},
            "'ftp://b.test/' in seeds is neither a URL nor a file",
        ),
        ({"keywords": "bees", "seeds": "http://["}, "'http://[' in seeds is neither a URL nor a file"),
        ({"keywords": " , ", "seeds": SEED}, "keywords is ' , '"),
        ({"keywords": "no/such/file", "seeds": SEED}, "no/such/file cannot be read"),
        ({"keywords": "words.txt", "seeds": SEED}, "words.txt cannot be read"),
        ({"keywords": "!", "seeds": SEED}, "keywords is ['!']"),
        ({"model": "nowhere.npz", "seeds": SEED}, "there is no file nowhere.npz"),
        ({"examples": "nowhere", "seeds": SEED}, "nowhere/positive is not a folder"),
        ({"examples": "x", "model": "y", "seeds": SEED}, "give one of them"),
        ({"frequency": "0.1", "model": "y", "seeds": SEED}, "frequency goes with examples or keywords"),
        ({"frequency": "0", "keywords": "bees", "seeds": SEED}, "frequency is '0'"),
        ({"frequency": "1", "keywords": "bees", "seeds": SEED}, "frequency is '1'"),
        ({"frequency": "3 %", "keywords": "bees", "seeds": SEED}, "frequency is '3 %'"),
        ({"frequency": "nan", "keywords": "bees", "seeds": SEED}, "frequency is 'nan'"),
        ({"keywords": "bees", "seeds": SEED, "per_domain": "0"}, "per_domain is '0'"),
        ({"keywords": "bees", "seeds": SEED, "per_domain": "2-5"}, "per_domain is '2-5'"),
        ({"keywords": "bees", "seeds": SEED, "per_domain": "5-"}, "per_domain is '5-'"),
        ({"keywords": "bees", "seeds": SEED, "per_domain": "-5"}, "per_domain is '-5'"),
        ({"keywords": "bees", "seeds": SEED, "per_domain": "5-0"}, "per_domain is '5-0'"),
        ({"keywords": "bees", "seeds": SEED, "budget": "0"}, "budget is '0'"),
        ({"keywords": "bees", "seeds": SEED, "budget": "1e3"}, "budget is '1e3'"),
        (
            {"keywords": "bees", "seeds": SEED, "out": "/proc/no/pages.jsonl"},
            "cannot write to -a out=/proc/no/pages.jsonl: ",
        ),
        ({"keywords": "bees", "seeds": SEED, "out": "."}, "out is '.'"),
        (
            {"keywords": "bees", "seeds": SEED, "keyword": "x"},
            "unknown argument keyword; did you mean keywords? The arguments are seeds, about, examples",
        ),
    ],
    ids=str,
)
def test_bad_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: dict[str, str], said: str) -> None:
    """An unusable argument is an error that names it and says what would be right; nothing is written."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as caught:
        spider(**arguments)
    assert said in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("kinds", "said"),
    [
        ({}, "positive is not a folder"),
        ({"positive": []}, "positive has no example pages"),
        ({"positive": ["x.pdf"]}, "there is only x.pdf"),
        ({"positive": ["empty.txt"]}, "none of the 1 files in"),
        ({"negative": ["a.txt"]}, "positive is not a folder"),
        ({"positive": ["a.txt"], "negative": []}, "negative has no example pages"),
    ],
    ids=str,
)
def test_bad_examples(tmp_path: Path, kinds: dict[str, list[str]], said: str) -> None:
    """An unusable folder of examples is an error that names it; an existing folder ``negative`` must not be empty."""
    for kind, files in kinds.items():
        (tmp_path / "x" / kind).mkdir(parents=True)
        for file in files:
            (tmp_path / "x" / kind / file).write_text("" if file == "empty.txt" else "honey of the bees")
    with pytest.raises(UsageError) as caught:
        spider({"JOBDIR": str(tmp_path / "job")}, seeds=SEED, examples=tmp_path / "x", out=tmp_path / "o.jsonl")
    assert said in str(caught.value)
    assert not (tmp_path / "job").exists()


def test_examples_are_kept_with_the_job(tmp_path: Path) -> None:
    """A job resumes with the same model when the folder is gone or has other pages by now; a damaged copy is refused."""
    folder, settings = write_examples(tmp_path), {"JOBDIR": str(tmp_path / "job")}
    given = {"seeds": SEED, "examples": folder, "frequency": "0.03", "out": tmp_path / "o.jsonl"}
    first = spider(settings, **given)
    assert first.relevance.frequency == 0.03
    (tmp_path / "job" / "focus").mkdir()
    for file in (folder / "positive").iterdir():
        file.write_text("other words")
    assert spider(settings, **given).relevance.digest == first.relevance.digest
    for kind in ("positive", "negative"):
        (folder / kind).rename(tmp_path / f"{kind}-gone")
    assert spider(settings, **given).relevance.digest == first.relevance.digest
    stored = tmp_path / "job" / topic.EXAMPLES
    whole = stored.read_bytes()
    assert [len(texts) for texts in Given.stored(stored)] == [4, 4]
    for damaged in (b"", b"no", whole[:30], whole[:20] + b"xx" + whole[22:]):
        stored.write_bytes(damaged)
        with pytest.raises(UsageError, match="cannot be read"):
            spider(settings, **given)


def test_topics_in_settings(tmp_path: Path) -> None:
    """``FOCUS_TOPIC`` as a dict, or JSON, makes the model that the spider makes; its keywords are those of the crawl."""
    folder = write_examples(tmp_path)
    texts = read_given(folder / "positive", folder / "negative")
    both = AdaptiveRelevance(positives=texts.positives, negatives=texts.negatives, keywords=["bees"], frequency=0.1)
    positives = AdaptiveRelevance(positives=texts.positives)
    value = {
        "positive": str(folder / "positive"),
        "negative": str(folder / "negative"),
        "keywords": ["bees"],
        "frequency": 0.1,
    }
    for topic_, words, same in (
        (value, ("bees",), both), (json.dumps(value), ("bees",), both),
        ({"positive": folder / "positive"}, (), positives),
        ({"keywords": ["bees", "honey"]}, ("bees", "honey"), KeywordRelevance(["bees", "honey"])),
    ):  # fmt: skip
        config = Config.from_settings(Settings({"FOCUS_TOPIC": topic_}), BranchingBandit)
        assert config.mission().topic.digest == same.digest  # type: ignore[union-attr]
        assert config.mission().words == words
        assert config.policy is TreeQ
    config = Config.from_settings(Settings({"FOCUS_TOPIC": value, "FOCUS_KEYWORDS": ["queen"]}), TreeQ)
    assert config.mission().words == ("queen",)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"negative": "x"}, "what is the topic"),
        ({"positiv": "x"}, "there is no 'positiv' of a topic; there are about, positive, negative"),
        ({"positive": "nowhere"}, "nowhere is not a folder"),
        ({"keywords": "bees"}, "it takes a list of words"),
        ({"keywords": ["bees"], "frequency": 2}, "frequency"),
        ("{nonsense", "which is not JSON"),
        (7, "a dict like"),
    ],
    ids=str,
)
def test_bad_topics_in_settings(value: Any, said: str) -> None:
    """An impossible value is an error in one line that says what would be right."""
    with pytest.raises(ConfigError) as caught:
        Config.from_settings(Settings({"FOCUS_TOPIC": value}), TreeQ)
    assert "FOCUS_TOPIC" in str(caught.value)
    assert said in str(caught.value)


def test_a_cluster_has_no_topic_that_learns(tmp_path: Path) -> None:
    """If several machines judge pages, a topic that learns is refused, with a suggestion."""
    settings = {
        "FOCUS_CLUSTER": "auto",
        "JOBDIR": str(tmp_path),
        "FOCUS_TOPIC": {"keywords": ["bees"], "frequency": 0.1},
    }
    with pytest.raises(ConfigError, match=r"FOCUS_CLUSTER is 'auto'.*learns.*focus train"):
        Config.from_settings(Settings(settings), TreeQ)
    settings = {"FOCUS_CLUSTER": "auto", "JOBDIR": str(tmp_path)}
    mine = spider(settings, seeds=SEED, keywords="bees", out=tmp_path / "o.jsonl")
    assert isinstance(
        Config.from_settings(mine.crawler.settings, TreeQ, rows_of(mine.crawler.settings)).mission().topic,
        KeywordRelevance,
    )


def test_the_folder_of_the_results_is_made(tmp_path: Path) -> None:
    """And whether they can be written is known before anything is asked for, by both spiders."""
    spider(seeds=SEED, keywords="bees", out=tmp_path / "not/yet/pages.jsonl")
    assert list((tmp_path / "not/yet").iterdir()) == []
    (tmp_path / "file").touch()
    for out in (tmp_path / "file", Path("/proc/no")):
        with pytest.raises(UsageError, match="cannot write to"):
            DatasetsSpider.from_crawler(Crawler(DatasetsSpider), root=SEED, out=str(out))
    DatasetsSpider.from_crawler(Crawler(DatasetsSpider), root=SEED, out=str(tmp_path / "found/here"))
    assert list((tmp_path / "found/here").iterdir()) == []


def test_results_of_another_crawl_are_not_touched(tmp_path: Path) -> None:
    """A file that has results is neither added to nor overwritten, nor the examples of a job, but by the job that it belongs to."""
    out = tmp_path / "out.jsonl"
    out.write_text('{"url": "http://a.test/", "path": []}\n')
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / topic.EXAMPLES).write_bytes(b"not to be lost")
    folder = write_examples(tmp_path)
    for settings in ({}, {"JOBDIR": str(tmp_path / "job")}):
        with pytest.raises(UsageError, match=r"out\.jsonl contains the results of another crawl"):
            spider(settings, seeds=SEED, examples=folder, out=out)
    assert (tmp_path / "job" / topic.EXAMPLES).read_bytes() == b"not to be lost"
    (tmp_path / "job" / "focus").mkdir()
    going_on = spider({"JOBDIR": str(tmp_path / "job")}, seeds=SEED, keywords="bees", out=out)
    assert going_on.reached == {"http://a.test/": ("", "")}


def test_a_line_that_was_cut_is_passed_over(tmp_path: Path) -> None:
    """Of the results of a killed job the whole lines are read."""
    out = tmp_path / "out.jsonl"
    line = '{"url": "http://b.test/ü", "path": [{"url": "http://a.test/", "anchor": "ü"}]}\n'
    (tmp_path / "job" / "focus").mkdir(parents=True)
    for cut in range(len(line.encode())):
        out.write_bytes(line.encode() + line.encode()[:cut])
        going_on = spider({"JOBDIR": str(tmp_path / "job")}, seeds=SEED, keywords="bees", out=out)
        assert going_on.reached == {"http://a.test/": ("", ""), "http://b.test/ü": ("http://a.test/", "ü")}


def test_arguments_become_settings(tmp_path: Path) -> None:
    """Arguments reach the scheduler: the model as goal and in the policy, keywords, limit, budget; the user's win."""
    (tmp_path / "words.txt").write_text("\ufeffBees\nqueen excluder  # a phrase\n\n# none\n", encoding="utf-8")
    (tmp_path / "seeds.txt").write_text(
        f"\ufeff{SEED}\n  # comment\n\n{SEED}\nhttp://b.test/#part # why\n", encoding="utf-8"
    )
    given = {"seeds": tmp_path / "seeds.txt", "keywords": tmp_path / "words.txt", "out": tmp_path / "o.jsonl"}
    mine = spider(
        {"FOCUS_POLICY_PARAMS": {"falls_every": 7}},
        **given,
        examples=write_examples(tmp_path),
        per_domain="5-2",
        budget=1000,
    )
    assert mine.seeds == [SEED, "http://b.test/#part"]
    config = Config.from_settings(mine.crawler.settings, TreeQ, rows_of(mine.crawler.settings))
    assert config.budget_requests == 1000
    assert config.keywords == ("bees", "queen excluder")
    assert config.explain
    assert isinstance(config.goal, TopicGoal)
    given = read_given(tmp_path / "positive", tmp_path / "negative")
    same = AdaptiveRelevance(positives=given.positives, negatives=given.negatives, keywords=mine.keywords)
    assert config.goal.relevance.digest == same.digest
    on, off = config.goal.relevance.score(["honey of the bees", "steel of the mill"])
    assert on > off
    policy = config.make_policy()
    assert isinstance(policy, TreeQ)
    assert (policy.per_domain, policy.per_domain_least, policy.falls_every) == (5, 2, 7)
    assert config.mission().topic is config.goal.relevance
    assert list(mine.crawler.settings["FEEDS"]) == [str(tmp_path / "o.jsonl")]
    plain = spider(seeds=SEED, keywords="bees, queen", per_domain="5-2", budget=1000, out=tmp_path / "p.jsonl")
    config = Config.from_settings(plain.crawler.settings, TreeQ, rows_of(plain.crawler.settings))
    policy, mission = config.make_policy(), config.mission()
    assert isinstance(policy, TreeQ)
    assert (policy.per_domain, policy.per_domain_least, policy.falls_every) == (5, 2, 334)
    assert mission.words == ("bees", "queen")
    assert mission.topic is not None
    assert mission.topic.digest == KeywordRelevance(["bees", "queen"]).digest


def test_paths_stay_short_and_end(tmp_path: Path) -> None:
    """A long path is described by its seed and last steps; a circular one ends; the oldest pages are forgotten."""
    mine = spider(seeds=SEED, keywords="bees", out=tmp_path / "o.jsonl")
    for i in range(50):
        mine.remember(f"u{i}", f"u{i - 1}" if i else "", f"to {i}")
    steps = mine.path("u49")
    assert [step["url"] for step in steps] == ["u0", *(f"u{i}" for i in range(30, 49))]
    assert steps[-1] == {"url": "u48", "anchor": "to 49"}
    mine.remember("u3", "u49", "later")
    assert mine.reached["u3"] == ("u2", "to 3")
    mine.reached |= {"a": ("b", ""), "b": ("a", "")}
    assert mine.path("a") == [{"url": "b", "anchor": ""}]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(topic, "_PAGES", 60)
        for i in range(100):
            mine.remember(f"v{i}", "", "")
    assert len(mine.reached) == 60
    assert "v99" in mine.reached
    assert "u0" not in mine.reached


@pytest.mark.parametrize(
    ("source", "header", "said"),
    [
        ("<html lang=' pt-BR '>", "", "pt-BR"), ("<html xml:lang=ru>", "", "ru"), ("<p>x", "", ""), ("", "", ""),
        ("<html lang=''><meta http-equiv=content-Language content=fi>", "sv", "fi"), ("<p>x", "sv, fi", "sv, fi"),
        ("<meta http-equiv=content-language>", "", ""),
    ],
)  # fmt: skip
def test_languages(source: str, header: str, said: str) -> None:
    """The language is declared by the page, at its root, in its head or in the headers."""
    response = HtmlResponse(SEED, body=source.encode(), headers={"Content-Language": header} if header else {})
    assert declared_language(response) == said


def test_only_redirects_of_pages_to_other_domains_are_links() -> None:
    """The middleware marks those only: not redirects within a domain or of robots.txt, and no other responses."""
    from scrapy.http.request import NO_CALLBACK

    for url, status, location, callback, marked in (
        (SEED, 301, "http://b.test/", None, True), (SEED, 308, "//b.test/ä", None, True),
        (SEED, 301, "http://www.a.test/x", None, False), (SEED, 302, "/x", None, False), (SEED, 301, "", None, False),
        (SEED, 301, "http://b.test/", NO_CALLBACK, False), (SEED, 200, "http://b.test/", None, False),
        ("http://x.github.io/", 301, "http://y.github.io/", None, True), (SEED, 301, "http://[", None, False),
    ):  # fmt: skip
        request = Request(url, callback=callback)
        response = HtmlResponse(url, status=status, headers={"Location": location} if location else {})
        assert middlewares.RedirectsAreLinks().process_response(request, response) is response
        assert request.meta.get("handle_httpstatus_list") == ([status] if marked else None), (url, status, location)


def test_keywords_as_a_topic() -> None:
    """Two different keywords that are one word in a hundred make a page relevant; they count as the policy finds them in links."""
    relevance = KeywordRelevance(["Bees", "honey", "queen excluder", "wax", "蜂"])
    filler = " filler" * 97

    def is_on_topic(text: str) -> bool:
        return bool(relevance.score([text])[0] >= 0.5)

    assert is_on_topic("BEES honey.")
    assert is_on_topic("bees honey" + filler)
    assert not is_on_topic("bees honey" + filler * 3)
    assert is_on_topic("bees honey " * 3 + filler * 3)
    assert not is_on_topic("bees " * 10)
    assert is_on_topic("honeycomb and the Queen-Excluder")
    assert not is_on_topic("waxing honey")  # a short keyword is a whole word
    assert relevance.score(["", "steel", "bees"]).tolist() == [0, 0, pytest.approx(1 / 3)]
    assert KeywordRelevance(["bees"]).score(["bees"])[0] == 0.5
    with pytest.raises(ConfigError, match="give words or phrases"):
        KeywordRelevance(["", "-"])


@given(st.lists(st.text(), max_size=5), st.lists(st.text(min_size=1), min_size=1, max_size=5))
def test_keywords_of_any_kind(texts: list[str], keywords: list[str]) -> None:
    """Whatever the keywords and texts are, scores are probabilities, the same in a copy, and the digest is of the keywords."""
    try:
        relevance = KeywordRelevance(keywords)
    except ConfigError:
        return
    scores = relevance.score(texts)
    assert scores.shape == (len(texts),)
    assert ((scores >= 0) & (scores < 1)).all()
    copy = pickle.loads(pickle.dumps(relevance))
    assert copy.score(texts).tolist() == scores.tolist()
    assert copy.digest == KeywordRelevance([*reversed(keywords)]).digest
    assert repr(copy) == repr(relevance)
    assert (
        KeywordRelevance([*keywords, "another one"]).digest != relevance.digest or "another one" in relevance.keywords
    )
    assert relevance.score([" ".join(keywords)])[0] > 0
