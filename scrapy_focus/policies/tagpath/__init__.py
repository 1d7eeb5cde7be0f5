"""SB-CLASSIFIER: a sleeping bandit over tag paths, and what it is compared with."""

from scrapy_focus.policies.tagpath.policy import TagPath

__all__ = ["TagPath"]
