#!/usr/bin/env python3
"""Programs of the files torch_*_programs.py, and scripts of the files torch_*_scripts.py, through torch.compile, beside eager, float64 and Inductor's
default.

usage: torch_programs.py [--only NAME,...] [--turns 60] [--threads 1] [--backends eager,sylvite,inductor] [--device cpu]

Each has a process of its own, and a folder of caches that is empty. Results of three calls, and in training gradients of inputs and parameters, and what is
written to buffers, must pass the rule of torch's own suite beside eager and a run in float64; of a script what it returns must. Printed for each pass: whether they do, where strides differ from
eager's, graphs that torch captured, programs, kernels and parts that torch runs, and microseconds of processor time of a call (the least of turns of five; on a GPU of the clock, until the last of the five is done) with Inductor's over
Sylvite's.
"""

import argparse
import importlib
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time
import traceback
import warnings


def load_files(pattern):
    """Each file adds what it has to the table of the first one."""
    for path in sorted(pathlib.Path(__file__).parent.glob(pattern)):
        importlib.import_module(path.stem)


def programs():
    load_files("torch_*_programs.py")
    from torch_use_programs import PROGRAMS
    return PROGRAMS


def scripts():
    load_files("torch_*_scripts.py")
    from torch_training_scripts import SCRIPTS
    return SCRIPTS


def leaves(value):
    import torch
    from torch.utils._pytree import tree_leaves
    return [x for x in tree_leaves(value) if isinstance(x, torch.Tensor)]


def to_double(value):
    import torch
    from torch.utils._pytree import tree_map
    return tree_map(lambda x: x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x, value)


def parameters_of(module):
    return [p for p in module.parameters() if p.requires_grad]


def call(function, module, inputs, trains):
    """The results, with gradients where it is trained."""
    import torch
    if not trains:
        with torch.no_grad():
            return leaves(function(*inputs))
    given = [x.detach().requires_grad_() if x.is_floating_point() else x for x in inputs]
    module.zero_grad(set_to_none=True)
    results = leaves(function(*given))
    sum(x.float().square().mean() for x in results if x.requires_grad).backward()
    return results + [x.grad for x in (*given, *parameters_of(module)) if x.grad is not None]


def three_calls(function, module, inputs, trains):
    found = []
    for given in inputs:
        found += [x.detach().clone() for x in call(function, module, given, trains)]
    return found + [x.clone() for x in module.buffers()]


def fresh(build, exact=False):
    """The same module each time."""
    import torch
    torch.manual_seed(0)
    device = torch.get_default_device()
    module = build()[0]._apply(lambda x: x if x.is_meta else x.to(device))
    return module.double() if exact else module


def differences(got, eager, exact):
    """The numbers of results that are not right, and those whose strides are others."""
    from torch._dynamo.utils import same
    if len(got) != len(eager):
        return [f"{len(got)} results, not {len(eager)}"], []
    wrong = [i for i, (g, e, x) in enumerate(zip(got, eager, exact))
             if g.dtype != e.dtype or g.shape != e.shape or not same(e, g, x.to(e.dtype) if not x.is_floating_point() else x, tol=1e-3, equal_nan=True)]  # fmt: skip
    return wrong, [i for i, (g, e) in enumerate(zip(got, eager)) if g.stride() != e.stride()]


def compiled(module, backend):
    import torch
    return module if backend == "eager" else torch.compile(module, backend=backend)


def inputs_of(make, name):
    import torch
    made = [make() for _ in range(3)]
    if name.startswith("open"):
        for given in made:
            for x in given:
                torch._dynamo.mark_dynamic(x, 0)
    return made


def told_of(graphs):
    return {
        "graphs": len(graphs), "torch": sum(g.torch_parts for g in graphs),
        "kernels": sum(p.report()["kernels"] for g in graphs for p in g.programs),
        "refused": sorted({f"{op} | {why}" for g in graphs for _, op, why in g.refused}),
        "failures": [g.failure for g in graphs if g.failure],
    }  # fmt: skip


def one_pass(name, build, make, trains, turns, backends):
    import torch
    from sylvite import torch_backend
    inputs = inputs_of(make, name)
    ways, found, line = {}, {}, {}
    for backend in backends:
        torch._dynamo.reset()
        module = fresh(build)
        function = compiled(module, backend)
        try:
            with torch_backend.listen() as graphs:
                found[backend] = three_calls(function, module, inputs, trains)
        except Exception as error:
            line[backend + " failed"] = f"{type(error).__name__}: {error}"[:300]
            continue
        if backend == "sylvite":
            line.update(told_of(graphs))
        ways[backend] = lambda f=function, m=module: call(f, m, inputs[0], trains)
    exact = fresh(build, exact=True)
    try:
        exact = three_calls(exact, exact, to_double(inputs), trains)
    except RuntimeError:
        exact = found["eager"]  # torch has an operation for fewer types
    if "sylvite" in found:
        line["wrong"], line["strides"] = differences(found["sylvite"], found["eager"], exact)
    return {**line, **times_of(ways, turns)}


