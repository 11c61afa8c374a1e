"""The name under which older launch lines ask for the connector."""

from __future__ import annotations

from ucm.integration.vllm.ucm_connector import UCMConnector


class UnifiedCacheConnectorV1(UCMConnector):
    """The same connector."""
