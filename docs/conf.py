"""Sphinx configuration: ``sphinx-build -W -b html docs docs/_build`` builds the documentation."""

import os
import sys
from pathlib import Path

import scrapy_focus

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))  # site-profiles documents what is there

project = "scrapy_focus"
author = "The scrapy_focus developers"
version = release = scrapy_focus.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"scrapy_focus {version}"
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_show_sourcelink = False

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
napoleon_google_docstring = False
copybutton_prompt_text = r"\$ |>>> |\.\.\. "  # not copied
copybutton_prompt_is_regexp = True
copybutton_line_continuation_character = "\\"
nb_execution_mode = "off"  # notebooks are committed with their outputs; the tests execute them
napoleon_custom_sections = ["Job directory contents"]

# Builds have no network, and so no links into the documentation of others, unless they are asked for.
if os.environ.get("DOCS_INTERSPHINX"):
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "scrapy": ("https://docs.scrapy.org/en/latest", None),
        "numpy": ("https://numpy.org/doc/stable", None),
    }
