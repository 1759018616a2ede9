"""The command line as a process of its own."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def command(arguments: Sequence[str]) -> list[str]:
    """What to start, as the console script does it."""
    return [sys.executable, "-c", "from isopleth_command import main; main()", *arguments]
