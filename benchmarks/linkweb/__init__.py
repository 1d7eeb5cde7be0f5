"""A synthetic web of any size to measure on which order takes important pages first, and whole crawls of it in memory."""
