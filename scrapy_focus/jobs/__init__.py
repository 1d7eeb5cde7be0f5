"""Crawls that are stored, so that they survive their process: kept, gone on with, looked into, repaired."""
