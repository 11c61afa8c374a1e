"""An engine without a model, which finds every wrong byte in its KV cache. See python/tests/README.md."""

from .ahead import AheadEngine
from .engine import ToyEngine

__all__ = ["AheadEngine", "ToyEngine"]
