"""Stores crawls so that they survive their process; resumes, inspects and repairs them."""
