"""Connectors of the V1 engine."""

from .base import KVConnectorBase_V1, KVConnectorMetadata, KVConnectorRole

__all__ = ["KVConnectorBase_V1", "KVConnectorMetadata", "KVConnectorRole"]
