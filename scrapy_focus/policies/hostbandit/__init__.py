"""The bandit of hosts: which host to request from next, and which of its pages."""

from scrapy_focus.policies.hostbandit.parentfirst import ParentFirst
from scrapy_focus.policies.hostbandit.policy import HostBandit

__all__ = ["HostBandit", "ParentFirst"]
