#!/usr/bin/env python3
"""Seconds of processor time to the first result in a second process, beside what torch takes alone.

usage: torch_warm.py [--passes inference,training] [--backends sylvite,eager,aot_eager,inductor] [--turns 2] MODEL...

Models are those of torch_census.py. Each backend and turn has a process of its own, one thread, and a folder of caches that a first
process of the same backend filled. `eager` is Dynamo alone, `aot_eager` Dynamo and AOTAutograd. Imports are done before.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings


def child(name, backend, kind):
    warnings.filterwarnings("ignore")
    import torch
    import torch_census
    from torch_census_models import MODELS
    torch.set_num_threads(1)
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
    start, clock = torch_census.processor_seconds(), time.perf_counter()
    if kind == "training":
        torch_census.loss_of(torch_census.call(compiled, arguments)).backward()
    else:
        with torch.no_grad():
            torch_census.call(compiled, arguments)
    print("LINE " + json.dumps([torch_census.processor_seconds() - start, time.perf_counter() - clock]))


def run_child(name, backend, kind, cache):
    environment = {**os.environ, "XDG_CACHE_HOME": cache, "TORCHINDUCTOR_CACHE_DIR": cache + "/torch", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run([sys.executable, __file__, "--child", name, backend, kind], capture_output=True, text=True, env=environment, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("LINE ")]
    if not lines:
        raise SystemExit(f"{name}, {backend}, {kind}: {done.stderr[-500:]}")
    return json.loads(lines[0][5:])


def main():
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--passes", default="inference,training")
    parser.add_argument("--backends", default="sylvite,eager,aot_eager,inductor")
    parser.add_argument("--turns", type=int, default=2)
    options = parser.parse_args()
    backends = options.backends.split(",")
    for name in options.models:
        for kind in options.passes.split(","):
            with tempfile.TemporaryDirectory() as cache:
                for backend in backends:
                    run_child(name, backend, kind, cache)
                turns = [{backend: run_child(name, backend, kind, cache)[0] for backend in backends} for _ in range(options.turns)]
            means = {backend: statistics.mean(turn[backend] for turn in turns) for backend in backends}
            print(name, kind, "  ".join(f"{backend} {seconds:.2f}" for backend, seconds in means.items()), flush=True)


if __name__ == "__main__":
    main()
