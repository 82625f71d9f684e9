"""One module per table; `acpo.report.registry` finds them by name."""
