"""Stand-in of vLLM: see python/tests/README.md."""
