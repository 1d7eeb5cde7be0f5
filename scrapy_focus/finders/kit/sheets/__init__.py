"""Pages that people open in a browser: what all of them look like."""
