"""Public names of the spiders and of what projects take from them; the code is in ``finders``."""
