"""The tests of features, one folder for each: what breaks where a feature is deleted is in its folder."""
