"""Public names of the spiders and of the helpers that projects import; the code is in ``finders``."""
