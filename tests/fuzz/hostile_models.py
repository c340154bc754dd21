#!/usr/bin/env python3
"""Make hostile models, run each through the command, and check that it fails well.

usage: hostile_models.py SYLVITE [--keep FOLDER] [--only TEXT]

Every run is a process of its own: no signal, at most 5 s of the processor and 1 GB, and either an exit code between 2 and 8 with one message
on stderr, or, for models that are odd but valid, success. Exit status 1 when any misbehaves. Needs numpy and onnx.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

import hostile_domains
import hostile_files
import hostile_graphs
import hostile_sizes
from hostile_case import CASES


def add_all_cases():
    for add in (hostile_files.add_byte_cases, hostile_files.add_dims_cases, hostile_files.add_external_cases,
                hostile_graphs.add_graph_cases, hostile_graphs.add_operator_cases, hostile_sizes.add_size_cases,
                hostile_domains.add_domain_cases):
        add()


# Small, because the peak of a child counts from its fork.
RUNNER = """
import json, resource, subprocess, sys
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))
child = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
try:
    error = child.communicate(timeout=600)[1].decode(errors="replace")
except subprocess.TimeoutExpired:
    child.kill()
    error = child.communicate()[1].decode(errors="replace")
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([child.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, error]))
"""


def run(command, path, cache):
    """Exit code, seconds of the processor, megabytes and what was said on stderr."""
    words = [command, "compile", path, "--cache-dir", os.path.join(cache, "objects"), "--set", "db.enabled=false"]
    return json.loads(subprocess.run([sys.executable, "-S", "-c", RUNNER, *words], capture_output=True, check=True).stdout)


def verdict(code, seconds, megabytes, error, may_succeed):
    if code < 0 or code >= 128:
        return f"ended by signal {-code}"
    if seconds > 5:
        return f"took {seconds:.1f} s of the processor"
    if megabytes > 1024:
        return f"took {megabytes:.0f} MB"
    if code == 0:
        return "" if may_succeed else "succeeded"
    lines = [line for line in error.splitlines() if line.startswith("sylvite: error: ")]
    if not 2 <= code <= 8 or len(lines) != 1 or len(lines[0]) < 30:
        return f"exit code {code}"
    if any(ord(c) < 32 for c in lines[0]) or len(lines[0]) > 2000:
        return "a message that is no plain line"
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sylvite")
    parser.add_argument("--keep", help="folder to leave the models in")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    add_all_cases()
    root = options.keep or tempfile.mkdtemp(prefix="hostile_")
    failures = count = refused = 0
    slowest = largest = 0.0
    for group, name, write, may_succeed in CASES:
        if options.only not in f"{group}/{name}":
            continue
        folder = os.path.join(root, f"{group}_{name}")
        os.makedirs(folder, exist_ok=True)
        path = write(folder)
        code, seconds, megabytes, error = run(options.sylvite, path, root)
        if not options.keep:
            shutil.rmtree(folder)
        problem = verdict(code, seconds, megabytes, error, may_succeed)
        count += 1
        failures += problem != ""
        refused += code != 0
        slowest, largest = max(slowest, seconds), max(largest, megabytes)
        if problem or options.verbose:
            print(f"{group}/{name}: {problem or 'fine'} ({seconds:.2f} s, {megabytes:.0f} MB) {error.strip()[-300:]}", flush=True)
    if not options.keep:
        shutil.rmtree(root)
    print(f"{count} models: {refused} refused, {count - refused} taken, {failures} misbehaved; "
          f"at most {slowest:.2f} s and {largest:.0f} MB")
    sys.exit(1 if failures or count == 0 else 0)


if __name__ == "__main__":
    main()
