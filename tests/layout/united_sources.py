"""Checks that the sources of a folder can be compiled as one, as the preset `unity` does: exits 1 with a line for each name
of an unnamed namespace that several sources of a folder have, and each test whose namespace is not named after its file.
Several may have an alias that says the same, and functions whose first parameters are of different classes.

usage: united_sources.py PROJECT_FOLDER
"""

import collections
import pathlib
import re
import sys

STAGES = ["base", "frontend", "lowering", "schedules", "autotune", "runtime", "cli", "python/native", "tests"]
APART = ["runtime/export/embed", "runtime/halide_runtime", "tests/data"]  # compiled one by one, or for another purpose

ATTRIBUTE = re.compile(r"^(?:\[\[.*?\]\]|__attribute__\(\(.*?\)\)\)?|alignas\(\w+\)) ")
ARGUMENTS = re.compile(r"<[^<>]*>")
TYPE = re.compile(r"(?:struct|class|union|enum class|enum|using) (\w+)")
OTHER = re.compile(r"[^(=\[{;]*?([\w:]+)(?:\(| =|\[|\{|;)")
OF_A_CLASS = re.compile(r"[^(=]*\((?:const )?((?:\w+::)*[A-Z]\w+)\b")
NO_NAME = re.compile(r"[\s/#})]|template\b|static_assert|using namespace|using [\w:]+;|extern|namespace|[A-Z_]+\(|$")


def local_names(text):
    """(name, its line) of what stands at the top of unnamed namespaces; the formatter indents all else."""
    spaces = []
    for line in text.splitlines():
        if found := re.match(r"namespace ?([\w:]*) \{$|namespace \{", line):
            spaces.append(found[1] or "")
        elif line.startswith("}  // namespace"):
            spaces.pop()
        elif "" in spaces and not NO_NAME.match(line):
            line = ATTRIBUTE.sub("", line)
            bare = line
            while ARGUMENTS.search(bare):
                bare = ARGUMENTS.sub("", bare)
            found = TYPE.match(bare) or OTHER.match(bare)
            if found and "::" not in found[1] and "operator" not in bare:
                yield found[1], line


def may_share(lines):
    """Whether what these lines begin, each in some files, means the same or is told apart by overloading."""
    classes = [OF_A_CLASS.match(line) for line in lines]
    if all(classes):
        of = collections.defaultdict(set)
        for found, line in zip(classes, lines):
            of[found[1]] |= lines[line]
        return all(len(files) == 1 for files in of.values())
    return len(lines) == 1 and re.match(r"using|namespace", next(iter(lines)))


def problems(project):
    for stage in STAGES:
        folders = collections.defaultdict(list)
        for source in sorted((project / stage).rglob("*.cpp")):
            folders[source.parent.relative_to(project).as_posix()].append(source)
        for folder, sources in folders.items():
            if folder.startswith(tuple(APART)):
                continue
            homes = collections.defaultdict(lambda: collections.defaultdict(set))
            for source in sources:
                text = source.read_text()
                if re.search(r"^TEST(?:_F|_P)?\(", text, re.MULTILINE):
                    if not re.search(rf"^namespace sylvite(?:::\w+)*::{source.stem} \{{$", text, re.MULTILINE):
                        yield f"{folder}/{source.name}: its namespace is not named after it: sylvite::{source.stem}"
                    continue
                for name, line in local_names(text):
                    homes[name][line].add(source.name)
            for name, lines in homes.items():
                files = sorted(set().union(*lines.values()))
                if len(files) > 1 and not may_share(lines):
                    yield f"{folder}: {name} stands in unnamed namespaces of {', '.join(files)}"


if __name__ == "__main__":
    found = list(problems(pathlib.Path(sys.argv[1])))
    print("\n".join(found) or "the sources of each folder can be compiled as one")
    sys.exit(1 if found else 0)
