"""Compares policies on recorded sites."""
