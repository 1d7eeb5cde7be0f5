"""Policies: one published system in each file or folder."""
