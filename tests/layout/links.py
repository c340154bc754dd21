"""Whether git tracks a symbolic link: one that leads out of the tree, or to itself, breaks every clone of it."""

import subprocess
import sys

TRACKED = subprocess.run(["git", "-C", sys.argv[1], "ls-files", "--stage"], capture_output=True, text=True, check=False)
LINKS = [line.split("\t", 1)[1] for line in TRACKED.stdout.splitlines() if line.startswith("120000 ")]
for link in LINKS:
    print(f"{link}: a symbolic link is tracked; remove it by `git rm --cached {link}`")
sys.exit(1 if LINKS else 0)
