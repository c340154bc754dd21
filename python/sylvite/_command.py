"""Where the `sylvite` command of this package lies: its workers compile and measure kernels."""

import os
import pathlib
import sys


def path() -> str:
    """The command's file, or "" where the package was installed without it."""
    command = pathlib.Path(__file__).parent / "bin" / "sylvite"
    return str(command) if command.is_file() else ""


def main() -> None:
    """Becomes the command, with this program's arguments."""
    command = path()
    if not command:
        sys.exit(f"sylvite: error: the command is missing in {pathlib.Path(__file__).parent}; install the wheel again")
    os.execv(command, ["sylvite", *sys.argv[1:]])
