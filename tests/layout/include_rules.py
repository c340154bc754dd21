"""Checks which room includes which, so that data flows through the stages once: exits 1 with a line for each include
that the tables below do not allow.

usage: include_rules.py PROJECT_FOLDER [CODE_ID_FOLDER ...]
With CODE_ID_FOLDERs, also checks that they hold every source that code generation includes: those make the identity of
compiled objects.
"""

import pathlib
import re
import sys

BASE = ["include/sylvite", "base"]
NUMBERS = [*BASE, "frontend/values"]
OPERATIONS = [*NUMBERS, "frontend/ops"]
GRAPHS = [*OPERATIONS, "frontend/graph"]
PLANS = [*GRAPHS, "lowering/passes", "lowering/plan"]
ALGORITHMS = [*GRAPHS, "lowering/plan", "lowering/algorithms"]
SCHEDULES = [*ALGORITHMS, "schedules"]
TUNING = [*GRAPHS, "lowering/plan", "schedules", "autotune"]
RUNNING = [*TUNING, "lowering/algorithms", "schedules/cuda", "runtime", "runtime/cuda"]

# What a room may include of the project. The rooms of a line know nothing of those that are not named.
ALLOWED = {
    "include/sylvite": ["include/sylvite"],
    "base": BASE,
    "frontend/values": NUMBERS,
    "frontend/ops": OPERATIONS,
    "frontend/graph": GRAPHS,
    "frontend/quick": [*GRAPHS, "frontend/quick"],
    "frontend/passes": [*GRAPHS, "frontend/passes"],
    "frontend/build": [*GRAPHS, "frontend/build"],
    "frontend/onnx": [*GRAPHS, "frontend/build", "frontend/onnx"],
    "frontend/torch": [*GRAPHS, "frontend/build", "frontend/torch"],
    "lowering/passes": PLANS,
    "lowering/plan": PLANS,
    "lowering/algorithms": ALGORITHMS,
    "schedules": [*SCHEDULES, "schedules/directives", "schedules/spaces", "schedules/cuda"],
    "schedules/directives": [*SCHEDULES, "schedules/directives"],
    "schedules/spaces": [*SCHEDULES, "schedules/directives", "schedules/spaces"],
    "schedules/spaces/gpu": [*SCHEDULES, "schedules/spaces", "schedules/spaces/gpu"],
    "schedules/cuda": [*SCHEDULES, "schedules/cuda"],
    "autotune": TUNING,
    "runtime": [*RUNNING, "frontend/quick", "frontend/passes", "frontend/onnx", "frontend/torch", "lowering/passes", "runtime/export/embed"],
    "runtime/cuda": RUNNING,
    "runtime/export": [*RUNNING, "frontend/onnx", "runtime/export", "runtime/export/embed"],
    "runtime/export/embed": ["runtime/export/embed"],
    "cli": [*RUNNING, "runtime/export", "frontend/onnx", "cli"],
    "python/native": [*RUNNING, "frontend/onnx", "frontend/torch", "python/native"],
}

# Headers that only some rooms may name.
ONLY_IN = {
    "Halide.h": ["lowering/algorithms", "schedules", "runtime"],
    "HalideRuntime.h": ["lowering/algorithms", "schedules", "runtime"],
    "onnx-data.pb.h": ["frontend/onnx"],
    "onnx-ml.pb.h": ["frontend/onnx"],
    "runtime/cuda/driver.h": ["runtime/cuda"],
}

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)


def sources(project):
    for stage in sorted({room.split("/")[0] for room in ALLOWED}):
        for path in sorted((project / stage).rglob("*")):
            if path.suffix in (".h", ".cpp", ".c", ".cuh"):
                yield path.relative_to(project).as_posix()


def includes(project, source):
    """Paths within the project, or names as written for what is none of its files."""
    for name in INCLUDE.findall((project / source).read_text()):
        beside = pathlib.PurePosixPath(source).parent / name
        for path in (name, "include/" + name, beside.as_posix()):
            if (project / path).is_file():
                name = path
                break
        yield name


def room_of(path):
    return path.rpartition("/")[0]


def within(path, folders):
    return any(path.startswith(folder + "/") for folder in folders)


def broken_rules(project):
    for source in sources(project):
        room = room_of(source)
        if room not in ALLOWED and room != "runtime/halide_runtime":
            yield f"{source}: its folder has no line in the table of rooms"
            continue
        for included in includes(project, source):
            if included in ONLY_IN and not within(source, ONLY_IN[included]):
                yield f"{source} includes {included}; only {', '.join(ONLY_IN[included])} may"
            if room == "include/sylvite" and not (project / included).is_file() and "." in included:
                yield f"{source} includes {included}; public headers include the standard library and public headers"
            if (project / included).is_file() and room_of(included) not in ALLOWED.get(room, []):
                yield f"{source} includes {included}; {room} may not use {room_of(included)}"


def outside_code_id(project, folders):
    """Project headers that code generation includes, directly or not, and that its identity leaves out."""
    todo = [source for source in sources(project) if within(source, ["lowering", "schedules"])]
    seen = set(todo)
    while todo:
        for included in includes(project, todo.pop()):
            if included not in seen and (project / included).is_file():
                seen.add(included)
                todo.append(included)
    # base/ has no say in what is generated: errors, text and files.
    for source in sorted(seen):
        if not within(source, [*folders, "base"]):
            yield f"{source} takes part in code generation, but is in none of {' '.join(folders)}, which make code_id"


def main():
    project, folders = pathlib.Path(sys.argv[1]), sys.argv[2:]
    problems = [*broken_rules(project), *(outside_code_id(project, folders) if folders else [])]
    print("\n".join(problems) or "every include is allowed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
