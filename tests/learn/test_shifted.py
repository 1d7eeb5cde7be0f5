"""A model whose probabilities follow how frequent the topic is among the pages that are met."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from scrapy_focus import ConfigError
from scrapy_focus.topic.adaptive import AdaptiveRelevance
from scrapy_focus.topic.examples import Given
from scrapy_focus.topic.keywords import KeywordRelevance
from scrapy_focus.topic.models import made_of
from scrapy_focus.topic.shifted import ShiftedRelevance


class Noisy:
    """A model whose log-odds are what the number in a text says: right for a topic that is half of the web."""

    digest = "noisy"

    def score(self, texts):
        return 1 / (1 + np.exp(-np.array([float(text) for text in texts])))


def pages(n: int, share: float, seed: int = 0) -> tuple[list[str], np.ndarray]:
    """Return texts with a share on the topic, and which are.

    Their log-odds are normal with mean 2 and -2 and variance 4, so that they are those of a calibrated model.
    """
    rng = np.random.default_rng(seed)
    on = rng.random(n) < share
    return [str(odds) for odds in rng.normal(np.where(on, 2.0, -2.0), 2.0)], on


def after(texts: list[str], **more: float) -> ShiftedRelevance:
    """Return a model that has seen these pages."""
    model = ShiftedRelevance(Noisy(), **more)
    for text in texts:
        model.see(text)
    return model


@pytest.mark.parametrize("share", [0.03, 0.15, 0.4])
def test_it_finds_the_frequency(share: float) -> None:
    """After some hundred pages the estimate is near the truth, and probabilities add up to as many pages as there are."""
    model = after(pages(2_000, share)[0])
    assert model.frequency == pytest.approx(share, rel=0.5)
    texts, on = pages(4_000, share, seed=1)
    scores = model.score(texts)
    assert scores.sum() == pytest.approx(on.sum(), rel=0.5)
    called = scores >= 0.5
    assert (called & on).sum() / called.sum() > 0.6
    assert (Noisy().score(texts) >= 0.5)[~on].sum() > (1.2 if share > 0.2 else 3) * called[~on].sum()


def test_the_order_stays_that_of_the_model() -> None:
    """Whatever was seen, of two texts the one that the model likes more scores more."""
    texts, _ = pages(200, 0.1)
    model = after(texts)
    assert model.refits > 3
    assert np.array_equal(np.argsort(model.score(texts)), np.argsort(Noisy().score(texts)))


def test_before_the_first_estimate_it_is_the_model() -> None:
    """Few pages say nothing; a frequency that is known counts at once, and stays."""
    texts, _ = pages(24, 0.1)
    assert after(texts).score(texts).tolist() == Noisy().score(texts).tolist()
    known = after(pages(500, 0.5)[0], frequency=0.1)
    assert (known.frequency, known.refits) == (0.1, 0)
    assert known.score(["0.0"])[0] == pytest.approx(0.1)


def test_it_resumes() -> None:
    """One with the state of another scores alike, now and after more pages; so does one out of a pickle."""
    texts, _ = pages(400, 0.2)
    whole, first = after(texts), after(texts[:330])
    second = ShiftedRelevance(Noisy())
    second.restore(pickle.loads(pickle.dumps(first.state())))
    third = pickle.loads(pickle.dumps(first))
    for model in (second, third):
        for text in texts[330:]:
            model.see(text)
        assert (model.score(texts).tolist(), model.digest) == (whole.score(texts).tolist(), whole.digest)


def test_it_warns_where_all_is_called_relevant() -> None:
    """Once 85 of 100 pages in a row are, and not where a good part is not."""
    assert after(pages(1_000, 0.5)[0]).alarm == ""
    assert after(["2.0"] * 84).alarm == ""
    alarm = after(["2.0"] * 85).alarm
    assert alarm.startswith("of the last 100 pages 85 were called relevant")
    assert after(["2.0"] * 85 + ["-2.0"] * 200).alarm == alarm, "said once, it stays"


def test_it_is_no_surer_than_the_model() -> None:
    """However many pages look like the topic, probabilities are at most those of the model."""
    model = after(pages(1_000, 0.95)[0])
    assert model.frequency == 0.5
    texts = pages(100, 0.5, seed=1)[0]
    assert model.score(texts).tolist() == pytest.approx(Noisy().score(texts).tolist())


def test_extreme_scores_do_no_harm() -> None:
    """Pages with extreme scores leave the frequency a share, and the scores numbers."""
    for odds in ("700", "-700"):
        model = after([odds] * 3_000)
        assert 0 < model.frequency < 1
        assert np.isfinite(model.score([odds, "0"])).all()


def test_a_frequency_that_is_none_is_refused() -> None:
    """It is a share between 0 and 1."""
    with pytest.raises(ConfigError, match=r"frequency is 1\.5"):
        ShiftedRelevance(Noisy(), frequency=1.5)


def test_what_there_is_to_go_by_decides_which_model_it_is() -> None:
    """Keywords judge as they are, many examples are trained on once, anything else learns from the crawl."""
    wine, other = ["red wine", "white wine"] * 5, ["steel mill", "steel train"] * 5
    assert isinstance(made_of(Given([], []), ["wine"], None), KeywordRelevance)
    assert isinstance(made_of(Given(wine, other), [], None), ShiftedRelevance)
    for given, keywords in ((Given(wine, []), []), (Given(wine, other), ["wine"]), (Given(wine, other[:9]), [])):
        assert isinstance(made_of(given, keywords, None), AdaptiveRelevance)
    known = made_of(Given(wine, other * 5), [], 0.1)
    assert known.score(["red wine"])[0] < made_of(Given(wine, other * 5), [], None).score(["red wine"])[0]
    with pytest.raises(ConfigError, match="nothing to go by"):
        made_of(Given([], []), [], None)
