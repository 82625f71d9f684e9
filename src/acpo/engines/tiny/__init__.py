"""The embedded engine: a Llama-shaped model, its sampler and its trainer, for one CPU thread."""
