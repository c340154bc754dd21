#!/usr/bin/env python3
"""Memory-bound kernels on a GPU beside torch.compile in max-autotune mode, in one run.

usage: cuda_memory_bound.py SYLVITE... [--only NAME] [--budget SECONDS] [--rows N] [--columns N]
SYLVITE is the command (several words: a bundle's `run sylvite`). Needs torch, onnx and numpy. Both sides are timed
on the device with inputs in place; bandwidth counts each operand once. Outputs in f32 are compared.
"""
import argparse
import json
import math
import os
import subprocess
import tempfile

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper

F = torch.nn.functional
TYPES = {"f32": (torch.float32, TensorProto.FLOAT), "bf16": (torch.bfloat16, TensorProto.BFLOAT16)}

# name: (operands as "m" matrix or "v" vector, output dims, ONNX nodes, torch function)
CASES = {
    "softmax": ("m", "RC", [("Softmax", ["a"], {"axis": 1})], lambda a: F.softmax(a, 1)),
    "layer_norm": ("mvv", "RC", [("LayerNormalization", ["a", "b", "c"], {"axis": 1})],
                   lambda a, b, c: F.layer_norm(a, a.shape[1:], b, c)),
    "rms_norm": ("mv", "RC", [("RMSNormalization", ["a", "b"], {"axis": 1})],
                 lambda a, b: F.rms_norm(a, a.shape[1:], b, 1e-5)),
    "bias_gelu_residual": ("mvm", "RC", [("Add", ["a", "b"], {}), ("Gelu", ["0"], {}), ("Add", ["1", "c"], {})],
                           lambda a, b, c: F.gelu(a + b) + c),
    "row_sum": ("m", "R", [("ReduceSum", ["a", "axis1"], {"keepdims": 0})], lambda a: a.sum(1)),
    "column_sum": ("m", "C", [("ReduceSum", ["a", "axis0"], {"keepdims": 0})], lambda a: a.sum(0)),
    "transpose": ("m", "CR", [("Transpose", ["a"], {"perm": [1, 0]})], lambda a: a.t().contiguous()),
}


def make_model(name, dtype, rows, columns, path):
    kinds, out, nodes, _ = CASES[name]
    sizes = {"R": rows, "C": columns}
    inputs = [helper.make_tensor_value_info("abc"[i], TYPES[dtype][1], [rows, columns] if kind == "m" else [columns])
              for i, kind in enumerate(kinds)]
    made = [helper.make_node(op, operands, ["out" if i == len(nodes) - 1 else str(i)], **attributes)
            for i, (op, operands, attributes) in enumerate(nodes)]
    axes = [helper.make_tensor(f"axis{i}", TensorProto.INT64, [1], [i]) for i in (0, 1)]
    output = helper.make_tensor_value_info("out", TYPES[dtype][1], [sizes[c] for c in out])
    graph = helper.make_graph(made, name, inputs, [output], initializer=axes)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10), path)


def torch_us(function, inputs):
    for _ in range(5):
        function(*inputs)
    times = []
    for _ in range(15):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(20):
            function(*inputs)
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1e3 / 20)
    return sorted(times)[len(times) // 2]


def sylvite_us(command, model, folder, budget, inputs):
    report = os.path.join(folder, "report.json")
    common = ["--device", "cuda", "--mode", "max-autotune", "--budget", f"{budget}s", "--db",
              os.path.join(folder, "trials.db"), "--cache-dir", os.path.join(folder, "objects")]
    subprocess.run([*command, "bench", model, *common, "--no-profile", "--warmup", "0s", "--duration", "0s", "--json", report,
                    "--progress", "none"], check=True, stdout=subprocess.DEVNULL)
    with open(report) as file:
        us = json.load(file)["device_us"]["median"]
    if inputs is None:
        return us, None
    out = os.path.join(folder, "out")
    given = []
    for name, tensor in zip("abc", inputs):
        np.save(os.path.join(folder, f"{name}.npy"), tensor.cpu().numpy())
        given += ["--input", f"{name}={folder}/{name}.npy"]
    subprocess.run([*command, "run", model, *common, *given, "--output-dir", out], check=True,
                   stdout=subprocess.DEVNULL)
    return us, np.load(os.path.join(out, os.listdir(out)[0]))


def copy_bandwidth():
    source = torch.empty(1 << 30, dtype=torch.float32, device="cuda").normal_()
    target = torch.empty_like(source)
    us = torch_us(lambda: target.copy_(source), [])
    return 2 * source.numel() * 4 / us / 1e6


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("sylvite", nargs="+")
    parser.add_argument("--only", default="")
    parser.add_argument("--budget", type=int, default=12)
    parser.add_argument("--rows", type=int, default=16384)
    parser.add_argument("--columns", type=int, default=4096)
    options = parser.parse_args()
    rows, columns = options.rows, options.columns
    limit = copy_bandwidth()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, copy {limit:.2f} TB/s")
    print(f"{'case':26} {'torch us':>9} {'TB/s':>6} {'sylvite us':>10} {'TB/s':>6} {'ratio':>6} {'error':>9}")
    ratios, shares = [], []
    for name, (kinds, out, _, function) in CASES.items():
        for dtype in TYPES:
            if options.only and options.only not in f"{name} {dtype}":
                continue
            torch._dynamo.reset()
            torch.manual_seed(0)
            inputs = [torch.randn((rows, columns) if kind == "m" else (columns,), device="cuda",
                                  dtype=TYPES[dtype][0]) for kind in kinds]
            compiled = torch.compile(function, mode="max-autotune-no-cudagraphs")
            theirs = torch_us(compiled, inputs)
            expected = compiled(*inputs).float().cpu().numpy()
            elements = sum(t.numel() for t in inputs) + expected.size
            traffic = elements * inputs[0].element_size()
            with tempfile.TemporaryDirectory() as folder:
                model = os.path.join(folder, "model.onnx")
                make_model(name, dtype, rows, columns, model)
                try:
                    ours, actual = sylvite_us(options.sylvite, model, folder, options.budget,
                                              inputs if dtype == "f32" else None)
                except subprocess.CalledProcessError as error:
                    print(f"{name + ' ' + dtype:26} failed: {error}", flush=True)
                    continue
            error = "" if actual is None else f"{np.abs(actual - expected).max() / np.abs(expected).max():.1e}"
            ratios.append(theirs / ours)
            shares.append(traffic / ours / 1e6 / limit)
            print(f"{name + ' ' + dtype:26} {theirs:9.1f} {traffic / theirs / 1e6:6.2f} {ours:10.1f} "
                  f"{traffic / ours / 1e6:6.2f} {ratios[-1]:6.3f} {error:>9}", flush=True)
    if ratios:
        mean = lambda values: math.exp(sum(map(math.log, values)) / len(values))
        print(f"geometric mean: {mean(ratios):.3f} of torch's speed, {mean(shares):.3f} of the copy bandwidth")


if __name__ == "__main__":
    main()
