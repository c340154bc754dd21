#!/usr/bin/env python3
"""Networks of networks.py with open sizes on a GPU: one compile for ranges beside kernels for each size, and beside
torch.compile(dynamic=True), in one run: times on the device at each size, and what each side's compile took.

usage: cuda_dynamic.py SYLVITE... [--only NAME,...] [--batches 1,3,13,32] [--torch default,reduce-overhead] [--rounds 3] [--jobs 1]
SYLVITE is the command. OPENED says which sizes of a network are open, and which are measured; of others it is the batch, at
--batches. Both sides compute in bf16 from the same weights; torch has images with channels last. With --jobs, both sides of
several networks are made ready side by side. Needs torch, torchvision, timm, onnx, onnxscript and numpy.
"""
import argparse
import collections
import itertools
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

import torch
from cuda_breadth import channels_last, race_all
from cuda_timing import time_once

sys.path.insert(1, str(pathlib.Path(__file__).parents[1] / "networks"))
import networks

CALLS = 30
AT = re.compile(r"^at (.*):\n(?:(?!at ).*\n)*?on the device, without copies: median ([\d.]+) us", re.M)
COMPILED = re.compile(r"\((\d+) compiled, \d+ from the cache\)")

Open = collections.namedtuple("Open", "name axis least most step sizes")  # an axis of the input; sizes: those measured
TOKENS = [Open("batch", 0, 1, 8, 1, [8, 1]), Open("tokens", 1, 2, 512, 1, [384, 128, 77, 32])]
PIXELS = [Open("height", 2, 128, 320, 32, [320, 224, 160, 128]), Open("width", 3, 128, 320, 32, [256, 160])]
OPENED = {
    "roberta": TOKENS, "bert_small": TOKENS,
    "gpt2": [Open("batch", 0, 1, 4, 1, [4, 1]), Open("tokens", 1, 2, 1024, 1, [1000, 512, 200, 64])],
    "mobilenet_v2": PIXELS, "efficientnet_b0": PIXELS,
}


def opened(name, options):
    return OPENED.get(name) or [Open("batch", 0, 1, max(options.batches), 1, sorted(options.batches, reverse=True))]


def all_sizes(axes):
    return list(itertools.product(*(each.sizes for each in axes)))


def draw_at(dims, axes, sizes):
    whole = [1, *dims]
    for each, size in zip(axes, sizes):
        whole[each.axis] = size
    return networks.draw(whole[1:], whole[0])


