"""How Sphinx builds the documentation: `make docs`.

Pages of Markdown stand here; `pages/` writes the others from the sources.
"""

import re
from functools import partial
from pathlib import Path

import workbench
from docs.pages import api, audit, guarantee, mathml, mechanisms, tutorials
from workbench import figures
from workbench.figures import site

project = "dp-workbench"
author = "the dp-workbench authors"
release = workbench.__version__
html_title = "dp-workbench"
language = "en"

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["pages", "**/*.inc"]
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["style.css"]
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_show_search_summary = False  # a page that is opened from disk may not fetch others
html_math_renderer = "mathml"
html_theme_options = {"navigation_with_keys": True}
pygments_style = "tango"
pygments_dark_style = "github-dark"

myst_enable_extensions = ["colon_fence", "dollarmath", "amsmath", "attrs_inline"]
myst_heading_anchors = 3
nb_execution_mode = "off"  # `make docs` runs the tutorials, as `workbench reproduce` does
nb_ipywidgets_js = {}  # nothing from elsewhere
nb_merge_streams = True

suppress_warnings = ["ref.python"]  # a word of a type may be a field of several classes

default_role = "code"
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_use_rtype = False


def setup(app):
    """Write the pages that follow from the sources, and take formulas as MathML."""
    app.add_config_value("results", "", "env")
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-process-docstring", api.plain_text, priority=400)
    app.connect("source-read", link_pages)
    app.add_html_math_renderer("mathml", (mathml.inline, None), (mathml.block, None))


def write_pages(app):
    """Write the folders of pages anew."""
    docs = Path(app.srcdir)
    results = Path(app.config.results or figures.results_folder())
    writers = {
        "mechanisms": mechanisms.write,
        "tutorials": partial(tutorials.write, results=results),
        "audit": audit.write,
        "guarantee": guarantee.write,
        "api": api.write,
    }
    for name, write in writers.items():
        (docs / name).mkdir(exist_ok=True)
        try:
            write(docs / name)
        except FileNotFoundError as e:  # Sphinx would add a traceback
            raise SystemExit(f"No documentation: {e}") from None
    site.write_published(Path(app.outdir))


def link_pages(app, page: str, source: list[str]):
    """Make targets of anchors in headings, and links to notebooks links to the pages of their figures."""
    text = re.sub(r'^(#+ )<a id="([\w-]+)"></a>', r"(\2)=\n\1", source[0], flags=re.M)
    report = "../" * page.count("/") + "report"

    def link(found: re.Match) -> str:
        words, paper, stem = found.groups()
        name = paper if stem == "index" else f"{paper}_{stem}"
        return f'<a href="{report}/{name}.html">{words}</a>'

    source[0] = re.sub(r"\[([^\]]+)\]\((?:\.\./)+notebooks/(\w+)/(\w+)\.ipynb\)", link, text)
