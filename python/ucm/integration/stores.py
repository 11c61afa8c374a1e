"""Where an engine's launch line says how blocks are stored."""

from __future__ import annotations

import json
from typing import Any, Mapping, Tuple

_DEFAULT_CONFIG = (
    '{"ucm_connectors": [{"ucm_connector_name": "UcmNfsStore", "ucm_connector_config": {}}]}'
)


def configuration(
    extra: Mapping[str, Any], inline: Mapping[str, Any], inline_name: str
) -> Tuple[str, str]:
    """The configuration of the stores: its name for messages, and its YAML text.

    It is the file ``UCM_CONFIG_FILE`` of the extra configuration, else what stands in the launch line.
    """
    path = extra.get("UCM_CONFIG_FILE")
    if path:
        with open(str(path), encoding="utf-8") as file:
            return str(path), file.read()
    if inline:
        return inline_name, json.dumps(inline)
    return "default", _DEFAULT_CONFIG
