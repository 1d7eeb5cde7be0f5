"""The spider that records a site, and how it renders pages."""
