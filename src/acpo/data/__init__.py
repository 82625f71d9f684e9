"""Real data: pinned sources, verified downloads, formatted files, overlap between training and benchmarks."""
