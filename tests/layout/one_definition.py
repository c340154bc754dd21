"""Checks that no two headers define a type of one name in namespace sylvite: a program that holds both is undefined.
Exits 1 with a line for each that does.

usage: one_definition.py PROJECT_FOLDER
"""

import collections
import pathlib
import re
import sys

STAGES = ["include", "base", "frontend", "lowering", "schedules", "autotune", "runtime", "cli"]
# Types at the top of a namespace begin their line; what is nested in a type or a function is indented. A specialisation
# of a template has arguments after its name.
SCOPE = re.compile(r"^namespace (?P<space>[\w:]+) \{|^(?:template <.*> )?(?:enum )?(?:struct|class) (?P<type>\w+)(?: final)?"
                   r"(?: : [^;{]*)?\s*\{", re.MULTILINE)


def definitions(text):
    space = ""
    for found in SCOPE.finditer(text):
        if found["space"]:
            space = found["space"]
        elif space:  # outside are the C headers of exported models, whose launchers each have a type of their own
            yield f"{space}::{found['type']}"


def main():
    project = pathlib.Path(sys.argv[1])
    homes = collections.defaultdict(set)
    for stage in STAGES:
        for header in sorted((project / stage).rglob("*.h")):
            for name in definitions(header.read_text()):
                homes[name].add(header.relative_to(project).as_posix())
    if len(homes) < 100:
        print(f"only {len(homes)} types found")
        return 1
    twice = {name: sorted(headers) for name, headers in homes.items() if len(headers) > 1}
    for name, headers in sorted(twice.items()):
        print(f"{name} is defined in {' and '.join(headers)}")
    return 1 if twice else 0


if __name__ == "__main__":
    sys.exit(main())
