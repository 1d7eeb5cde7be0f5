"""Sphinx configuration: ``sphinx-build -W -b html docs docs/_build`` builds the documentation."""

import os
import sys
from pathlib import Path

import scrapy_focus

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))  # site-profiles documents what is there

project = "scrapy_focus"
author = "The scrapy_focus developers"
version = release = scrapy_focus.__version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
html_theme = "alabaster"
html_theme_options = {"description": scrapy_focus.__doc__, "fixed_sidebar": True}
html_show_sourcelink = False

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_custom_sections = ["Job directory contents"]

# Builds have no network, and so no links into the documentation of others, unless they are asked for.
if os.environ.get("DOCS_INTERSPHINX"):
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "scrapy": ("https://docs.scrapy.org/en/latest", None),
        "numpy": ("https://numpy.org/doc/stable", None),
    }
