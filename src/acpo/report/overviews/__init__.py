"""One module per figure of the whole grid; `acpo.report.registry` finds them by name."""
