"""Waiting links with vectors, to be drawn from."""
