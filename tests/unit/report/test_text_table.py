"""Tables of text: what LaTeX and HTML read specially is escaped."""

from acpo.report.text_table import TextTable, render_html, render_latex

TABLE = TextTable(
    "Odd & ends", "Percent % and <tags>", ("A_b", "C"), (0.4, 0.5), [("σ² ∝ 5 %", "<script>x & y</script>")]
)


def test_latex() -> None:
    text = render_latex(TABLE)
    assert r"$\sigma$$^2$ $\propto$ 5 \% & $<$script$>$x \& y$<$/script$>$ \\" in text
    assert r"A\_b & C \\" in text
    assert r"p{0.4\linewidth}" in text
    assert text.count(r"\begin{longtable}") == text.count(r"\end{longtable}") == 1


def test_html() -> None:
    text = render_html(TABLE)
    assert "<script>" not in text
    assert "&lt;script&gt;x &amp; y" in text
    assert '<th scope="row">σ² ∝ 5 %</th>' in text
    assert "http" not in text.replace('http-equiv="Content-Security-Policy"', "")
