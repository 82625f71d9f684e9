"""Table 8."""
