"""Notebooks' Markdown becomes HTML that needs nothing from elsewhere."""

from workbench.figures.sources import markdown


def test_math_is_mathml_or_its_source():
    assert "<mfrac>" in markdown(r"$\frac{1}{2}$")
    assert 'display="block"' in markdown("$$\nx^2\n$$")
    assert "<code>" in markdown(r"at $\frac{$ or so")
    assert markdown("5$ and 6$") == "<p>5$ and 6$</p>\n"
