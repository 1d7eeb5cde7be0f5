"""Estimators: they know vectors, not URLs."""
