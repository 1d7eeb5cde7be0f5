"""Arguments that all finders share, in groups: each group declares, checks and applies its own."""
