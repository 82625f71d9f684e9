"""The embedded engine: a Qwen2-shaped model, its sampler and its trainer, for one CPU thread."""
