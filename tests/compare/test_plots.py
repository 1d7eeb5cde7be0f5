"""Plots: their contents, that lines can be distinguished, and that they need neither a window nor anything else."""

from __future__ import annotations

import io
import subprocess
import sys
from itertools import combinations
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import numpy as np
import pytest
from compared import comparison

from scrapy_focus import ConfigError
from scrapy_focus.lab.compare import plots
from scrapy_focus.lab.compare.folder import write

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy_focus.lab.compare.comparison import Comparison

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def made() -> Comparison:
    return comparison(
        {
            "one": {"SB-CLASSIFIER": [20.0, 30.0], "BFS": [50.0, 50.0], "OMNISCIENT": [10.0, 10.0]},
            "two $x_1$": {"SB-CLASSIFIER": [60.0, 50.0], "BFS": [50.0, 50.0], "OMNISCIENT": [10.0, 10.0]},
        }
    )


def luminance(colour: str) -> float:
    """Return how bright a colour is in grayscale, 0 to 1."""
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_a_mean_curve_by_hand(made: Comparison) -> None:
    """It is the mean over the seeds, with the standard deviation, and starts with nothing."""
    mean = plots.mean_curve(made, "one", "SB-CLASSIFIER", "requests")
    assert mean is not None
    assert (mean.x[0], mean.y[0], mean.x[-1], mean.y[-1]) == (0, 0, 100, 100)
    at = int(np.searchsorted(mean.x, 12.0))  # 100 / 20 and 100 / 30 % for each % of requests
    assert mean.y[at] == pytest.approx((60 + 40) / 2, abs=0.5)
    assert mean.sd[at] == pytest.approx(np.std([60, 40], ddof=1), abs=0.5)
    flat = plots.mean_curve(made, "one", "BFS", "volume")
    assert flat is not None
    assert not flat.sd.any()
    assert plots.mean_curve(made, "one", "nobody", "requests") is None


def test_a_crawl_that_is_over_keeps_what_it_has() -> None:
    """Where one seed needs fewer requests than another, the mean does not end with it or fall."""
    from compared import curve

    made = comparison({"one": {"BFS": [50.0, 50.0]}})
    object.__setattr__(made.runs[0], "curve", curve(2.0, end=50))
    mean = plots.mean_curve(made, "one", "BFS", "requests")
    assert mean is not None
    assert mean.x[-1] == 100
    assert (np.diff(mean.y) >= 0).all()


def test_what_is_wasted_from_the_start_is_a_vertical_line(made: Comparison) -> None:
    """A policy that wastes nothing is drawn from the bottom to the top at 0."""
    from dataclasses import replace

    from scrapy_focus.lab.compare.runs import Curve

    x = np.array([0.0, 50.0, 100.0])
    curve = Curve(requests=x, found=x, waste=np.zeros(3), volume=x)
    made.runs = [replace(run, curve=curve) for run in made.of("one", "OMNISCIENT")]
    mean = plots.mean_curve(made, "one", "OMNISCIENT", "volume")
    assert mean is not None
    assert (mean.y[0], mean.y[1], mean.x[-1]) == (0, 100, 0)


def test_lines_can_be_told_apart_without_colours() -> None:
    """Up to 30 policies differ in colour or dashes, the first five in dashes alone; OMNISCIENT is in no cycle."""
    labels = [f"p{number}=BFS" for number in range(12)]
    made = comparison({"one": {label: [50.0] for label in [*labels[:3], "OMNISCIENT", *labels[3:]]}}, baseline="p0")
    styles = {policy: plots.style_of(made, policy) for policy in made.labels}
    assert len({(style.colour, str(style.dashes)) for style in styles.values()}) == 13
    first = [styles[f"p{number}"] for number in range(5)]
    assert len({str(style.dashes) for style in first}) == 5
    assert styles["OMNISCIENT"].width < min(style.width for style in first)
    for left, right in combinations(first, 2):
        assert left.dashes != right.dashes or abs(luminance(left.colour) - luminance(right.colour)) > 0.1


def test_panels_have_lines_bands_and_labels(made: Comparison) -> None:
    """Each site has two panels with a line for each policy, a band where seeds differ, axes with units, one legend."""
    figure = plots.draw_site(made, "one")
    assert len(figure.axes) == 2
    for axis in figure.axes:
        assert len(axis.lines) == 3
        assert len(axis.collections) == 1
        assert "%" in axis.get_xlabel()
        assert "%" in axis.get_ylabel()
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == made.labels
    assert len(plots.draw_overview(made).axes) == 2


def test_with_a_budget_the_axis_ends_where_the_curves_do() -> None:
    """What was cut off is not drawn as empty space."""
    made = comparison({"one": {"BFS": [50.0]}}, budget=40)
    assert plots.draw_panel(made, "one", "requests").axes[0].get_xlim()[1] == pytest.approx(101)
    from dataclasses import replace

    from compared import curve

    made.runs = [replace(made.runs[0], curve=curve(1.0, end=20))]
    assert plots.draw_panel(made, "one", "requests").axes[0].get_xlim()[1] == pytest.approx(20.2)


def test_images_are_images(made: Comparison) -> None:
    """PNG and SVG can be opened, equal figures are equal files, and names are no formulas."""
    png, svg = (save(plots.draw_site(made, "two $x_1$")) for save in (plots.png, plots.svg))
    assert png.startswith(b"\x89PNG")
    assert ElementTree.parse(io.BytesIO(svg)).getroot().tag == f"{SVG}svg"
    assert svg == plots.svg(plots.draw_site(made, "two $x_1$"))


def test_an_inline_figure_fits_into_a_page(made: Comparison) -> None:
    """It has a title, text as text in the colour of the page, unique ids, no fixed size, nothing from outside."""
    figures = [plots.draw_panel(made, site, "requests") for site in made.sites]
    panels = [plots.inline_svg(figure, f"n{n}", "A & B") for n, figure in enumerate(figures)]
    roots = [ElementTree.fromstring(panel) for panel in panels]
    ids = [{element.get("id") for element in root.iter() if element.get("id")} for root in roots]
    assert not ids[0] & ids[1]
    for root, panel in zip(roots, panels, strict=True):
        title = root.find(f"{SVG}title")
        assert title is not None
        assert (title.text, root.get("role"), root.get("aria-labelledby")) == ("A & B", "img", title.get("id"))
        assert root.get("width") is None
        assert root.get("height") is None
        assert root.get("viewBox")
        assert "SB-CLASSIFIER" in "".join(root.itertext())
        assert plots.INK not in panel
        assert "currentColor" in panel
        uses = {value[1:] for element in root.iter() for name, value in element.attrib.items() if name.endswith("href")}
        assert uses <= {name for some in ids for name in some}
        assert "<metadata" not in panel


def test_without_matplotlib_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, made: Comparison) -> None:
    """The error has the command; everything that draws nothing works."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ConfigError, match=r'needs matplotlib: pip install "scrapy-focus\[lab\]", or .*--no-plots'):
        plots.draw_site(made, "one")


@pytest.mark.slow
def test_matplotlib_is_imported_when_something_is_drawn(tmp_path: Path, made: Comparison) -> None:
    """Comparing and writing without plots imports no matplotlib; drawing leaves pyplot and the settings alone."""
    imports = "import sys; from scrapy_focus.lab.compare import comparison, folder, page, plots"
    code = f"{imports}; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
    import matplotlib as mpl

    before = mpl.rcParams.copy()
    write(made, tmp_path / "out")
    assert mpl.rcParams.copy() == before
    assert "matplotlib.pyplot" not in sys.modules
