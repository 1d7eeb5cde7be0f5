"""Commands and spiders that find things: one folder for each, and the kit that they share."""
