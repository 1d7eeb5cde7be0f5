"""The tests of features, one folder for each: tests that break without a feature are in its folder."""
