"""Does your class keep its contract? A check for each protocol, to be called from a test."""
