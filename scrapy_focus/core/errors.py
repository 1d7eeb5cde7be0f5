"""Everything that scrapy_focus raises on purpose."""

from __future__ import annotations


class FocusError(Exception):
    """Base of all errors of this package. A message says what was got, what was expected and what to do."""


class ConfigError(FocusError):
    """A setting or argument cannot be used. Raised while a crawl is set up, which then does not start."""


class PolicyError(FocusError):
    """A policy broke its contract. Raised by the crawl when it is strict; logged and counted otherwise."""


class GoalError(FocusError):
    """A goal did not answer with a number or ``None``. Raised when strict; the reward is 0 otherwise."""


class FrontierError(FocusError):
    """A frontier was asked for something impossible, or ``check()`` found it inconsistent. Never caught."""


class ResumeError(FocusError):
    """A stored crawl cannot be continued as asked: other policy, parameters or format. Nothing is changed on disk."""


class FolderInUseError(ResumeError):
    """Another process has the folder of a crawl: it can be had when that one ended."""


class RecordingError(FocusError):
    """A recorded site, or what one is made from, cannot be read or written. What was written before stays as it was."""


class StorageError(FocusError):
    """The files of a crawl cannot be written or read: a full disk, a read-only folder, damage. What stands in them
    stays.
    """
