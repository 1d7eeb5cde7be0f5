"""What a researcher calls from a script or a notebook: record a site, simulate crawls of it, compare policies."""
