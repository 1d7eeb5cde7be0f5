"""A synthetic web of any size, to measure which order takes important pages first, and crawls of it in memory."""
