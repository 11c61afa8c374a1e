"""Where an engine's launch line says how blocks are stored."""

from __future__ import annotations

import json
from typing import Any, Mapping, Tuple

_DEFAULT_CONFIG = (
    '{"ucm_connectors": [{"ucm_connector_name": "UcmNfsStore", "ucm_connector_config": {}}]}'
)


class ConfigurationError(Exception):
    """There is no configuration to be had; says which, why, and what to do."""


def configuration(
    extra: Mapping[str, Any], inline: Mapping[str, Any], inline_name: str
) -> Tuple[str, str]:
    """The configuration of the stores: its name for messages, and its YAML text.

    It is the file ``UCM_CONFIG_FILE`` of the extra configuration, else what stands in the launch line.
    Raises ConfigurationError when there is no such file, or it is no text.
    """
    path = extra.get("UCM_CONFIG_FILE")
    if path:
        try:
            with open(str(path), encoding="utf-8") as file:
                return str(path), file.read()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else f"it is not UTF-8: {error}"
            raise ConfigurationError(
                f"UCM_CONFIG_FILE names {path}, which cannot be read ({why}): mend that, and start the"
                " engine again"
            ) from None
    if inline:
        return inline_name, json.dumps(inline)
    return "default", _DEFAULT_CONFIG
