"""Does what you wrote keep its promises? A check for each protocol, to be called from a test."""
