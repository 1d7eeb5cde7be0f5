"""States of texts: zeros at first, then what a text is about, whatever the texts are."""

from __future__ import annotations

import math
from itertools import combinations
from random import Random

import numpy as np
import pytest

from scrapy_focus.jobs.pickles import Classes
from scrapy_focus.policies.foragers.states import N_WORDS, TextStates

TOPICS = ("wine", "steel", "music", "court")


def text_on(topic: str, n: int) -> str:
    """Return a text of a hundred words, half of them of a topic and half of any."""
    rng = Random(f"{topic}/{n}")
    own = [f"{topic}{chr(97 + rng.randrange(26))}" for _ in range(50)]
    return " ".join([*own, *(f"word{chr(97 + rng.randrange(26))}" for _ in range(50))])


def texts(n: int = 40, first: int = 0) -> list[str]:
    """Return texts on four topics, one after the other."""
    return [text_on(TOPICS[i % 4], first + i) for i in range(n)]


def fitted(sample: list[str], k: int = 8, seed: int = 0, *, centred: bool = True) -> TextStates:
    """Return states whose sample these texts are."""
    states = TextStates(k=k, sample=len(sample), seed=seed, centred=centred)
    for text in sample:
        states.state_of(text)
    return states


def test_all_states_are_zero_until_the_sample_is_there() -> None:
    """The last text of the sample still has zeros; then the version is 1, and states are numbers from -1 to 1."""
    states = TextStates(k=8, sample=40)
    for text in texts():
        assert states.version == 0
        assert not states.state_of(text).any()
    assert states.version == 1
    found = np.array([states.state_of(text) for text in texts(first=100)])
    assert (found.dtype, found.shape) == (np.float32, (40, 8))
    assert found.any(axis=1).all()
    assert abs(found).max() <= 1


def test_states_by_hand() -> None:
    """Of two texts each is a group; P(group | word) is P(word | text) by the same and 2 / 16,384 of general text."""
    states = fitted(["aa aa bb", "cc"], k=2)
    general = 2 / N_WORDS
    a, b = (2 / 3) / (2 / 3 + general), (1 / 3) / (1 / 3 + general)
    mean = deviation = (2 / 3 * a + 1 / 3 * b) / 2  # of this text's group over both texts; the other's works alike
    found = sorted(states.state_of("bb unseen").tolist())
    assert found == pytest.approx(sorted([math.tanh((b / 2 - mean) / deviation), math.tanh(-1)]), abs=1e-5)
    assert sorted(states.state_of("cc").tolist()) == pytest.approx([math.tanh(-1), math.tanh(1)], abs=1e-5)


def test_plain_states_by_hand() -> None:
    """As printed in section 3.1.2, the tangent of P(group | text): of "bb unseen" half of .99963, that of "bb".

    A link without known words leads halfway from the mean of the sample, .4999 of each group, to its page.
    """
    states = fitted(["aa aa bb", "cc"], k=2, centred=False)
    assert sorted(states.sampled().ravel().tolist()) == pytest.approx([0, 0, 0.761492, 0.761543], abs=2e-6)
    assert sorted(states.state_of("bb unseen").tolist()) == pytest.approx([0, 0.461973], abs=2e-6)
    again = Classes().loads(Classes().dumps(fitted(["aa aa bb", "cc"], k=2, centred=False)))
    means = again.predict(np.zeros(2, np.float32), ["unseen"])[0]
    assert means == pytest.approx(0.244880, abs=1e-4)


def test_groups_with_more_texts_are_more_probable() -> None:
    """PrTFIDF: "wine" is a third of both texts of one group, and a sixth of the only one of the other; so it is of the
    first with (2/3) / (5/6 + 3/16,384) = .79982, and of the other with .19996.
    """
    states = fitted(["wine red old", "wine red new", "steel rail iron mill hot wine"], k=2, centred=False)
    assert sorted(states.state_of("wine").tolist()) == pytest.approx([0.197333, 0.663939], abs=2e-6)


