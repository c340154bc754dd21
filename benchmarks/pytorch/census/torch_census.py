#!/usr/bin/env python3
"""torch.compile(model, backend="sylvite") over many models, each in a process of its own, beside eager and Inductor.

usage: torch_census.py --out FILE.jsonl [--only TEXT,...] [--passes inference,dynamic,training] [--inductor] [--warm] [--seconds 1]
                       [--best] [--processor] [--lock FILE] [--device cuda] [--bf16] [--jobs 1]

Writes a line for each model and pass: whether results pass the rule of torch's own suite (as near to a run in float64 as eager is,
within its factors; gradients of bf16 as near to f32), graphs, programs, parts that torch ran and the operations that made them, seconds to the first result with
an empty cache of kernels (cold) and, with --warm, with a full one in a second process, and what that compiled, and milliseconds of a call, the median and the least of turns. With --processor a call's
are of processor time, which waits for nobody. Seconds to a first result are also given in processor time, of this process and of those that it
starts; torch's own compiler is imported and Dynamo has traced the model before, and what it takes alone (AOTAutograd's aot_eager) is given for the second process. With --best
Inductor also runs in max-autotune with frozen weights. While times are measured the file of --lock is locked, for others that measure. On a GPU a
turn is ten calls, after which the host waits, and both compilers also run in the mode reduce-overhead. With --bf16 inference has weights and inputs of bf16, and training is under autocast. With --jobs so many models are compiled side by side, and measured one after the other
once all are compiled; first times then say little. Models named large/... run only when --only names them. A summary goes to stdout. Needs torch, and of torchvision, timm and transformers what is to run.
"""

import argparse
import collections
import concurrent.futures
import contextlib
import copy
import fcntl
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import warnings


def leaves(output):
    import torch
    from torch.utils._pytree import tree_flatten
    return [x for x in tree_flatten(output.to_tuple() if hasattr(output, "to_tuple") else output)[0] if isinstance(x, torch.Tensor)]


def call(model, arguments):
    return model(**arguments) if isinstance(arguments, dict) else model(*arguments)


def to_double(value):
    import torch
    from torch.utils._pytree import tree_map
    return tree_map(lambda x: x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x, value)


def is_same(got, eager, exact, tolerance):
    from torch._dynamo.utils import same
    got, eager, exact = leaves(got), leaves(eager), leaves(exact)
    return len(got) == len(eager) and all(
        same(e.detach(), g.detach(), x.detach(), tol=tolerance, equal_nan=True) for g, e, x in zip(got, eager, exact))


def loss_of(output):
    return sum(x.float().square().mean() for x in leaves(output) if x.requires_grad)


def to_device(value, options):
    """A module, or arguments, on the device, and of bf16 where that is asked for."""
    import torch
    from torch.utils._pytree import tree_map
    narrow = torch.bfloat16 if options.bf16 and options.passes != "training" else None
    if isinstance(value, torch.nn.Module):
        return value.to(options.device, narrow)
    return tree_map(lambda x: x.to(options.device, narrow if x.is_floating_point() else None) if isinstance(x, torch.Tensor) else x, value)


def settle(options):
    """Waits for the device."""
    import torch
    if options.device == "cuda":
        torch.cuda.synchronize()


def is_ready(folder, name):
    pathlib.Path(folder, name.replace("/", " ")).touch()


