"""Commands of the laboratory: ``focus record``, ``focus compare``."""
