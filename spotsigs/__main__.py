"""``python -m spotsigs``: the command where its script is not on the path."""

from spotsigs.experiments.command import main

if __name__ == "__main__":
    main()
