"""Tests; a package, so that they share `tests.made` and may have equal file names."""
