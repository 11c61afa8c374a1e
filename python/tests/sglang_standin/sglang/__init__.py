"""Stand-in of SGLang: what a storage of HiCache meets, and no model. See python/tests/README.md."""
