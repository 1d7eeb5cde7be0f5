"""Imports the synthetic portal that comes with the package: a recording to try things out, in seconds."""

from __future__ import annotations

from scrapy_focus.lab.recordings.importers.folder import SiteImporter
from scrapy_focus.lab.sites.portal.portal import StatisticsPortal


class PortalImporter(SiteImporter):
    """Imports a :class:`~scrapy_focus.lab.sites.portal.portal.StatisticsPortal` with a calendar of one year.

    Parameters
    ----------
    pages
        Approximate number of its pages, 200 to 1,000,000.

    Raises
    ------
    ValueError
        If there cannot be a portal of that size.
    """

    def __init__(self, pages: int | str) -> None:
        super().__init__(StatisticsPortal(pages=int(pages), endless=False), root="http://portal.example/")