def one_script(name, turns, backends):
    import torch
    from sylvite import torch_backend
    from torch_training_scripts import Run
    build = scripts()[name]

    def made(backend, exact=False):
        torch._dynamo.reset()
        torch.manual_seed(0)
        results, again = build(Run(backend, exact))
        return [x.detach() for x in leaves(results)], again

    ways, found, line = {}, {}, {}
    for backend in backends:
        torch._dynamo.utils.counters.clear()
        with torch_backend.listen() as graphs:
            try:
                found[backend], again = made(backend)
            except Exception as error:
                line[backend + " failed"] = f"{type(error).__name__}: {error}"[:300]
                continue
        line["captured_" + backend] = torch._dynamo.utils.counters["stats"]["unique_graphs"]
        if backend == "sylvite":
            line.update(told_of(graphs))
        if again is not None:
            ways[backend] = again
    try:
        exact = made("eager", exact=True)[0]
    except Exception:
        exact = found["eager"]  # torch has an operation for fewer types
    if "sylvite" in found and "eager" in found:
        line["wrong"], line["strides"] = differences(found["sylvite"], found["eager"], exact)
    if "inductor" in found and "eager" in found:
        line["inductor_wrong"] = differences(found["inductor"], found["eager"], exact)[0]
    return {**line, **times_of(ways, turns)}


def times_of(ways, turns):
    import torch
    least = dict.fromkeys(ways, float("inf"))
    for _ in range(turns):
        for name, way in ways.items():
            if torch.get_default_device().type == "cuda":
                least[name] = min(least[name], time_on_device(way))
                continue
            for _ in range(5):  # the first meets caches that hold the others' code
                start = time.process_time_ns()
                way()
                least[name] = min(least[name], (time.process_time_ns() - start) / 1e3)
    return {name + "_us": value for name, value in least.items()}


def time_on_device(way, calls=5):
    """Microseconds of a call among several that follow each other, by the clock."""
    import torch
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(calls):
        way()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / calls * 1e6


def child(name, turns, threads, backends, device):
    warnings.filterwarnings("ignore")
    import torch
    torch.set_num_threads(threads)
    torch.set_default_device(device)
    build = programs().get(name)
    if build is None:
        print("LINE " + json.dumps({"program": name, "pass": "script", **one_script(name, turns, backends)}), flush=True)
        return
    torch.manual_seed(0)
    _, make, trains = build()
    for kind in (False, True) if trains else (False,):
        print("LINE " + json.dumps({"program": name, "pass": "training" if kind else "inference", **one_pass(name, build, make, kind, turns, backends)}), flush=True)


def in_process_of_its_own(name, options):
    """Its lines, and what it wrote last where it failed. The process has torch, and what the files import, from this one."""
    with tempfile.TemporaryDirectory() as cache:
        out, err = pathlib.Path(cache, "out"), pathlib.Path(cache, "err")
        process = os.fork()
        if process == 0:
            os.environ.update(XDG_CACHE_HOME=cache, TORCHINDUCTOR_CACHE_DIR=cache + "/torch", OMP_NUM_THREADS=str(options.threads))
            for stream, path in ((1, out), (2, err)):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), stream)
            try:
                child(name, options.turns, options.threads, options.backends.split(","), options.device)
                sys.stdout.flush()
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                sys.stderr.flush()
                os._exit(1)
        status = os.waitpid(process, 0)[1]
        lines = [json.loads(line[5:]) for line in out.read_text().splitlines() if line.startswith("LINE ")]
        return lines, err.read_text()[-600:] or f"status {status}" if status else ""


def tell(line):
    ratio = line["inductor_us"] / line["sylvite_us"] if "inductor_us" in line and "sylvite_us" in line else None
    text = " ".join(f"{k}={v:.0f}" if isinstance(v, float) else f"{k}={v}" for k, v in line.items() if k not in ("program", "pass") and v not in ([], 0))
    print(f"{line['program']:18} {line['pass']:9} {'wrong' if line.get('wrong', True) else 'right'} {f'{ratio:.2f}' if ratio else '-':5} {text}", flush=True)
    return ratio


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--turns", type=int, default=60)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--backends", default="eager,sylvite,inductor", help="eager and sylvite are among them")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    ratios = {"inference": [], "training": [], "script": []}
    names = [*programs(), *scripts()]
    importlib.import_module("sylvite.torch_backend")
    for name in options.only.split(",") if options.only else names:
        lines, failure = in_process_of_its_own(name, options)
        if failure:
            print(f"{name}: {failure}", flush=True)
        for line in lines:
            ratio = tell(line)
            if ratio:
                ratios[line["pass"]].append(ratio)
    for kind, found in ratios.items():
        if found:
            print(f"{kind}: {len(found)} programs, {statistics.geometric_mean(found):.2f} in geometric mean, {min(found):.2f} at least")


if __name__ == "__main__":
    main()
