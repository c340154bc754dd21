#!/usr/bin/env python3
"""Networks of networks.py with an open batch on a GPU, beside torch.compile(dynamic=True): one compile of each side for all
batches, times on the device at each, and what each side's compile took.

usage: cuda_dynamic.py SYLVITE... [--only NAME,...] [--batches 1,3,13,32] [--torch default,reduce-overhead] [--rounds 3] [--jobs 1]
SYLVITE is the command. Both sides compute in bf16 from the same weights; torch has images with channels last. With --jobs,
both sides of several networks are made ready side by side. Needs torch, torchvision, timm, onnx, onnxscript and numpy.
"""
import argparse
import math
import os
import re
import statistics
import subprocess
import tempfile
import time

import networks
import torch
from cuda_breadth import channels_last, race_all
from cuda_timing import time_once

CALLS = 30
ON_DEVICE = re.compile(r"^at (?:x_0|batch)=(\d+):\n(?:(?!at ).*\n)*?on the device, without copies: median ([\d.]+) us", re.M)


def export(network, dims, folder):
    path = os.path.join(folder, "model.onnx")
    torch.onnx.export(network, (networks.draw(dims, 2),), path, input_names=["x"], dynamo=True, verbose=False,
                      dynamic_shapes=({0: torch.export.Dim("batch", min=1, max=64)},))
    return path


def sylvite_times(path, folder, options):
    """Microseconds by batch; the first batch has its kernels chosen for it."""
    batches = "+".join(map(str, reversed(options.batches)))
    done = subprocess.run([*options.sylvite, "bench", path, "--dims", f"batch=1..{max(options.batches)}@{batches}", "--device", "cuda",
                           "--precision", "bf16", "--mode", "reduce-overhead", "--warmup", "0s", "--duration", "0s", "--no-profile",
                           "--cache-dir", os.path.join(folder, "objects"), "--db", os.path.join(folder, "db")],
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-1000:])
    return {int(batch): float(us) for batch, us in ON_DEVICE.findall(done.stdout)}


def torch_ways(network, dims, mode, options):
    """A function for each batch, of one compiled module that has seen them all."""
    torch._dynamo.reset()
    compiled = torch.compile(network, mode=mode, dynamic=True)
    ways = {}
    with torch.inference_mode():
        for batch in options.batches:
            x = networks.draw(dims, batch).cuda()
            x = x if x.dtype == torch.int64 else channels_last(x.bfloat16())
            if batch > 1:
                torch._dynamo.mark_dynamic(x, 0)
            for _ in range(4):
                compiled(x)
            ways[batch] = (compiled, x)
        torch.cuda.synchronize()
    return ways


def call(way):
    compiled, x = way
    with torch.inference_mode():
        for _ in range(CALLS):
            compiled(x)


def race(name, options, pipe):
    """As in cuda_breadth.py: ready, its turn, the row or a text that says what failed."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        try:
            network, dims = networks.make(name)
            path = export(network, dims, folder)
            start = time.time()
            sylvite_times(path, folder, options)
            seconds = {"sylvite": time.time() - start}
            network = channels_last(network.cuda()).bfloat16()
            ways = {}
            for mode in options.torch:
                start = time.time()
                ways[mode] = torch_ways(network, dims, mode, options)
                seconds[mode] = time.time() - start
            pipe.send("ready")
            pipe.recv()
            pipe.send(measure(name, path, folder, ways, seconds, options))
        except Exception as error:  # the others are still worth measuring
            pipe.send(str(error)[-1500:] or repr(error))


def measure(name, path, folder, ways, seconds, options):
    samples = {}
    for _ in range(options.rounds):
        for batch, us in sylvite_times(path, folder, options).items():
            samples.setdefault(("sylvite", batch), []).append(us)
        for mode, by_batch in ways.items():
            for batch, way in by_batch.items():
                time_once(lambda: call(way), CALLS)
                samples.setdefault((mode, batch), []).append(statistics.median(time_once(lambda: call(way), CALLS) for _ in range(7)))
    return {"name": name, "seconds": seconds, "us": {key: statistics.median(times) for key, times in samples.items()}}


def print_row(row, options):
    """The ratios of torch's best mode at each batch to Sylvite."""
    ratios = []
    made = ", ".join(f"{side} {seconds:.0f} s" for side, seconds in row["seconds"].items())
    print(f"{row['name']}: ready and run at all batches: {made}", flush=True)
    for batch in options.batches:
        ours, theirs = row["us"][("sylvite", batch)], {mode: row["us"][(mode, batch)] for mode in options.torch}
        ratios.append(min(theirs.values()) / ours)
        print(f"  batch {batch:<3} sylvite {ours:8.1f} us  " + "  ".join(f"{mode} {us:8.1f} us" for mode, us in theirs.items())
              + f"  ratio {ratios[-1]:.2f}", flush=True)
    return ratios


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sylvite", nargs="+")
    parser.add_argument("--only", default="resnet50,vit_b_16,bert_small")
    parser.add_argument("--batches", default="1,3,13,32")
    parser.add_argument("--torch", default="default,reduce-overhead")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--patience", type=float, default=1e9, help="seconds after which those that are not prepared are left out")
    options = parser.parse_args()
    options.batches = [int(batch) for batch in options.batches.split(",")]
    options.torch = options.torch.split(",")
    names, ratios = options.only.split(","), []
    for first in range(0, len(names), options.jobs):
        for name, result in race_all(names[first:first + options.jobs], options, race):
            if isinstance(result, str):
                print(f"FAILED {name}: {result}", flush=True)
            else:
                ratios += print_row(result, options)
    if ratios:
        print(f"geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.3f}, least {min(ratios):.3f}")


if __name__ == "__main__":
    main()
