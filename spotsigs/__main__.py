"""Start of the command ``spotsigs``, also as ``python -m spotsigs``."""

from __future__ import annotations

import signal
import sys


def main() -> None:
    """Import the command and run it; until it handles Ctrl-C itself, that ends the process without a traceback."""
    interrupt = signal.getsignal(signal.SIGINT)
    if interrupt is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        from spotsigs.doors import cli
    except ModuleNotFoundError as missing:
        sys.exit(
            f"error: {missing.name} is not installed for {sys.executable}; `pip install spotsigs`, or `pip install .` "
            "in a checkout, installs all that is needed"
        )
    cli.main(interrupt=interrupt)


if __name__ == "__main__":
    main()
