"""Crawls that are stored, so that they survive their process: kept, resumed, looked into, repaired."""
