"""A synthetic web of many hosts, to look for a topic on."""
