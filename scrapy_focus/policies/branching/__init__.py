"""The default policy: a branching bandit over tag paths."""

from scrapy_focus.policies.branching.policy import BranchingBandit

__all__ = ["BranchingBandit"]
