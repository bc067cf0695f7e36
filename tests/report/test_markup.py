"""Notebooks' Markdown becomes HTML that needs nothing from elsewhere."""

from workbench import report


def test_math_is_mathml_or_its_source():
    assert "<mfrac>" in report.markdown(r"$\frac{1}{2}$")
    assert 'display="block"' in report.markdown("$$\nx^2\n$$")
    assert "<code>" in report.markdown(r"at $\frac{$ or so")
    assert report.markdown("5$ and 6$") == "<p>5$ and 6$</p>\n"
