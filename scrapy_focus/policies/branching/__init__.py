"""The policy that is used when nobody chooses one: a branching bandit over tag paths."""

from scrapy_focus.policies.branching.policy import BranchingBandit

__all__ = ["BranchingBandit"]
