"""TRES adapted to files: the topical crawler among the baselines of the SB-CLASSIFIER paper.

TRES looks for pages on a topic, and never requests a file. As a crawler for files it needs two things: a topic that
pages with files have in common, and somebody to fetch the files. The topic is that a page links to a target; whatever
is no page is fetched at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from scrapy_focus.core.parameters import configurable, parameter
from scrapy_focus.core.reason import Part, Reason, depth_of
from scrapy_focus.core.types import Placement, State
from scrapy_focus.policies.tagpath.oracles import Informed
from scrapy_focus.policies.topical import plain
from scrapy_focus.policies.treeq.policy import TreeQ
from scrapy_focus.policies.treeq.rules import Rules
from scrapy_focus.web.html import html_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy_focus.core.mission import Mission
    from scrapy_focus.core.types import Link, Outcome, Pick
    from scrapy_focus.policies.tagpath.oracles import Truth

#: Terms that are likely near links to data files, as many as in the paper.
TERMS = (
    "csv", "tsv", "xls", "xlsx", "ods", "pdf", "docx", "odt", "pptx", "zip", "gz", "tgz", "bz2", "json", "geojson",
    "xml", "sql", "parquet", "hdf5", "netcdf", "shp", "kml", "txt", "sav",
    "download", "dataset", "data", "file", "spreadsheet", "worksheet", "table", "statistics", "microdata", "extract",
    "export", "archive", "attachment", "annex", "appendix", "enclosure", "report", "bulletin", "yearbook",
    "questionnaire", "factsheet", "brochure", "leaflet", "codebook", "metadata", "example", "notebook", "printable",
    "full text", "raw data", "source code", "open data", "time series", "machine readable", "bulk download", "save as",
    "data dictionary", "sample data", "input file", "output file", "supplementary material", "user manual",
    "reference manual", "annual review", "working paper", "press kit", "release notes", "slide deck", "all files",
    "code list",
)  # fmt: skip
_NO_PAGE = ("target", "other")
_RELEVANT = 0.5  # least probability of a relevant page


@configurable
class OracleTreeQ(TreeQ, Informed):
    """TRES adapted to files: it looks for pages that link to targets, and knows which links are not pages.

    Links to pages are queued and chosen as :class:`~scrapy_focus.policies.treeq.TreeQ` does by its preset. A page is
    relevant, and earns 1, if it links to a target, whether that is fetched or not: by the truth, or by the classifier
    ``relevance``, which reads its text. The truth says which links are not pages. These are fetched at once, first in
    first out, and teach nothing.

    Notes
    -----
    As published / as released, and what this class does:

    * *Relevance*: the paper has a classifier of texts, trained with 1,000 pages of the sites that are crawled. By
      default the truth judges pages, which is a further advantage: it makes no errors. ``relevance`` also reads the
      words of links; without it, the probability of a link is 0. It needs pages that were recorded with their texts.
    * *Terms*: the paper has 74 that are likely in anchors of links to targets, 43 words and 31 phrases in the
      released code. Here are as many, but others: ``TERMS``.
    * *Pages*: in the paper, an oracle says which URLs are HTML. As released, a link is a page unless it is known to
      have another type. So redirects, dead and unknown links are queued as pages, in both.
    * *Hosts*: as released, without the features of hosts. The filter of languages is off, as in the paper; TreeQ has
      none.

    *Memory*: that of TreeQ, and 8 bytes for each link queued to be fetched at once, and for each target of the site.

    References
    ----------
    Gauquier, Manolescu, Senellart: Efficient Crawling for Scalable Web Data Acquisition. EDBT 2026, arXiv:2602.11874,
    section 4.3.

    Examples
    --------
    >>> from scrapy_focus import Crawl, Link, memory_frontier
    >>> class Portal:
    ...     def kind(self, url):
    ...         return "target" if url.endswith(".csv") else "page"
    ...     def targets(self):
    ...         return [Link("http://a/1.csv", 1)]
    ...     def leads_to(self, key):
    ...         return []
    >>> policy = OracleTreeQ()
    >>> policy.inform(Portal())
    >>> crawl = Crawl(policy, frontier=memory_frontier, seed=0)
    >>> crawl.add([Link("http://a/about", 2, "a"), Link("http://a/1.csv", 1, "a")])
    2
    >>> crawl.next().url
    'http://a/1.csv'
    """

    summary: ClassVar[str] = (
        "Learns which links lead to pages with targets, from their words and the pages before them. It is given the "
        "pages with targets, and the kind of each address."
    )
    paper_names: ClassVar[Mapping[str, Mapping[str, Any]]] = {"TRES-FILES": {}}

    preset: Literal["", "tres-2023"] = parameter(
        '``"tres-2023"``: the rules of the paper and its released code; ``""``: the recommended ones.',
        default="tres-2023",
    )
    keywords: Collection[str] | None = parameter(
        "Terms that are likely near links to targets, see :class:`~scrapy_focus.learn.matching.Keywords`; ``None``: "
        "those of the mission.",
        default=TERMS,
        convert=plain,
    )

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self._at_once: deque[int] = deque()  # keys of links that are not pages; some may not be queued any more
        self._judgement = (-1, 0.0)  # of the last outcome: its pick, and the reward

    def inform(self, truth: Truth) -> None:
        super().inform(truth)
        self._targets = frozenset(link.key for link in truth.targets())

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        is_page = [link.state != State.NEW or self.truth.kind(link.url) not in _NO_PAGE for link in links]
        pages = [link for link, is_one in zip(links, is_page, strict=True) if is_one]
        queued = iter(super().place(pages, source and self._judged(source)))
        placements = [next(queued) if is_one else Placement(0, 0.0) for is_one in is_page]
        self._at_once += [link.key for link, is_one in zip(links, is_page, strict=True) if not is_one]
        return placements

    def select(self, busy: Collection[str]) -> Pick | None:
        _ = self.truth  # raises without the truth, even after a resume
        while self._at_once:
            pick = self.frontier.take(self._at_once[0])
            if pick is not None and pick.host in busy:
                self.frontier.release(pick)
                break
            self._at_once.popleft()
            if pick is not None:
                return pick
        return super().select(busy)

    def release(self, pick: Pick) -> None:
        if pick.id in self._chosen:
            super().release(pick)
        else:
            self._at_once.appendleft(pick.key)

    def learn(self, outcome: Outcome) -> None:
        super().learn(self._judged(outcome))

    def explain(self, pick: Pick) -> Reason:
        if pick.id not in self._chosen:
            return Reason(depth_of(pick), Part("known to be no page, so it is fetched at once", {"kind": "no page"}))
        return super().explain(pick)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_targets"}

    def _judged(self, outcome: Outcome) -> Outcome:
        """Return the outcome of a page with reward 1 if it links to a target, otherwise 0."""
        if outcome.pick.id != self._judgement[0]:
            self._judgement = (outcome.pick.id, float(outcome.is_html and self._is_relevant(outcome)))
        return outcome._replace(reward=self._judgement[1])

    def _is_relevant(self, outcome: Outcome) -> bool:
        classifier = self._features.reader.relevance
        if classifier is not None and outcome.page is not None:
            return bool(classifier.score([html_text(outcome.page.text)])[0] >= _RELEVANT)
        keys = (outcome.pick.key, *outcome.also)
        return any(not self._targets.isdisjoint(self.truth.leads_to(key)) for key in keys)

    def _rules_for(self, mission: Mission) -> Rules:
        changes = {"hosts": False} | (self.rules or {})
        return Rules.of(self.preset, self.mode, changes, topical=True, cap=self.per_domain)
