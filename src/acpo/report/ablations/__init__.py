"""One module per table of an ablation; `acpo.report.registry` finds them by name, `ablations` has their grids."""
