"""A figure that a notebook shows as a picture, once, whether or not the notebook uses pyplot.

IPython prints a figure as ``<Figure size ...>`` until pyplot or ``%matplotlib inline`` registers how to show figures.
Importing pyplot here would choose a backend for the user. A method of the figure itself does neither.
"""

from __future__ import annotations

import io

from matplotlib.figure import Figure

_DPI = 144  # twice the resolution at which it is shown, for screens that have it
_SHOWN_DPI = 72


class ShownFigure(Figure):
    """A Matplotlib figure that IPython, and whatever reads notebooks, shows as a picture."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=_DPI, facecolor="white", metadata={"Software": None})
        width, height = (round(inches * _SHOWN_DPI) for inches in self.get_size_inches())
        return file.getvalue(), {"width": width, "height": height}
