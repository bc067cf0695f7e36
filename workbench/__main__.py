"""`python -m workbench`: the command line."""

import os
import signal
from typing import Any


def main() -> None:
    """Run the command line. The console scripts call this function. Ctrl-C during imports prints one line."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:  # a shell may have set it to ignore Ctrl-C
        signal.signal(signal.SIGINT, _stop)
    from workbench.cli import main as run

    signal.signal(signal.SIGINT, handler)
    try:
        run()
    except KeyboardInterrupt:  # outside of any command
        _stop()


def _stop(*_: Any) -> None:
    os.write(2, b"stopped\n")
    os._exit(130)  # an exception could be caught by a library that is being imported


if __name__ == "__main__":
    main()
