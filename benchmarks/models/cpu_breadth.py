#!/usr/bin/env python3
"""The networks of networks.py on a CPU beside ONNX Runtime and OpenVINO, nothing tuned: a row each, with the kernels that
take more than a fiftieth of the time and are below half of what the machine can do (docs/command.md says what that is).

Times are those of compare_peers.py, turn by turn. Models are exported into --models once. With --json FILE, networks that
FILE has are not run again: call with --most 4, say, until all are there; every call prints the whole table at its end.
Needs what networks.py and compare_peers.py need, and torchvision, timm and transformers.
"""
import argparse
import json
import multiprocessing
import os
import pathlib
import statistics
import sys

import compare_peers

sys.path[1:1] = [str(pathlib.Path(__file__).parents[1] / folder) for folder in ("kernels", "networks")]
import roofline

LEAST_SHARE = 0.02  # of a model's time
FAR = 0.5  # of what the machine can do


def export(name, folder):
    """In a process of its own, which takes torch's threads and memory with it."""
    import networks

    network, dims = networks.make(name)
    networks.export(network, dims, 1, folder, name)


def in_process(call, *arguments):
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(call, arguments)


def far_kernels(path, options):
    """Kernels below half of the machine's limit, most time lost first."""
    asked = argparse.Namespace(sylvite=options.sylvite, model=path, mode=options.mode, threads=options.threads,
                               precision=options.precision)
    rows = roofline.kernel_rows(roofline.explain(asked))
    total = sum(row["us"] * row["launches"] for row in rows)
    kept = ("kernel", "class", "name", "space", "launches", "us", "bound", "bound_us", "operations", "bytes", "share")
    far = [{**{key: row[key] for key in kept if key in row}, "of_model": row["us"] * row["launches"] / total,
            "lost_ms": (row["us"] - row["bound_us"]) * row["launches"] / 1e3}
           for row in rows if row["share"] < FAR and row["us"] * row["launches"] > LEAST_SHARE * total]
    return sorted(far, key=lambda row: -row["lost_ms"])


def measure(number, name, options):
    path = os.path.join(options.models, name + ".onnx")
    if not os.path.exists(path):
        in_process(export, name, options.models)
    case = {"model": name, "path": path, "threads": options.threads, "precision": options.precision, "mode": options.mode}
    row = in_process(compare_peers.measure, number, case, options)
    return {**row, "kernels": far_kernels(path, options)}


def print_kernels(row, most):
    for kernel in row["kernels"][:most]:
        rate = kernel["operations"] / kernel["us"] * 1e-3
        print(f"    {kernel['of_model']:6.1%} of the time, {kernel['share']:.2f} of its limit ({kernel['bound']}), "
              f"{kernel['launches']} x {kernel['us']:.0f} us, {rate:.1f} GFLOP/s, "
              f"{kernel['bytes'] / kernel['us'] * 1e-3:.1f} GB/s  {kernel['class']} {kernel['kernel']} {kernel['name']}")


def print_table(rows, families, most):
    for row in sorted(rows, key=lambda row: row["ratio"]):
        times = "  ".join(f"{name} {ms:.2f}" for name, ms in row["ms"].items())
        print(f"{row['ratio']:5.2f}  {row['model']:<18}{families[row['model']]:<20} ms: {times}  "
              f"error {row['error']['sylvite']['norm']:.1e}")
        print_kernels(row, most)
    ratios = [row["ratio"] for row in rows]
    print(f"geometric mean of {len(ratios)} ratios {statistics.geometric_mean(ratios):.3f}, least {min(ratios):.2f}")


def parse_options(known):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sylvite", help="the command")
    parser.add_argument("--models", required=True, metavar="FOLDER", help="where the exported models are kept")
    parser.add_argument("--only", default=",".join(known), help="names, separated by commas")
    parser.add_argument("--most", type=int, default=len(known), help="networks to run in this call")
    parser.add_argument("--kernels", type=int, default=4, help="shown of each network")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--precision", default="f32")
    parser.add_argument("--mode", default="default")
    parser.add_argument("--set", action="append", default=[], dest="settings", metavar="KEY=VALUE")
    parser.add_argument("--peers", default="onnxruntime,openvino")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3, help="of each turn (default: 0.3)")
    parser.add_argument("--inputs", type=int, default=1, help="drawn for the errors")
    parser.add_argument("--json", help="where rows are kept from call to call")
    options = parser.parse_args()
    options.peers = compare_peers.installed(options.peers.split(","))
    return options


def main():
    families = in_process(known_families)
    options = parse_options(families)
    os.makedirs(options.models, exist_ok=True)
    kept = {"machine": compare_peers.machine_name(), "rows": []}
    if options.json and os.path.exists(options.json):
        with open(options.json) as file:
            kept = json.load(file)
    there = {row["model"] for row in kept["rows"]}
    for name in [name for name in options.only.split(",") if name not in there][:options.most]:
        try:
            kept["rows"].append(measure(0, name, options))
        except Exception as error:  # the others are still worth measuring
            print(f"FAILED {name}: {str(error)[-1500:]}", flush=True)
            continue
        print(f"measured {name}: {kept['rows'][-1]['ratio']:.2f}", flush=True)
        if options.json:
            with open(options.json, "w") as file:
                json.dump(kept, file, indent=1)
    if kept["rows"]:
        print_table(kept["rows"], families, options.kernels)


def known_families():
    import networks

    return {name: network.family for name, network in networks.NETWORKS.items()}


if __name__ == "__main__":
    main()