@contextlib.contextmanager
def alone(options):
    """Once all who meet in a folder are ready, one after the other, with what memory there is."""
    import torch
    if not options.meet:
        yield
        return
    torch.cuda.empty_cache()
    folder, count = options.meet.rsplit(":", 1)
    is_ready(folder, options.child)
    end = time.time() + options.timeout
    while len(os.listdir(folder)) < int(count) and time.time() < end:
        time.sleep(0.2)
    with open(folder + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
        torch.cuda.empty_cache()


def memory_of(function, options):
    """Gigabytes of the GPU's memory that torch's allocator has at most during a call, or nothing."""
    import torch
    if options.device != "cuda":
        return None
    settle(options)
    torch.cuda.reset_peak_memory_stats()
    function()
    settle(options)
    return torch.cuda.max_memory_allocated() / 1e9


@contextlib.contextmanager
def locked(options):
    """What takes times has the lock."""
    if not options.lock:
        yield
        return
    with open(options.lock, "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def processor_seconds():
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class FirstResult:
    """Seconds to a first result, by the clock and of processors."""

    def __init__(self, name, line, options):
        self.name, self.line, self.options = name, line, options

    def __enter__(self):
        self.start, self.processor = time.perf_counter(), processor_seconds()

    def __exit__(self, *_):
        settle(self.options)
        self.line[self.name + "first_s"] = time.perf_counter() - self.start
        self.line[self.name + "first_processor_s"] = processor_seconds() - self.processor


def take_times(functions, options, line):
    """Milliseconds of a call of each by name, in turns: the median and the least."""
    with locked(options):
        kept = in_turns(list(functions.values()), options)
    for name, times in zip(functions, kept):
        line[name + "_ms"], line[name + "_least_ms"] = 1e3 * statistics.median(times), 1e3 * min(times)


def in_turns(functions, options):
    """Seconds of calls of each, in turns."""
    calls = 10 if options.device == "cuda" else 1
    now = time.process_time if options.processor else time.perf_counter
    times = [[] for _ in functions]
    for function in functions * 3:  # what is recorded is recorded now
        function()
    settle(options)
    end = time.perf_counter() + options.seconds * len(functions)
    while time.perf_counter() < end or len(times[0]) < 3:
        for function, kept in zip(functions, times):
            start = now()
            for _ in range(calls):
                function()
            settle(options)
            kept.append((now() - start) / calls)
    return times


def compiled_ways(model, options):
    """Name -> the model as each compiler and mode has it, but for the one that is checked."""
    import torch
    ways = {}
    if options.first_only:
        ways["aot_eager"] = torch.compile(model, backend="aot_eager", dynamic=False)
    if options.device == "cuda":
        ways["sylvite_reduce_overhead"] = torch.compile(model, backend="sylvite", mode="reduce-overhead", dynamic=False)
    if options.inductor:
        ways["inductor"] = torch.compile(model, dynamic=False)
        if options.best:
            best = {"max_autotune": True, "freezing": options.passes == "inference"}
            ways["inductor_best"] = torch.compile(model, dynamic=False, options=best)
        if options.device == "cuda":
            ways["inductor_reduce_overhead"] = torch.compile(model, mode="reduce-overhead", dynamic=False)
    return ways


def trace_once(model, arguments):
    """What a model keeps at its first call, and Dynamo with it, makes other graphs of the second; all who are compared get those."""
    import torch
    call(torch.compile(model, backend="eager", dynamic=False), copy.deepcopy(arguments))
    torch._dynamo.reset()


def describe(graphs):
    """Counts of what was compiled."""
    refused = collections.Counter(f"{op} | {reason}" for graph in graphs for _, op, reason in graph.refused)
    reports = [program.report() for graph in graphs for program in graph.programs]
    return {
        "graphs": len(graphs), "programs": len(reports), "torch_parts": sum(graph.torch_parts for graph in graphs),
        "kernels": sum(report["kernels"] for report in reports), "compiled": sum(report["compiled"] for report in reports),
        "refused": dict(refused),
        "failures": [graph.failure for graph in graphs if graph.failure],
        "warnings": sorted({warning for report in reports for warning in report["warnings"]})[:5],
    }  # fmt: skip


def first_calls(ways, arguments, options, line):
    """What each gives at its first call, which takes so many seconds."""
    results = {}
    for name, way in ways.items():
        with FirstResult(name + "_", line, options):
            results[name] = call(way, copy.deepcopy(arguments))
    return results


def exact_result(model, arguments, eager):
    """In float64, or as eager has it where torch has an operation for fewer types."""
    try:
        return call(copy.deepcopy(model).double(), to_double(copy.deepcopy(arguments)))
    except RuntimeError:
        return eager


def run_inference(model, make, options, heard):
    import torch
    model.eval()
    compiled = torch.compile(model, backend="sylvite", dynamic=False)
    arguments = make(0)
    with torch.no_grad():
        line = {}
        trace_once(model, arguments)
        with FirstResult("", line, options):
            got = call(compiled, copy.deepcopy(arguments))
        line.update(describe(heard))
        ways = compiled_ways(model, options)
        firsts = first_calls(ways, arguments, options, line)
        if options.first_only:
            return line
        eager = call(model, copy.deepcopy(arguments))
        exact = exact_result(model, arguments, eager)
        tolerance = 1e-2 if options.bf16 else 1e-3
        line["same"] = all(is_same(each, eager, exact, tolerance) for each in (got, call(compiled, copy.deepcopy(arguments))))
        functions = {"eager": lambda: call(model, arguments), "sylvite": lambda: call(compiled, arguments)}
        for name, way in ways.items():
            line[name + "_same"] = is_same(firsts[name], eager, exact, tolerance)
            functions[name] = lambda way=way: call(way, arguments)
        with alone(options):
            take_times(functions, options, line)
    return line


def run_dynamic(model, make, options, heard):
    import torch
    model.eval()
    compiled = torch.compile(model, backend="sylvite")
    line = {"same": True, "graphs_by_size": []}
    with torch.no_grad():
        for variant in (0, 1, 2, 0):
            arguments = make(variant)
            before = len(heard)
            got = call(compiled, copy.deepcopy(arguments))
            line["graphs_by_size"].append(len(heard) - before)
            eager = call(model, copy.deepcopy(arguments))
            exact = call(copy.deepcopy(model).double(), to_double(copy.deepcopy(arguments)))
            line["same"] &= is_same(got, eager, exact, 1e-3)
    return {**line, **describe(heard)}


#: Modules that draw with a probability named p.
DRAWING = {"Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout", "StochasticDepth"}


def without_draws(model):
    """No dropout of any kind: draws differ from eager's in any compiler."""
    for module in model.modules():
        for owner in (module, getattr(module, "config", None)):
            for name, value in list(vars(owner).items()) if hasattr(owner, "__dict__") else ():
                if isinstance(value, float) and ("drop" in name or (name == "p" and type(module).__name__ in DRAWING)):
                    setattr(owner, name, 0.0)


def exact_gradients(model, arguments, step, options):
    """Beside bf16, f32 is exact, and takes half of float64's memory."""
    exact, given = copy.deepcopy(model), copy.deepcopy(arguments)
    if not options.bf16:
        exact, given = exact.double(), to_double(given)
    step(exact, given, exact, narrow=False)
    return [p.grad for p in exact.parameters() if p.grad is not None]


def run_training(model, make, options, heard):
    import torch
    model.train()
    without_draws(model)
    models = [model, copy.deepcopy(model)]
    arguments = make(0)
    for each in models:
        trace_once(each, arguments)
    compiled = torch.compile(model, backend="sylvite", dynamic=False)

    def step(function, given, owner, narrow=options.bf16):
        owner.zero_grad(set_to_none=True)
        with torch.autocast(options.device, torch.bfloat16, enabled=narrow):
            loss = loss_of(call(function, given))
        loss.backward()

    line = {}
    with FirstResult("", line, options):
        step(compiled, copy.deepcopy(arguments), model)
    line.update(describe(heard))
    got = [p.grad for p in model.parameters() if p.grad is not None]
    functions = {"eager": lambda: step(models[1], arguments, models[1]), "sylvite": lambda: step(compiled, arguments, model)}
    for name, way in compiled_ways(models[1], options).items():
        with FirstResult(name + "_", line, options):
            step(way, arguments, models[1])
        functions[name] = lambda way=way: step(way, arguments, models[1])
    with alone(options):
        step(models[1], copy.deepcopy(arguments), models[1])
        eager = [p.grad for p in models[1].parameters() if p.grad is not None]
        line["same"] = is_same(got, eager, exact_gradients(models[1], arguments, step, options), 1e-2)
        take_times(functions, options, line)
        line.update({name + "_GB": memory_of(function, options) for name, function in functions.items()})
    return line


PASSES = {"inference": run_inference, "dynamic": run_dynamic, "training": run_training}


def child(options):
    """One model and pass; prints the line."""
    warnings.filterwarnings("ignore")
    import torch
    from sylvite import torch_backend
    from torch_census_models import MODELS
    torch.set_num_threads(options.threads)
    torch.compile(torch.nn.Identity(), backend="aot_eager")(torch.ones(1))
    torch.manual_seed(0)
    model, make_on_cpu = MODELS[options.child]()
    if options.passes == "training":
        make_on_cpu = getattr(make_on_cpu, "train", make_on_cpu)
    model = to_device(model, options)
    with torch_backend.listen() as heard:
        line = PASSES[options.passes](model, lambda variant: to_device(make_on_cpu(variant), options), options, heard)
    print("LINE " + json.dumps(line))


def run_child(name, kind, options, cache, first_only=False, meet=""):
    words = [sys.executable, __file__, "--child", name, "--passes", kind, "--threads", str(options.threads), "--seconds",
             str(options.seconds), "--device", options.device]  # fmt: skip
    words += ["--inductor"] * options.inductor + ["--first-only"] * first_only + ["--bf16"] * options.bf16 + ["--best"] * options.best
    words += ["--timeout", str(options.timeout), "--meet", meet, "--lock", options.lock]
    words += ["--processor"] * options.processor
    environment = {**os.environ, "XDG_CACHE_HOME": cache, "TORCHINDUCTOR_CACHE_DIR": cache + "/inductor", "HF_HUB_OFFLINE": "1"}
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=options.timeout, env=environment, check=False)
    except subprocess.TimeoutExpired:
        return {"error": f"more than {options.timeout} s"}
    finally:
        if meet:
            is_ready(meet.rsplit(":", 1)[0], name)  # the others wait for none that failed
    for line in done.stdout.splitlines():
        if line.startswith("LINE "):
            return json.loads(line[5:])
    return {"error": (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1][:400]}


def one_line(name, kind, options, meet):
    with contextlib.nullcontext(options.cache) if options.cache else tempfile.TemporaryDirectory() as cache:
        line = {"model": name, "pass": kind, **run_child(name, kind, options, cache, meet=meet)}
        if options.warm and kind == "inference" and "error" not in line:
            again = run_child(name, kind, options, cache, first_only=True)
            line.update({f"warm_{key}": value for key, value in again.items() if key.endswith("first_s") or key == "compiled"})
    return line


def tell(line, options):
    keys = ("same", "graphs", "torch_parts", "first_s", "warm_first_s", "warm_compiled", "inductor_first_s",
            "warm_inductor_first_s", "eager_ms", "sylvite_ms", "inductor_ms", "inductor_best_ms", "inductor_best_first_s", "failures", "error")
    brief = {key: line[key] for key in keys if line.get(key) is not None}
    print(line["model"], line["pass"], json.dumps({k: round(v, 2) if isinstance(v, float) else v for k, v in brief.items()}), flush=True)
    if options.out:
        with options.out.open("a") as file:
            file.write(json.dumps(line) + "\n")


def summary(lines):
    """A row for each pass."""
    for kind in PASSES:
        rows = [line for line in lines if line["pass"] == kind]
        if not rows:
            continue
        whole = [r for r in rows if r.get("same") and not r.get("torch_parts") and not r.get("failures")]
        text = f"{kind}: {len(rows)} models, {sum(bool(r.get('same')) for r in rows)} right, {len(whole)} of them with no part run by torch"
        for other in ("eager", "inductor", "inductor_best", "inductor_reduce_overhead"):
            ratios = [r[other + "_ms"] / r["sylvite_ms"] for r in rows if r.get("same") and other + "_ms" in r]
            if ratios:
                text += f"; {statistics.geometric_mean(ratios):.2f}x {other}'s speed ({min(ratios):.2f}x to {max(ratios):.2f}x)"
        print(text)
        refused = collections.Counter(key for r in rows for key in r.get("refused", {}))
        for key, count in refused.most_common(40):
            print(f"  {count} models: {key}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--only", default="", help="parts of names, with commas")
    parser.add_argument("--passes", default="inference")
    parser.add_argument("--inductor", action="store_true")
    parser.add_argument("--best", action="store_true", help="with --inductor: its max-autotune with frozen weights, too")
    parser.add_argument("--processor", action="store_true", help="calls in processor time, for a machine that does other things; with one thread")
    parser.add_argument("--lock", default="", help="a file to lock while times are measured")
    parser.add_argument("--warm", action="store_true")
    parser.add_argument("--cache", help="a folder for all kernels; first times then say little")
    parser.add_argument("--first-only", action="store_true", help="of a child: no checks and no times")
    parser.add_argument("--seconds", type=float, default=1.0, help="of timing, for each of those compared")
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--jobs", type=int, default=1, help="models at a time")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--meet", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options)
        return
    from torch_census_models import MODELS
    wanted = [part for part in options.only.split(",") if part]
    names = [name for name in MODELS if (any(part in name for part in wanted) if wanted else not name.startswith("large/"))]
    work = [(name, kind) for name in names for kind in options.passes.split(",")]
    lines = []
    for first in range(0, len(work), options.jobs):
        together = work[first:first + options.jobs]
        with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(options.jobs) as threads:
            os.mkdir(folder + "/ready")
            meet = f"{folder}/ready:{len(together)}" if options.jobs > 1 else ""
            for line in threads.map(lambda each: one_line(*each, options, meet), together):
                lines.append(line)
                tell(line, options)
    summary(lines)


if __name__ == "__main__":
    main()
