"""Of SGLang's runtime, the host side of the cache."""