def export(network, dims, axes, folder):
    path = os.path.join(folder, "model.onnx")
    symbols = {}
    for each in axes:
        unit = torch.export.Dim("_" + each.name, min=-(-each.least // each.step), max=each.most // each.step)
        symbols[each.axis] = each.step * unit if each.step > 1 else torch.export.Dim(each.name, min=each.least, max=each.most)
    example = draw_at(dims, axes, [max(each.sizes[-1], 2) for each in axes])
    torch.onnx.export(network, (example,), path, input_names=["x"], dynamo=True, verbose=False, dynamic_shapes=(symbols,))
    return with_names(path, axes)


def with_names(path, axes):
    """The model whose input's dims are called as the axes are: of multiples, exporters leave expressions."""
    import onnx
    model = onnx.load(path, load_external_data=False)
    for each in axes:
        model.graph.input[0].type.tensor_type.shape.dim[each.axis].dim_param = each.name
    onnx.save(model, path)
    return path


def sylvite_times(path, axes, kernels, folder, options):
    """Microseconds by sizes, and kernels compiled; the first sizes have their kernels chosen for them."""
    dims = ",".join(f"{each.name}={each.least}..{each.most}" + (f"%{each.step}" if each.step > 1 else "") + "@"
                    + "+".join(map(str, each.sizes)) for each in axes)
    caches = os.path.join(folder, kernels)
    done = subprocess.run([*options.sylvite, "bench", path, "--dims", dims, "--device", "cuda", "--precision", "bf16", "--mode",
                           "reduce-overhead", "--warmup", "0s", "--duration", "0s", "--no-profile", "--cache-dir", caches,
                           "--db", caches + ".db", "--set", f"compile.open_kernels={kernels}"], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-1000:])
    found = {}
    for text, us in AT.findall(done.stdout):
        by_name = dict(each.split("=") for each in text.replace(",", " ").split() if "=" in each)
        found[tuple(int(by_name[each.name]) for each in axes)] = float(us)
    return found, sum(map(int, COMPILED.findall(done.stdout)))


def torch_ways(network, dims, axes, mode):
    """A function for each of the sizes, of one compiled module that has seen them all."""
    torch._dynamo.reset()
    compiled = torch.compile(network, mode=mode, dynamic=True)
    ways = {}
    with torch.inference_mode():
        for sizes in all_sizes(axes):
            x = draw_at(dims, axes, sizes).cuda()
            x = x if x.dtype == torch.int64 else channels_last(x.bfloat16())
            for each, size in zip(axes, sizes):
                if size > 1:
                    torch._dynamo.mark_dynamic(x, each.axis)
            for _ in range(4):
                compiled(x)
            ways[sizes] = (compiled, x)
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
            axes = opened(name, options)
            path = export(network, dims, axes, folder)
            seconds, compiled, ways = {}, {}, {}
            for kernels in ("auto", "off"):
                start = time.time()
                compiled[kernels] = sylvite_times(path, axes, kernels, folder, options)[1]
                seconds[kernels] = time.time() - start
            network = channels_last(network.cuda()).bfloat16()
            for mode in options.torch:
                start = time.time()
                ways[mode] = torch_ways(network, dims, axes, mode)
                seconds[mode] = time.time() - start
            pipe.send("ready")
            pipe.recv()
            pipe.send(measure(name, path, axes, ways, options, folder) | {"seconds": seconds, "compiled": compiled})
        except Exception as error:  # the others are still worth measuring
            pipe.send(str(error)[-1500:] or repr(error))


def measure(name, path, axes, ways, options, folder):
    samples = {}
    for _ in range(options.rounds):
        for kernels in ("auto", "off"):
            for sizes, us in sylvite_times(path, axes, kernels, folder, options)[0].items():
                samples.setdefault((kernels, sizes), []).append(us)
        for mode, by_sizes in ways.items():
            for sizes, way in by_sizes.items():
                time_once(lambda: call(way), CALLS)
                samples.setdefault((mode, sizes), []).append(statistics.median(time_once(lambda: call(way), CALLS) for _ in range(7)))
    return {"name": name, "axes": axes, "us": {key: statistics.median(times) for key, times in samples.items()}}


def geometric(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def print_row(row, options):
    """Ranges over fixed sizes, and torch's best mode over ranges, at each of the sizes."""
    costs, ratios = [], []
    made = ", ".join(f"{side} {seconds:.0f} s" for side, seconds in row["seconds"].items())
    print(f"{row['name']}: ready and run at all sizes: {made}; kernels: {row['compiled']['auto']} beside {row['compiled']['off']}", flush=True)
    for sizes in all_sizes(row["axes"]):
        ours, fixed = row["us"][("auto", sizes)], row["us"][("off", sizes)]
        theirs = {mode: row["us"][(mode, sizes)] for mode in options.torch}
        costs.append(ours / fixed)
        text = f"  {'x'.join(map(str, sizes)):<9} ranges {ours:8.1f} us  fixed {fixed:8.1f}  {costs[-1]:.3f}"
        if theirs:
            ratios.append(min(theirs.values()) / ours)
            text += "  " + "  ".join(f"{mode} {us:8.1f} us" for mode, us in theirs.items()) + f"  ratio {ratios[-1]:.2f}"
        print(text, flush=True)
    print(f"  {row['name']}: over fixed {geometric(costs):.3f}, most {max(costs):.3f}"
          + (f"; torch's over ours {geometric(ratios):.2f}, least {min(ratios):.2f}" if ratios else ""), flush=True)
    return costs, ratios


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sylvite", nargs="+")
    parser.add_argument("--only", default="roberta,gpt2,vit_b_16,resnet50,mobilenet_v2,efficientnet_b0")
    parser.add_argument("--batches", default="1,3,13,32")
    parser.add_argument("--torch", default="default,reduce-overhead")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--patience", type=float, default=1e9, help="seconds after which those that are not prepared are left out")
    options = parser.parse_args()
    options.batches = [int(batch) for batch in options.batches.split(",")]
    options.torch = [mode for mode in options.torch.split(",") if mode]
    names, costs, ratios = options.only.split(","), [], []
    for first in range(0, len(names), options.jobs):
        for name, result in race_all(names[first:first + options.jobs], options, race):
            if isinstance(result, str):
                print(f"FAILED {name}: {result}", flush=True)
            else:
                more_costs, more_ratios = print_row(result, options)
                costs, ratios = costs + more_costs, ratios + more_ratios
    if costs:
        print(f"over fixed: geometric mean {geometric(costs):.3f}, most {max(costs):.3f}")
    if ratios:
        print(f"torch's over ours: geometric mean {geometric(ratios):.3f}, least {min(ratios):.3f}")


if __name__ == "__main__":
    main()
