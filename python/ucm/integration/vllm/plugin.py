"""What vLLM calls at its start (entry point `vllm.general_plugins`)."""


def register() -> None:
    """Makes UcmTier known by its type, as vLLM 0.26 and 0.27 cannot be told of its module."""
    try:
        from vllm.v1.kv_offload.tiering.factory import SecondaryTierFactory
    except ImportError:
        return
    try:
        SecondaryTierFactory.register_tier("UcmTier", "ucm.integration.vllm.tier", "UcmTier")
    except ValueError:
        # It is called more than once in a process.
        pass
