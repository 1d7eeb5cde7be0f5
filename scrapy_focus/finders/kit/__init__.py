"""What finders share: base classes of commands and spiders, records of a folder, and its page."""
