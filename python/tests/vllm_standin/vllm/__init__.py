"""Stand-in of vLLM: the interfaces that a KV connector meets, and no model. See python/tests/README.md.

The environment variable VLLM_STANDIN_PROFILE says which version's interfaces are there.
"""

import os

__version__ = os.environ.get("VLLM_STANDIN_PROFILE", "0.18")
PROFILE = tuple(int(part) for part in __version__.split("."))[:2]
