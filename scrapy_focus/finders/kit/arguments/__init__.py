"""Arguments of finders: declared once, for the spider and for the command."""