@pytest.mark.slow
def test_texts_on_one_topic_are_alike() -> None:
    """New texts have states that are nearer to each other on one topic than on two, for nearly all pairs."""
    states = fitted(texts(80))
    found = [(i % 4, states.state_of(text)) for i, text in enumerate(texts(20, first=1000))]
    same, other = [], []
    for (one, x), (two, y) in combinations(found, 2):
        (same if one == two else other).append(float(x @ y) / float(np.linalg.norm(x) * np.linalg.norm(y)))
    assert np.percentile(same, 5) > np.percentile(other, 95)


def test_states_are_the_same_from_the_same_texts() -> None:
    """Two that saw the same texts agree in every bit; a version never changes what it says of a text."""
    one, two = fitted(texts()), fitted(texts())
    first = one.state_of("winea wordb")
    for text in texts(first=500):
        assert one.state_of(text).tolist() == two.state_of(text).tolist()
    assert one.state_of("winea wordb").tolist() == first.tolist()
    assert one.version == 1


@pytest.mark.parametrize("seen", [25, 40])
def test_stored_states_continue_where_they_were(seen: int) -> None:
    """Stored in a JOBDIR before or after the groups were made, they give the same states as those that were not."""
    states = TextStates(k=8, sample=40)
    for text in texts()[:seen]:
        states.state_of(text)
    data = Classes().dumps(states)
    other = Classes().loads(data)
    assert len(data) < 20_000
    for text in texts()[seen:]:
        other.state_of(text)
        states.state_of(text)
    assert (other.version, states.version) == (1, 1)
    for links in (["winea", "steelb wordc"], ["music"]):
        both = [each.predict(each.state_of("courtd"), links).tolist() for each in (other, states)]
        assert both[0] == both[1]
        other = Classes().loads(Classes().dumps(other))
    assert [other.state_of(text).tolist() for text in texts(9, first=70)] == [
        states.state_of(text).tolist() for text in texts(9, first=70)
    ]


def test_the_sample_is_not_kept() -> None:
    """Of no text a word is stored, and the sample is dropped when the groups were made."""
    before = TextStates(k=8, sample=41)
    for text in texts():
        before.state_of(text)
    assert b"wine" not in Classes().dumps(before)
    assert not fitted(texts())._sample


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "sample",
    [
        ["the same text"] * 30,
        ["one word", "two words"] * 15,
        ["word " * n for n in range(1, 30)],
        [f"word{n}" for n in range(30)],
        [f"word{n % 5} common" for n in range(30)],
        ["ワイン赤い日本語テキスト" * n + chr(0x4E00 + n) for n in range(1, 30)],
        ["Καλημέρα κόσμε", "\ud800 alone", "١٢٣ عربي"] * 10,
        ["x" * 100_000, *texts(12)],
        ["alone"],
    ],
    ids=["same", "two", "longer", "short", "few", "Japanese", "scripts", "long", "one"],
)
def test_any_texts_make_a_sample(sample: list[str]) -> None:
    """Where all texts are alike, fewer than the groups, tiny, or of any script, states are numbers from -1 to 1."""
    states = fitted(sample)
    assert states.version == 1
    found = np.array([states.state_of(text) for text in [*sample, "", "new words", "\udfff"]])
    assert np.isfinite(found).all()
    assert abs(found).max() <= 1
    distinct = len(set(sample)) if not sample[-1].startswith("word word") else 1  # which has the same words each time
    assert found.any() == (distinct > 1)


def test_texts_of_the_sample_have_states_afterwards() -> None:
    """They come in the order of the calls, once: the current ones; zeros without words."""
    sample = ["", *texts(20), "...", *texts(20)]
    states = TextStates(k=8, sample=40)
    for text in sample:
        assert not len(states.sampled())
        states.state_of(text)
    assert states.version == 1
    found = Classes().loads(Classes().dumps(states)).sampled()
    np.testing.assert_array_equal(found, states.sampled())
    np.testing.assert_allclose(found, [states.state_of(text) for text in sample], atol=1e-6)
    assert not len(states.sampled())


