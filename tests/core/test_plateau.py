"""The early-stopping rule, with averages computed by hand."""

from __future__ import annotations

import pytest

from scrapy_focus import ConfigError, Plateau


def test_slopes_are_averaged_with_exponential_weights() -> None:
    """Slopes 0.5, 0.1, 0.0 with weight 0.25 average to 0.5, 0.4, 0.3; the first one counts in full."""
    plateau, averages = Plateau(window=10, slope=0.2, decay=0.25, patience=1), []
    for requests, targets in ((10, 5), (20, 6), (30, 6)):
        assert not plateau.reached(requests, targets)
        averages.append(plateau.average)
    assert averages == pytest.approx([0.5, 0.4, 0.3])


def test_the_plateau_is_reached_after_so_many_windows_in_a_row() -> None:
    """With weight 1, slopes 0.1, 0.3, 0.1, 0.1 and patience 2: the third is the first of a row, the fourth the last."""
    plateau = Plateau(window=10, slope=0.2, decay=1.0, patience=2)
    assert [plateau.reached(*at) for at in ((10, 1), (20, 4), (30, 5), (40, 6))] == [False, False, False, True]
    assert plateau.reached(41, 6), "it stays reached until the next look"


def test_an_average_at_the_slope_is_good_enough() -> None:
    """Only an average below the slope counts."""
    plateau = Plateau(window=10, slope=0.5, decay=1.0, patience=1)
    assert [plateau.reached(*at) for at in ((10, 5), (20, 9))] == [False, True]


def test_it_may_be_asked_at_any_time() -> None:
    """Questions within a window change nothing; a window that was overrun counts with the requests that it had."""
    plateau = Plateau(window=10, slope=0.2, decay=1.0, patience=1)
    assert [plateau.reached(n, 0) for n in range(10)] == [False] * 10
    assert plateau.average is None
    assert not plateau.reached(20, 10)
    assert plateau.average == 0.5
    assert [plateau.reached(n, 11) for n in (21, 25, 29)] == [False] * 3
    assert plateau.reached(30, 11)
    assert plateau.average == pytest.approx(0.1)


def test_defaults_let_a_crawl_run() -> None:
    """With the defaults a crawl that finds nothing stops after 15 windows of 1000 requests."""
    plateau = Plateau()
    reached = [plateau.reached(n, 0) for n in range(1000, 16_000, 1000)]
    assert reached == [False] * 14 + [True]


@pytest.mark.parametrize("wrong", [{"window": 0}, {"slope": -0.1}, {"decay": 0.0}, {"decay": 1.1}, {"patience": 0}])
def test_parameters_are_checked(wrong) -> None:
    """What makes no sense is refused, and the message shows all four values."""
    with pytest.raises(ConfigError, match=f"{next(iter(wrong))}={next(iter(wrong.values()))}"):
        Plateau(**wrong)
