"""Sites that are served on this machine."""
