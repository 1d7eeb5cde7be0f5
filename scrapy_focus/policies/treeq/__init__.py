"""TRES: the Tree-Frontier, which judges representatives of all waiting links."""

from scrapy_focus.policies.treeq.policy import TreeQ

__all__ = ["TreeQ"]
