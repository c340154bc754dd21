#!/usr/bin/env python3
"""Seconds of processor time to the first result in a second process, or with --cold in a first one, beside what torch takes alone.

usage: torch_warm.py [--cold] [--passes inference,training] [--backends sylvite,eager,aot_eager,inductor] [--turns 2] [--threads 1] MODEL...

Models are those of torch_census.py. Each backend and turn has a process of its own, and a folder of caches that a first
process of the same backend filled; with --cold an empty folder. Printed are means of processor time / seconds by the clock. `eager` is Dynamo alone, `aot_eager` Dynamo and AOTAutograd. Imports are done before.
"""

import argparse
import glob
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import warnings


def family_seconds():
    """Processor time of this process, of those that it started, and of theirs."""
    parents, seconds = {}, {}
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                fields = file.read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        process = int(path.split("/")[2])
        parents[process] = int(fields[1])
        seconds[process] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    family = {os.getpid()}
    while more := {process for process, parent in parents.items() if parent in family} - family:
        family |= more
    return sum(seconds[process] for process in family)


def child(name, backend, kind, threads):
    warnings.filterwarnings("ignore")
    import torch
    sys.path.insert(1, str(pathlib.Path(__file__).with_name("census")))
    import torch_census
    from torch_census_models import MODELS
    torch.set_num_threads(int(threads))
    torch.manual_seed(0)
    model, make = MODELS[name]()
    arguments = (getattr(make, "train", make) if kind == "training" else make)(0)
    if backend == "sylvite":
        import sylvite.torch_backend  # noqa: F401
    if backend == "inductor":
        import torch._inductor.compile_fx  # noqa: F401
    torch.compile(torch.nn.Linear(2, 2), backend="aot_eager")(torch.ones(1, 2))
    torch._dynamo.reset()
    model.train(kind == "training")
    torch_census.without_draws(model)
    compiled = torch.compile(model, backend=backend, dynamic=False)
    start, clock = family_seconds(), time.perf_counter()
    if kind == "training":
        torch_census.loss_of(torch_census.call(compiled, arguments)).backward()
    else:
        with torch.no_grad():
            torch_census.call(compiled, arguments)
    print("LINE " + json.dumps([family_seconds() - start, time.perf_counter() - clock]))


def run_child(name, backend, kind, threads, cache):
    environment = {**os.environ, "XDG_CACHE_HOME": cache, "TORCHINDUCTOR_CACHE_DIR": cache + "/torch", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run([sys.executable, __file__, "--child", name, backend, kind, str(threads)], capture_output=True, text=True, env=environment, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("LINE ")]
    if not lines:
        raise SystemExit(f"{name}, {backend}, {kind}: {done.stderr[-500:]}")
    return json.loads(lines[0][5:])


def turn(name, kind, backends, options):
    times = {}
    for backend in backends:
        with tempfile.TemporaryDirectory() as cache:
            for _ in range(1 if options.cold else 2):
                times[backend] = run_child(name, backend, kind, options.threads, cache)
    return times


def main():
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--passes", default="inference,training")
    parser.add_argument("--backends", default="sylvite,eager,aot_eager,inductor")
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    backends = options.backends.split(",")
    for name in options.models:
        for kind in options.passes.split(","):
            turns = [turn(name, kind, backends, options) for _ in range(options.turns)]
            means = {backend: [statistics.mean(numbers) for numbers in zip(*(turn[backend] for turn in turns))] for backend in backends}
            print(name, kind, "  ".join(f"{backend} {seconds:.2f} / {clock:.2f}" for backend, (seconds, clock) in means.items()), flush=True)


if __name__ == "__main__":
    main()
