"""`python -m sylvite` is the command."""

from ._command import main

main()
