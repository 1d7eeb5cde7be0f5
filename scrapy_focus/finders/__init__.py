"""What a user runs to find something: a folder for each thing, and the kit that they share."""
