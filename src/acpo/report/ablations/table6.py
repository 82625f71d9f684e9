"""Table 6."""
