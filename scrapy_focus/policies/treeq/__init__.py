"""TRES: the Tree-Frontier, which scores representatives of all queued links."""

from scrapy_focus.policies.treeq.policy import TreeQ

__all__ = ["TreeQ"]
