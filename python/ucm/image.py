"""Where the program ``ucm`` is, and the command of that name where the runtime image is installed with it."""

from __future__ import annotations

import os
import sys
from typing import NoReturn, Optional

_HERE = os.path.dirname(os.path.abspath(__file__))


def of_home() -> Optional[str]:
    """The program of UCM_HOME, an image or a source tree; None where there is none."""
    home = os.environ.get("UCM_HOME")
    if home:
        for path in (os.path.join(home, "bin", "ucm"), os.path.join(home, "ucm")):
            if os.access(path, os.X_OK):
                return path
    return None


def carried() -> Optional[str]:
    """The program of the image in this package; None in an installation without one."""
    path = os.path.join(_HERE, "_image", "bin", "ucm")
    return path if os.access(path, os.X_OK) else None


def main() -> NoReturn:
    """Becomes ``ucm`` with the arguments of this process."""
    # This command is in PATH itself, so PATH is not asked.
    path = of_home() or carried()
    if path is None:
        sys.exit("ucm: this installation has no runtime image: set UCM_HOME to the unpacked image")
    os.execv(path, [path, *sys.argv[1:]])
