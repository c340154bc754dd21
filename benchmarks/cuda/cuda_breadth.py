#!/usr/bin/env python3
"""Networks of networks.py (unless named, those that take images), on a GPU beside torch.compile: a row each, with the times,
the error of both against f32 (of f32: against float64), and Sylvite's slowest kernels.

usage: cuda_breadth.py SYLVITE... [--only NAME,...] [--batch 32] [--modes reduce-overhead] [--torch eager,reduce-overhead]
                       [--precision bf16] [--json FILE] [--kernels 6] [--jobs 1] [--minutes M]
SYLVITE is the command (several words: a bundle's `run sylvite`). Both sides compute in bf16 or f32 from the same weights and
inputs; torch has its inputs and weights with channels last. Sylvite's time is that of a CUDA graph, inputs on the device.
With --jobs, networks are exported and compiled side by side (which makes cold times longer), then measured one after the other.
Needs torch, torchvision, timm, onnx, onnxscript and numpy. Networks that do not start within --minutes are left out, and named.
"""
import argparse
import json
import math
import multiprocessing
import os
import pathlib
import statistics
import sys
import tempfile
import time

import torch
from cuda_models import CALLS, Sylvite, error_over, torch_way
from cuda_timing import time_once

sys.path.insert(1, str(pathlib.Path(__file__).parents[1] / "networks"))
import networks


def prepare(name, options, folder):
    """All that comes before the rounds: Sylvite ready in its folder, torch's modes compiled, and the row without times."""
    network, dims = networks.make(name)
    ours = Sylvite(options.sylvite, networks.export(network, dims, options.batch, folder), folder, options)
    network = channels_last(network.cuda())
    x = networks.draw(dims, options.batch).cuda()
    reference = [reference_of(network, x, options.precision)]
    row = {"model": name, "batch": options.batch, "us": {}, "error": {}, "cold_seconds": {}, "failed": {}}
    for mode in options.modes:
        row["cold_seconds"][mode] = ours.bench(mode)["seconds"]["ready"]
        row["error"][mode] = error_over([ours.outputs(mode, "x", x).float()], reference)
    dtype = torch.bfloat16 if options.precision == "bf16" else torch.float32
    network, given = network.to(dtype), x if x.dtype == torch.int64 else channels_last(x.to(dtype))
    ways = {}
    for mode in options.torch:
        try:
            way = torch_way(network, mode, [given])
        except Exception as error:  # torch's other modes still are sides to compare with
            row["failed"]["torch " + mode] = str(error).strip().splitlines()[-1] if str(error).strip() else repr(error)
            continue
        ways["torch " + mode] = way["run"]
        row["cold_seconds"]["torch " + mode] = way["compile_seconds"]
        row["error"]["torch " + mode] = error_over([each.float() for each in way["outputs"]], reference)
    return ours, ways, row


def reference_of(network, x, precision):
    """On the host. Torch's f32 shares its rounding with torch's other modes in f32, so those are compared with float64."""
    with torch.inference_mode():
        if precision != "f32":
            return network(x).float().cpu()
        torch.set_default_dtype(torch.float64)  # of what networks make themselves
        try:
            return network.double()(x.double() if x.is_floating_point() else x).cpu()
        finally:
            torch.set_default_dtype(torch.float32)
            network.float()


def channels_last(x):
    """Of a network's convolutions, or of an image."""
    if isinstance(x, torch.Tensor):
        return x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 else x
    return x.to(memory_format=torch.channels_last) if not any(t.dim() == 5 for t in [*x.parameters(), *x.buffers()]) else x


def finish(ours, ways, row, options):
    """The row with the kernels' times and those of the rounds; nothing else should use the card."""
    row["kernels"] = slowest(ours, options)
    rounds = {mode: [] for mode in [*options.modes, *ways]}
    for _ in range(options.rounds):
        for mode in options.modes:
            rounds[mode].append(ours.bench(mode)["device_us"]["median"])
        for mode, run in ways.items():
            time_once(run, CALLS)
            rounds[mode].append(statistics.median(time_once(run, CALLS) for _ in range(9)))
    row["us"] = {mode: statistics.median(times) for mode, times in rounds.items()}
    return row


