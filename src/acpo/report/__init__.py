"""Tables, figures and the HTML report, made from cell results and run logs only."""
