"""What outcomes are worth: items, files of wanted types, pages on a topic."""
