"""What a project expects of a scheduler, as small crawls."""
