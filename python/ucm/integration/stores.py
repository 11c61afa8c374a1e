"""Where an engine's launch line says how blocks are stored."""

from __future__ import annotations

import difflib
import json
import os
from typing import Any, Mapping, Tuple

from ucm.protocol import REFUSED_ENGINE, Refused

_DEFAULT_CONFIG = (
    '{"ucm_connectors": [{"ucm_connector_name": "UcmNfsStore", "ucm_connector_config": {}}]}'
)


_KEYS = (
    "UCM_CONFIG_FILE",
    "store_pipeline",
    "ucm_connectors",
    "ucm_connector_name",
    "ucm_connector_config",
)


class ConfigurationError(Refused):
    """There is no configuration to be had; says which, why, and what to do.

    To an engine it is what the daemon says of a configuration that is wrong.
    """

    def __init__(self, text: str) -> None:
        super().__init__(REFUSED_ENGINE, text)


def configuration(
    extra: Mapping[str, Any], inline: Mapping[str, Any], inline_name: str
) -> Tuple[str, str]:
    """The configuration of the stores: its name for messages, and its YAML text.

    It is the file ``UCM_CONFIG_FILE`` of the extra configuration, else what stands in the launch line.
    The name of a file is its whole path: relative paths in it begin at its folder. Only the daemon
    reads the text. Raises ConfigurationError when there is no such file, or it is no text.
    """
    path = extra.get("UCM_CONFIG_FILE")
    if path:
        return _read(os.path.abspath(str(path)))
    _refuse_misspelt(inline, inline_name)
    if inline:
        return inline_name, json.dumps(inline)
    return "default", _DEFAULT_CONFIG


def _read(path: str) -> Tuple[str, str]:
    try:
        # A pipe would hold the engine until it is written to.
        if os.path.exists(path) and not os.path.isfile(path):
            raise OSError(0, "it is no regular file")
        with open(path, encoding="utf-8") as file:
            return path, file.read()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else f"it is not UTF-8: {error}"
        raise ConfigurationError(
            f"UCM_CONFIG_FILE names {path}, which cannot be read ({why}; this is user {os.geteuid()}):"
            " mend that, and start the engine again"
        ) from None


def _refuse_misspelt(inline: Mapping[str, Any], inline_name: str) -> None:
    """The daemon could only say what is missing."""
    for key in inline:
        near = difflib.get_close_matches(str(key).lower(), [known.lower() for known in _KEYS], 1, 0.85)
        known = next((one for one in _KEYS if near and one.lower() == near[0]), key)
        if key != known:
            raise ConfigurationError(
                f"{inline_name} has the key {key}, which is none: did you mean {known}? Mend that, and"
                " start the engine again"
            )
