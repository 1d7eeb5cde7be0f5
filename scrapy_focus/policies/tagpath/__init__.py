"""SB-CLASSIFIER: a sleeping bandit over tag paths, and its baselines."""

from scrapy_focus.policies.tagpath.policy import TagPath

__all__ = ["TagPath"]
