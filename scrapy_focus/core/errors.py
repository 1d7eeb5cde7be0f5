"""The exceptions that scrapy_focus raises."""

from __future__ import annotations


class FocusError(Exception):
    """Base of all errors of this package. A message says what was given, what was expected and what to do."""


class ConfigError(FocusError):
    """A setting or argument cannot be used. Raised during the setup of a crawl, which then does not start."""


class MissingPackageError(ConfigError):
    """An optional package is not installed. Raised before a command or a crawl begins; it says how to install it."""


class PolicyError(FocusError):
    """A policy broke its contract. Raised by the crawl when it is strict; logged and counted otherwise."""


class GoalError(FocusError):
    """A goal did not answer with a number or ``None``. Raised when strict; the reward is 0 otherwise."""


class FrontierError(FocusError):
    """A frontier was asked for something impossible, or ``check()`` found it inconsistent. Never caught."""


class ResumeError(FocusError):
    """A stored crawl cannot be resumed as asked: other policy, parameters or format. Nothing is changed on disk."""


class FolderInUseError(ResumeError):
    """Another process is using the folder of a crawl: it is free when that process ends."""


class RecordingError(FocusError):
    """A recorded site, or its source, cannot be read or written. What was written before is kept."""


class StorageError(FocusError):
    """The files of a crawl cannot be written or read: a full disk, a read-only folder, damage. Their contents are
    kept.
    """
