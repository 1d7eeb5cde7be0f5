"""ACHE's method: best-first by a link classifier that is retrained during the crawl."""

from scrapy_focus.policies.linkclassifier.policy import OnlineLinkClassifier

__all__ = ["OnlineLinkClassifier"]
