#!/usr/bin/env python3
"""Models on a GPU beside torch.compile: times, errors against f32, compile times and device memory, in one run.

usage: cuda_models.py SYLVITE... --models FOLDER [--only NAME,...] [--batch 32] [--precision bf16|tf32|f32] [--json FILE]
SYLVITE is the command (several words: a bundle's `run sylvite`). FOLDER holds NAME.onnx with weights. Sylvite's time is
that of a CUDA graph, inputs on the device; torch's that of calls, inputs on the device. Every round measures Sylvite's
modes, then torch's; a figure is the median over rounds. torch's memory includes what its compiler used, and is only right in
a run with no other of its modes. Needs torch, onnx and numpy.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import torch
from cuda_timing import error_of, time_once

sys.path[1:1] = [str(pathlib.Path(__file__).parents[1] / folder) for folder in ("models", "shared")]
import torch_models
from onnx_batch import rewrite

CALLS = 30  # of torch in a sample
# eager-published: eager, of the module as torch_models.py has it `as_published`
TORCH_MODES = ["eager", "default", "reduce-overhead", "max-autotune", "eager-published"]


class Sylvite:
    """One model; every call is a process of its own, over one folder of caches."""

    def __init__(self, command, model, folder, options):
        self.command, self.model, self.folder = command, model, folder
        settings = [word for setting in options.settings for word in ("--set", setting)]
        self.common = ["--device", "cuda", "--precision", options.precision, "--progress", "none", *settings]
        self.options = options

    def caches(self, mode):
        folder = os.path.join(self.folder, mode)
        return ["--mode", mode, "--db", f"{folder}.db", "--cache-dir", folder, "--budget", f"{self.options.budget}s"]

    def bench(self, mode, profile=False, shown=True):
        """The report, with the time of the whole process; with a profile, kernel by kernel and, if shown, printed."""
        report = os.path.join(self.folder, "report.json")
        words = [] if profile else ["--no-profile"]
        start = time.time()
        done = subprocess.run([*self.command, "bench", self.model, *self.common, *self.caches(mode), *words, "--warmup", "0s",
                               "--duration", "0s", "--json", report], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{mode}: {done.stderr[-2000:]}")
        if profile and shown:
            print(done.stdout, done.stderr, flush=True)
        with open(report) as file:
            return {**json.load(file), "process_seconds": time.time() - start}

    def outputs(self, mode, input_name, tensor):
        given = os.path.join(self.folder, "in.npy")
        bits = tensor.cpu()
        array = bits.view(torch.int16).numpy().view("V2") if bits.dtype == torch.bfloat16 else bits.numpy()
        np.save(given, array)
        out = os.path.join(self.folder, "out")
        subprocess.run([*self.command, "run", self.model, *self.common, *self.caches(mode), "--input",
                        f"{input_name}={given}", "--output-dir", out], check=True, stdout=subprocess.DEVNULL)
        result = np.load(os.path.join(out, "0.npy"))
        if result.dtype.kind == "V":
            return torch.from_numpy(result.view(np.int16)).view(torch.bfloat16)
        return torch.from_numpy(result)


def draw_input(value, seed):
    torch.manual_seed(seed)
    dims = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
    if value.type.tensor_type.elem_type == onnx.TensorProto.INT64:
        return torch.randint(0, 1000, dims, device="cuda")
    return torch.randn(dims, device="cuda")


def error_over(outputs, references):
    """Of all inputs together; both lie on the host."""
    return error_of(torch.stack(outputs).cuda(), torch.stack(references).cuda())


def torch_way(model, mode, inputs):
    """A compiled model that has run, what its first call took, its outputs, and the memory it holds."""
    x = inputs[0]
    torch._dynamo.reset()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    own = x.nbytes + sum(t.nbytes for t in [*model.parameters(), *model.buffers()])
    others = torch.cuda.memory_allocated() - own
    start = time.time()
    with torch.inference_mode():
        call = model if mode == "eager" else torch.compile(model, mode=mode)
        for _ in range(4):
            call(x)
        torch.cuda.synchronize()
        seconds = time.time() - start
        peak = torch.cuda.max_memory_allocated() - others
        outputs = [call(each).cpu() for each in inputs]

    def run():
        with torch.inference_mode():
            for _ in range(CALLS):
                call(x)

    return {"run": run, "compile_seconds": seconds, "outputs": outputs, "bytes": peak}


def race(path, name, options, folder):
    bf16 = options.precision == "bf16"
    start = time.time()
    onnx_path = rewrite(path, folder, options.batch, bf16)
    reference_model = torch_models.load(name, onnx_path)
    value = onnx.load(onnx_path, load_external_data=False).graph.input[0]
    inputs = [draw_input(value, seed) for seed in range(options.seeds)]
    given = [x.bfloat16() if bf16 and x.dtype != torch.int64 else x for x in inputs]
    with torch.inference_mode():
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        reference_model.cuda()
        references = [reference_model(x).float().cpu() for x in inputs]
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = options.precision == "tf32"
    print(f"{name}: models and reference ready in {time.time() - start:.1f} s", flush=True)
    ours = Sylvite(options.sylvite, onnx_path, folder, options)
    row = {"model": name, "batch": options.batch, "precision": options.precision, "us": {}, "error": {}, "cold_seconds": {},
           "warm_seconds": {}, "bytes": {}}
    for mode in options.modes:
        report = ours.bench(mode)
        row["cold_seconds"][mode] = report["seconds"]["ready"]
        print(f"  sylvite {mode}: cold {report['seconds']}, process {report['process_seconds']:.1f} s", flush=True)
        row["error"][mode] = error_over([ours.outputs(mode, value.name, x) for x in given], references)
        report = ours.bench(mode, profile=options.profile)
        row["warm_seconds"][mode] = report["seconds"]["ready"]
        row["bytes"][mode] = report["peak_bytes"]
    model = reference_model.bfloat16() if bf16 else reference_model
    fastest = given
    if given[0].dim() == 4:  # what torch is fastest with
        fastest = [x.contiguous(memory_format=torch.channels_last) for x in given]
    ways = {}
    for mode in options.torch:
        if mode == "eager-published":
            other = torch_models.load(name, onnx_path, as_published=True).cuda()
            way = torch_way(other.bfloat16() if bf16 else other, "eager", given)
        else:
            way = torch_way(model, mode, fastest)
        ways["torch " + mode] = way["run"]
        row["cold_seconds"]["torch " + mode] = way["compile_seconds"]
        row["error"]["torch " + mode] = error_over(way["outputs"], references)
        row["bytes"]["torch " + mode] = way["bytes"]
        print(f"  torch {mode}: cold {way['compile_seconds']:.1f} s", flush=True)
    rounds = {mode: [] for mode in [*options.modes, *ways]}
    for _ in range(options.rounds):
        for mode in options.modes:
            rounds[mode].append(ours.bench(mode)["device_us"]["median"])
        for mode, run in ways.items():
            time_once(run, CALLS)
            rounds[mode].append(statistics.median(time_once(run, CALLS) for _ in range(9)))
    row["rounds_us"] = rounds
    row["us"] = {mode: statistics.median(times) for mode, times in rounds.items()}
    return row


def print_row(row):
    for mode, us in row["us"].items():
        print(f"RESULT {row['model']:<11} {row['precision']} b{row['batch']:<3} {mode:<22} {us / 1e3:8.3f} ms  error {row['error'][mode]:.2e}"
              f"  cold {row['cold_seconds'][mode]:6.1f} s  {row['bytes'][mode] / 1e6:7.0f} MB", flush=True)
    theirs = [us for mode, us in row["us"].items() if mode.startswith("torch")]
    if theirs:
        ours = min(us for mode, us in row["us"].items() if not mode.startswith("torch"))
        eager = [f"{mode[6:]} {us / ours:.2f}" for mode, us in row["us"].items() if mode.startswith("torch eager")]
        print(f"RATIO {row['model']} best of torch {min(theirs) / ours:.3f}", *eager, flush=True)


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sylvite", nargs="+")
    parser.add_argument("--models", required=True)
    parser.add_argument("--only", default=",".join(torch_models.MODELS))
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--precision", default="bf16")
    parser.add_argument("--modes", default="reduce-overhead,max-autotune", help="Sylvite's")
    parser.add_argument("--torch", default=",".join(TORCH_MODES), help="torch's modes; none: empty")
    parser.add_argument("--set", action="append", default=[], dest="settings", metavar="KEY=VALUE")
    parser.add_argument("--seeds", type=int, default=2, help="inputs over which errors are taken")
    parser.add_argument("--budget", type=int, default=45)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--profile", action="store_true", help="print Sylvite's time kernel by kernel")
    parser.add_argument("--json")
    options = parser.parse_args()
    options.modes = [mode for mode in options.modes.split(",") if mode]
    options.torch = [mode for mode in options.torch.split(",") if mode]
    return options


def main():
    options = parse_options()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}", flush=True)
    rows = []
    for name in options.only.split(","):
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            try:
                rows.append(race(os.path.join(options.models, name + ".onnx"), name, options, folder))
                print_row(rows[-1])
            except Exception as error:  # the others are still worth measuring
                print(f"FAILED {name}: {error}", flush=True)
        torch._dynamo.reset()
        torch.cuda.empty_cache()
    for row in rows:
        print_row(row)
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
