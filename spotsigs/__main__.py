"""``python -m spotsigs``: the command where its script is not on the path."""

import sys

if __name__ == "__main__":
    try:
        from spotsigs.cli import main
    except ModuleNotFoundError as missing:
        sys.exit(
            f"error: {missing.name} is not installed for {sys.executable}; `pip install spotsigs`, or `pip install .` "
            "in a checkout, installs all that is needed"
        )
    main()
