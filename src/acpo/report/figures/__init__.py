"""One module per figure; `acpo.report.registry` finds them by name."""
