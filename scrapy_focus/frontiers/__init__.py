"""Frontiers: a ledger with one of two orders, its records in memory or in a file."""
