#!/usr/bin/env python3
"""Compare ONNX Runtime with the outputs that graph_fuzz --save wrote.

usage: compare_onnxruntime.py CASES_FOLDER

Each element may differ by what allowed_N.npy says. Counted apart: models that ONNX Runtime does not take, by reason, and
differences in models that are given NaN, because ONNX leaves open what the largest of numbers and NaN is (here NaN, as in
NumPy; ONNX Runtime answers differently from operator to operator). Exit status 1 when any other output differs. Needs
numpy, onnx and onnxruntime.
"""
import argparse
import collections
import glob
import os
import sys

import numpy as np
import onnx
import onnx.numpy_helper
import onnxruntime


def run_onnxruntime(folder):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(f"{folder}/model.onnx", options, providers=["CPUExecutionProvider"])
    feeds = {value.name: np.load(f"{folder}/input_{i}.npy") for i, value in enumerate(session.get_inputs())}
    return session.run(None, feeds)


def difference(folder, actual):
    """"" when all elements agree."""
    for k, output in enumerate(actual):
        expected = np.load(f"{folder}/output_{k}.npy")
        allowed = np.load(f"{folder}/allowed_{k}.npy")
        if output.shape != expected.shape or output.dtype != expected.dtype:
            return f"output {k} is {output.dtype}{list(output.shape)}, expected {expected.dtype}{list(expected.shape)}"
        got, want = output.astype(np.float64), expected.astype(np.float64)
        with np.errstate(invalid="ignore"):
            is_fine = (got == want) | (np.isnan(got) & np.isnan(want)) | np.isinf(allowed) | (np.abs(got - want) <= allowed)
        if not is_fine.all():
            at = np.argmax(~is_fine.ravel())
            return (f"output {k} {output.dtype}{list(output.shape)} element {at}: onnxruntime {got.ravel()[at]:.9g}, "
                    f"expected {want.ravel()[at]:.9g} +- {allowed.ravel()[at]:.3g}; {np.sum(~is_fine)} of {is_fine.size}")
    return ""


def is_given_nan(folder):
    tensors = [np.load(path) for path in glob.glob(f"{folder}/input_*.npy")]
    tensors += [onnx.numpy_helper.to_array(weight) for weight in onnx.load(f"{folder}/model.onnx").graph.initializer]
    return any(np.isnan(tensor).any() for tensor in tensors if tensor.dtype.kind == "f")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases")
    options = parser.parse_args()
    counts, refused = collections.Counter(), collections.Counter()
    folders = sorted(glob.glob(os.path.join(options.cases, "*")), key=lambda path: (len(path), path))
    for folder in folders:
        if not os.path.exists(f"{folder}/output_0.npy"):
            counts["failed here"] += 1
            continue
        try:
            actual = run_onnxruntime(folder)
        except Exception as error:  # whatever the runtime throws: it does not take the model
            counts["refused"] += 1
            text = str(error).split(" : ")[-1].split("Status Message:")[-1].strip().splitlines()[0]
            refused[text.split("(node:")[-1][:150] if "NOT_IMPLEMENTED" not in str(error) else text[:60]] += 1
            continue
        text = difference(folder, actual)
        kind = "agrees" if not text else "differs at NaN" if is_given_nan(folder) else "differs"
        counts[kind] += 1
        if text:
            print(f"{kind}  {folder}: {text}", flush=True)
    for reason, count in refused.most_common():
        print(f"refused  {count:5} {reason}")
    print("  ".join(f"{kind} {count}" for kind, count in sorted(counts.items())))
    sys.exit(1 if counts["differs"] else 0)


if __name__ == "__main__":
    main()
