"""The console command. It handles signals before it imports the package."""

import gc
import os
import signal

_MESSAGE = b"isopleth: interrupted; nothing is left half written.\n"


def main() -> None:
    """Import the command line with signals taken care of, and run it."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as for jobs that a script starts in the background
            signal.signal(number, leave)
    # Looking for garbage takes a tenth of the time of imports, which make none. A command turns it on again when it begins.
    gc.disable()
    from isopleth.cli.process import main as run

    run()


def leave(number: int, _: object) -> None:
    """End the process at once. An exception during the import of compiled modules could be replaced by any other one."""
    try:
        if number == signal.SIGINT:
            os.write(2, _MESSAGE)
    finally:  # even if the message cannot be written
        os._exit(128 + number)


if __name__ == "__main__":
    main()
