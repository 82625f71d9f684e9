"""The audit: published numbers recomputed, and each claim of the paper beside the study at hand."""
