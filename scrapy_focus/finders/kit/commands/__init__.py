"""Base classes of commands."""