def race(name, options, pipe):
    """A process of its own: prepares, says so, waits for its turn, and sends the row or a text that says what failed."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what torch's exporter prints
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        try:
            prepared = prepare(name, options, folder)
            pipe.send("ready")
            pipe.recv()
            pipe.send(finish(*prepared, options))
        except Exception as error:  # the others are still worth measuring
            pipe.send(str(error)[-1500:] or repr(error))


def slowest(ours, options):
    """The launches that take longest: microseconds, share of all, class, TFLOP/s, TB/s, name."""
    report = ours.bench(options.modes[-1], profile=True, shown=False)
    launches = sorted(report["profile"], key=lambda launch: -launch["duration_us"])
    whole = sum(launch["duration_us"] for launch in launches)
    rows = []
    for launch in launches[:options.kernels]:
        us, kernel = launch["duration_us"], report["kernels"][launch["kernel"]]
        rows.append((us, us / whole, kernel["class"], kernel["operations"] / us / 1e6, kernel["bytes"] / us / 1e6,
                     f"{launch['kernel']} {launch['name']}"))
    return rows


def ratio(row):
    theirs = [us for mode, us in row["us"].items() if mode.startswith("torch")]
    return min(theirs) / min(us for mode, us in row["us"].items() if not mode.startswith("torch")) if theirs else math.nan


def print_row(row):
    times = "  ".join(f"{mode} {us / 1e3:.3f} ms (error {row['error'][mode]:.1e}, cold {row['cold_seconds'][mode]:.0f} s)"
                      for mode, us in row["us"].items())
    print(f"ROW {row['model']:<18} {ratio(row):5.2f}  {times}", flush=True)
    for mode, reason in row["failed"].items():
        print(f"    {mode} failed: {reason[:200]}", flush=True)
    for us, share, kind, tera_operations, terabytes, name in row["kernels"]:
        print(f"    {us:9.1f} us {share:6.1%} {tera_operations:7.1f} TFLOP/s {terabytes:5.2f} TB/s  {kind:<14} {name}", flush=True)


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sylvite", nargs="+")
    parser.add_argument("--only", default=",".join(networks.images()))
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--precision", default="bf16", choices=["bf16", "f32"], help="f32: torch without TF32")
    parser.add_argument("--modes", default="reduce-overhead", help="Sylvite's")
    parser.add_argument("--torch", default="eager,default,reduce-overhead,max-autotune", help="torch's modes; none: empty")
    parser.add_argument("--set", action="append", default=[], dest="settings", metavar="KEY=VALUE")
    parser.add_argument("--budget", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kernels", type=int, default=6)
    parser.add_argument("--jobs", type=int, default=1, help="networks that are prepared side by side")
    parser.add_argument("--patience", type=float, default=1e9, help="seconds after which those that are not prepared are left out")
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--json")
    options = parser.parse_args()
    options.modes = [mode for mode in options.modes.split(",") if mode]
    options.torch = [mode for mode in options.torch.split(",") if mode]
    return options


def race_all(names, options, race=race):
    """Prepares the networks side by side, then measures one after the other; each result as it comes."""
    context = multiprocessing.get_context("spawn")
    racers = []
    for name in names:
        ours, theirs = context.Pipe()
        process = context.Process(target=race, args=(name, options, theirs))
        process.start()
        theirs.close()
        racers.append((name, ours, process))
    end = time.time() + options.patience
    said = {name: receive(pipe, end) for name, pipe, _ in racers}
    for name, _, process in racers:
        if said[name] != "ready":
            process.kill()
    for name, pipe, process in racers:
        if said[name] == "ready":
            pipe.send("go")
            said[name] = receive(pipe, math.inf)
        process.join()
        yield name, said[name]


def receive(pipe, end):
    try:
        longest = 1e6  # seconds that a poll may take
        if end < math.inf and not pipe.poll(min(longest, max(0, end - time.time()))):
            return "it was not prepared in time"
        return pipe.recv()
    except EOFError:
        return "the process died"


def main():
    options = parse_options()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}", flush=True)
    rows, end, names = [], time.time() + 60 * options.minutes, options.only.split(",")
    for first in range(0, len(names), options.jobs):
        some = names[first:first + options.jobs]
        if time.time() > end:
            print(f"LEFT OUT {' '.join(some)}", flush=True)
            continue
        for name, result in race_all(some, options):
            if isinstance(result, str):
                print(f"FAILED {name}: {result}", flush=True)
                continue
            rows.append(result)
            print_row(result)
        if options.json:
            with open(options.json, "w") as file:
                json.dump({"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "rows": rows}, file, indent=1)
    known = [ratio(row) for row in rows if not math.isnan(ratio(row))]
    if known:
        print(f"geometric mean {math.exp(sum(map(math.log, known)) / len(known)):.3f}, least {min(known):.3f}, of {len(known)}")


if __name__ == "__main__":
    main()
