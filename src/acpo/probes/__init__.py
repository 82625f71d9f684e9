"""What the paper measures on any run: probes that read token stores and metrics."""
