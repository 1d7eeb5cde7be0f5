"""Made-up data catalogues, with steps between a list and its files."""
