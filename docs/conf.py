"""How the site is made of these pages: ``sphinx-build -W docs site``. It asks no other host for anything."""

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "pypoplar"
author = "The pypoplar authors"
copyright = "The pypoplar authors, MIT licence"
version = release = installed_version("pypoplar")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "asked_words",
    "public_names",
    "themed_pictures",
    "torch_names",
]
exclude_patterns = ["_build"]
nitpicky = True
nitpick_ignore = [("py:class", "onnx.ModelProto")]  # of the extra onnx, which has no inventory of its names
default_role = "py:obj"

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_inherit_docstrings = False
autodoc_use_type_comments = False
napoleon_google_docstring = False
napoleon_use_ivar = True

html_theme = "furo"
templates_path = ["_templates"]
html_static_path = ["_static"]
html_js_files = ["keyboard.js"]
html_title = f"pypoplar {release}"

linkcheck_timeout = 20  # `sphinx-build -b linkcheck docs build/links`, by hand: CI asks no other host
linkcheck_workers = 4
linkcheck_anchors = False  # the pages of code hosts make theirs with scripts
