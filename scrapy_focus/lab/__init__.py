"""The laboratory: recorded and synthetic sites, simulated crawls, comparisons of policies, and checks of custom
classes.
"""
