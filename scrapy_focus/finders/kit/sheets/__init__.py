"""Style and templates that all HTML pages share."""
