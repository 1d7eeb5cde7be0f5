"""ACHE's way: best-first by a link classifier that is trained again while the crawl runs."""

from scrapy_focus.policies.linkclassifier.policy import OnlineLinkClassifier

__all__ = ["OnlineLinkClassifier"]
