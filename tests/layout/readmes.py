"""Checks that every room has a README, and that each README names files that exist: exits 1 with a line for each room
without one, link that leads nowhere, and file name that nothing matches.

usage: readmes.py PROJECT_FOLDER
"""

import pathlib
import re
import sys

from include_rules import ALLOWED

FILE_NAME = re.compile(r"`([\w*{},./-]+\.(?:\*|h|c|cpp|cuh|py|sh|cmake))`")
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def alternatives(pattern):
    """a_{b,c}.* -> a_b.*, a_c.*"""
    braces = re.search(r"{([^{}]*)}", pattern)
    if not braces:
        return [pattern]
    return [name for choice in braces[1].split(",")
            for name in alternatives(pattern[:braces.start()] + choice + pattern[braces.end():])]


def problems(project):
    for room in ALLOWED:
        if room not in ("include/sylvite", "runtime/export/embed") and not (project / room / "README.md").is_file():
            yield f"{room} has no README.md"
    folders = [path for path in project.iterdir() if path.is_dir() and path.name[0] != "." and path.name != "build"]
    for page in sorted([*project.glob("*.md"), *(page for folder in folders for page in folder.rglob("*.md"))]):
        name, text = page.relative_to(project), page.read_text()
        for link in LINK.findall(text):
            if not (page.parent / link).exists():
                yield f"{name}: no file is at {link}"
        if page.name != "README.md":
            continue
        for pattern in [p for found in FILE_NAME.findall(text) for p in alternatives(found)]:
            wanted = re.sub("NAME|FAMILY|SOURCE|STAGE|ROOM|VERB", "*", pattern)
            places = folders if page.parent == project else [page.parent]
            roots = [project, project / "include"]
            if not any(any(root.glob(wanted)) for root in roots) and not any(any(p.rglob(wanted)) for p in places):
                yield f"{name}: no file is called {pattern}"


if __name__ == "__main__":
    found = list(problems(pathlib.Path(sys.argv[1])))
    print("\n".join(found) or "every name in the READMEs is true")
    sys.exit(1 if found else 0)