def test_the_state_behind_a_link_by_hand() -> None:
    """Half of the parent, as 30 words count, with each known word of the link, less what all had in common."""
    states = fitted(["aa aa bb", "cc"], k=2)
    parent = np.tanh(np.array([0.4, -0.8], np.float32))
    general = 2 / N_WORDS
    a, b = (2 / 3) / (2 / 3 + general), (1 / 3) / (1 / 3 + general)
    mean = (2 / 3 * a + 1 / 3 * b) / 2  # and the deviation is the same
    one = states.state_of("aa")
    mine = int(one[1] > 0)  # the group of "aa"
    usual = np.arctanh(one.astype(np.float64)) / 3  # of two texts, whose mean is 0, and this
    c = 1 / (1 + general)
    own_a, own_c = np.full(2, -1.0), np.full(2, -1.0)
    own_a[mine], own_c[1 - mine] = a / mean - 1, c / (c / 2) - 1
    common = (2 * own_a + own_c) / 3
    found = states.predict(parent, ["aa unseen, aa", "cc", "", "unseen"])
    inherited = (np.array([0.4, -0.8]) - usual) / 2
    expected = [
        (30 * inherited + 2 * (own_a - common)) / 32,
        (30 * inherited + own_c - common) / 31,
        inherited,
        inherited,
    ]
    np.testing.assert_allclose(found, np.tanh(usual + np.array(expected)), atol=1e-4)


def test_states_behind_links_are_near_the_true_ones() -> None:
    """From the parent and a text of four words, they are nearer to the true ones than the parent alone."""
    states, rng = fitted(texts(80)), Random(1)
    pages = [states.state_of(text) for text in texts(40, first=1000)]
    by_parent, predicted = [], []
    for _ in range(200):
        at = rng.randrange(40)
        parent = pages[rng.choice([at, rng.randrange(40)])]
        words = " ".join(rng.sample(text_on(TOPICS[at % 4], 2000 + at).split(), 4))
        found = states.predict(parent, [words])[0]
        by_parent.append(float(parent @ pages[at]) / float(np.linalg.norm(parent) * np.linalg.norm(pages[at])))
        predicted.append(float(found @ pages[at]) / float(np.linalg.norm(found) * np.linalg.norm(pages[at])))
    assert np.mean(predicted) > np.mean(by_parent) + 0.05


def test_of_links_nothing_is_predicted_before_there_are_groups() -> None:
    """They have zeros then, and no links no states."""
    states = TextStates(k=8, sample=40)
    assert states.predict(np.zeros(8, np.float32), ["winea", ""]).tolist() == [[0.0] * 8] * 2
    for text in texts():
        states.state_of(text)
    assert states.predict(np.zeros(8, np.float32), []).shape == (0, 8)
    assert states.predict(np.ones(8, np.float32), ["\ud800 winea"]).max() < 1


def test_texts_without_words_count_as_none() -> None:
    """They have zeros, before and after, and are not of the sample."""
    states = TextStates(k=2, sample=2)
    for text in ("", "- . !", "one", "", "two"):
        assert states.version == 0
        assert not states.state_of(text).any()
    assert states.version == 1
    assert states.state_of("one").all()
    assert not states.state_of("- . !").any()


@pytest.mark.parametrize("n", [0, 3])
def test_a_sample_is_complete_without_many_words_too(n: int) -> None:
    """After ten times the sample, groups are made of the few texts that have words; where none has, all stays 0."""
    states = TextStates(k=2, sample=5)
    sample = [*texts(n), *["."] * (50 - n)]
    for text in sample:
        assert states.version == 0
        states.state_of(text)
    assert states.version == 1
    assert states.sampled().any(axis=1).tolist() == [bool(n and text != ".") for text in sample]
    assert bool(states.state_of("winea").any()) == (n > 0)


def test_the_end_of_a_very_long_text_is_not_read() -> None:
    """Words behind the first 20,000 characters change nothing."""
    states, text = fitted(texts()), " ".join(texts())[:20_000].ljust(20_000)
    assert states.state_of(text).any()
    assert states.state_of(text + " steela" * 1000).tolist() == states.state_of(text).tolist()


@pytest.mark.parametrize(("k", "sample"), [(0, 300), (50, 0)])
def test_there_is_a_group_and_a_text(k: int, sample: int) -> None:
    """The message says what was given."""
    with pytest.raises(ValueError, match=f"k={k}, sample={sample}; both are whole numbers from 1"):
        TextStates(k=k, sample=sample)
