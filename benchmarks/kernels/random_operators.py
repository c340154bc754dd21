#!/usr/bin/env python3
"""Random operators of odd sizes alone, beside ONNX Runtime: what nobody chose finds cliffs that chosen cases do not.

A row for each operator that disagrees, fails, or is slower than --below; at the end, for each kind, the geometric mean of the ratios and
how many are below 0.9. The rest is as with operators.py. Needs sylvite on PYTHONPATH, numpy, onnx and onnxruntime.
"""
import argparse
import json
import math
import random
import statistics
import time

import numpy as np

import operators
from operator_cases import b, c, case, f, n, w

EXTENTS = [1, 2, 3, 4, 5, 7, 8, 12, 16, 20, 31, 32, 49, 64, 77, 96, 100, 128, 196, 256, 300, 500, 768, 1000]
CHANNELS = [1, 2, 3, 4, 6, 8, 10, 12, 16, 18, 20, 24, 30, 36, 40, 48, 64, 80, 96, 100, 112, 128, 160, 192, 240, 256, 320, 384, 512]
SIDES = {1: [50, 400, 1000, 4000], 2: [7, 13, 14, 20, 28, 33, 40, 56, 64, 80, 112, 160], 3: [4, 6, 8, 12, 16]}


class Draws:
    """Cases by kind. A method gives None where what it drew is too small, too large, or no operator."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def one_of(self, *values):
        return self.random.choice(values)

    def shape(self):
        while True:
            dims = [self.random.choice(EXTENTS) for _ in range(self.one_of(2, 3, 3, 4, 4))]
            if 3000 < math.prod(dims) < 300_000:
                return dims, self.random.randrange(len(dims))

    def convolution(self):
        rank, channels, filters = self.one_of(1, 2, 2, 2, 3), self.random.choice(CHANNELS), self.random.choice(CHANNELS)
        divisors = [g for g in (2, 3, 4, 8, 16, 32) if channels % g == 0] or [1]
        groups = self.one_of(1, 1, channels, self.random.choice(divisors))
        filters = -(-filters // groups) * groups if groups < channels else channels
        sides = [self.random.choice(SIDES[rank])] * rank
        kernel = [min(self.one_of(1, 2, 3, 3, 3, 4, 5, 7), 7 if rank < 3 else 3) for _ in sides]
        kernel = kernel if self.random.random() < 0.25 else [kernel[0]] * rank
        stride, dilation, batch = self.one_of(1, 1, 1, 2, 2, 3), self.one_of(1, 1, 1, 1, 2, 3), self.one_of(1, 1, 1, 2, 4)
        pads = [(k - 1) * dilation // 2 * self.one_of(0, 1, 1, 1) for k in kernel]
        work = batch * filters * channels // groups * math.prod(kernel) * math.prod(sides) / stride**rank
        if any(s + 2 * p <= (k - 1) * dilation for s, p, k in zip(sides, pads, kernel)) or not 1e5 < work < 7e8:
            return None
        return case("Conv", [f(batch, channels, *sides), w(filters, channels // groups, *kernel), w(filters)],
                    f"{batch}x{channels}x{sides} to {filters} by {kernel}, strides {stride}, dilations {dilation}, groups {groups}",
                    strides=[stride] * rank, dilations=[dilation] * rank, pads=pads * 2, group=groups)

    def transposed(self):
        rank, channels, filters = self.one_of(1, 2, 2, 3), self.one_of(8, 16, 48, 64, 100, 128, 256), self.one_of(1, 3, 8, 16, 32, 64)
        side, groups = self.random.choice(SIDES[rank][:4]), self.one_of(1, 1, 1, 2)
        kernel, stride = self.one_of((2, 2), (3, 2), (4, 2), (3, 1), (4, 4), (3, 3), (8, 4)) if rank < 3 else self.one_of((2, 2), (3, 2), (3, 3))
        if channels * filters * kernel**rank * side**rank > 5e8:
            return None
        return case("ConvTranspose", [f(1, channels, *[side] * rank), w(channels, filters, *[kernel] * rank), w(filters * groups)],
                    f"{channels}x{[side] * rank} to {filters * groups} by {kernel}, strides {stride}, groups {groups}", strides=[stride] * rank,
                    pads=[max(kernel - stride, 0) // 2] * (2 * rank), group=groups)

    def product(self):
        rows, depth, columns = (self.random.choice(EXTENTS) for _ in range(3))
        ahead = self.one_of((), (), (3,), (12,), (2, 4))
        if not 1e4 < rows * depth * columns * math.prod(ahead) < 3e8:
            return None
        right = self.one_of(w(depth, columns), f(*ahead, depth, columns, salt=1))
        return case("MatMul", [f(*ahead, rows, depth), right], f"{ahead} {rows}x{depth}x{columns}{' constant' * right.is_constant}")

    def reduction(self):
        dims, _ = self.shape()
        axes = sorted(self.random.sample(range(len(dims)), self.random.randint(1, len(dims) - 1)))
        return case(self.one_of("ReduceSum", "ReduceMean", "ReduceMax", "ReduceL2", "ReduceLogSumExp", "ReduceMin"), [f(*dims), c(axes)],
                    f"{dims} over {axes}")

    def along_axis(self):
        dims, axis = self.shape()
        name = self.one_of("Softmax", "LogSoftmax", "Hardmax", "ArgMax", "ArgMin", "CumSum")
        if name == "CumSum":
            return case(name, [f(*dims), c(axis)], f"{dims} along {axis}")
        return case(name, [f(*dims)], f"{dims} along {axis}", axis=axis)

    def first_k(self):
        dims, axis = self.shape()
        k = min(dims[axis], self.one_of(1, 3, 5, 10, 50))
        return case("TopK", [f(*dims), c([k])], f"{k} of {dims} along {axis}", axis=axis, kept=(0, 1))

    def norm(self):
        dims, axis = self.shape()
        if len(dims) > 2 and self.random.random() < 0.5:
            return case("InstanceNormalization", [f(*dims), w(dims[1]), w(dims[1])], str(dims))
        first = self.one_of(-1, -2)
        if len(dims) + first < 1:
            return case("LpNormalization", [f(*dims)], f"{dims} along {axis}", axis=axis)
        return case("LayerNormalization", [f(*dims), w(*dims[first:]), w(*dims[first:])], f"{dims} from {first}", axis=first)

    def pooling(self):
        rank = self.one_of(1, 2, 2, 3)
        kernel = self.one_of(2, 2, 3, 3, 5, 7) if rank < 3 else self.one_of(2, 3)
        stride, pad = self.one_of(1, 2, kernel), self.one_of(0, kernel // 2)
        dims = [1, self.one_of(3, 16, 30, 64, 100), *(self.random.choice(SIDES[rank][1:8]) for _ in range(rank))]
        return case(self.one_of("MaxPool", "AveragePool"), [f(*dims)], f"{dims} by {kernel}, strides {stride}, pads {pad}",
                    kernel_shape=[kernel] * rank, strides=[stride] * rank, pads=[pad] * (2 * rank))

    def move(self):
        dims, axis = self.shape()
        name = self.one_of("Transpose", "Concat", "Slice", "Gather", "Tile", "Pad", "Expand", "Where")
        if name == "Transpose":
            perm = self.random.sample(range(len(dims)), len(dims))
            return case(name, [f(*dims)], f"{dims} {perm}", perm=perm)
        if name == "Concat":
            other = [*dims[:axis], self.one_of(1, 3, dims[axis]), *dims[axis + 1:]]
            return case(name, [f(*dims), f(*other, salt=1)], f"{dims} {other} along {axis}", axis=axis)
        if name == "Slice":
            step = self.one_of(1, 2, -1)
            ends = (dims[axis] - 1, -(2**31)) if step < 0 else (dims[axis] // 4, dims[axis])
            return case(name, [f(*dims), c([ends[0]]), c([ends[1]]), c([axis]), c([step])], f"{dims} along {axis} by {step}")
        if name == "Gather":
            count = self.one_of(1, 5, dims[axis])
            return case(name, [f(*dims), n(count, high=dims[axis])], f"{count} of {dims} along {axis}", axis=axis)
        if name == "Pad":
            pads, mode = [min(self.one_of(0, 0, 1, 3), extent - 1) for extent in dims] * 2, self.one_of("constant", "reflect", "edge", "wrap")
            return case(name, [f(*dims), c(pads)], f"{dims} {pads} {mode}", mode=mode)
        one = [*dims[:axis], 1, *dims[axis + 1:]]
        if name == "Expand":
            return case(name, [f(*one), c(dims)], f"{one} to {dims}")
        if name == "Tile":
            return case(name, [f(*dims), c([1 + (d == axis) for d in range(len(dims))])], f"{dims} along {axis}")
        return case(name, [b(*dims), f(*dims), f(*one, salt=1)], f"{dims} {one}")

    KINDS = {"convolution": 10, "transposed": 3, "product": 4, "reduction": 5, "along_axis": 4, "first_k": 2, "norm": 4, "pooling": 3, "move": 9}

    def next(self, only):
        while True:
            kind = self.random.choices(only, [self.KINDS[name] for name in only])[0]
            drawn = getattr(self, kind)()
            if drawn is not None:
                return kind, drawn


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--only", nargs="+", choices=list(Draws.KINDS), default=list(Draws.KINDS))
    parser.add_argument("--below", type=float, default=0.8)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.05, help="of each turn")
    parser.add_argument("--tolerance", type=float, default=1e-3, help="of the largest magnitude of an output")
    parser.add_argument("--json", help="rows are appended to this file, a line each")
    options = parser.parse_args()
    draws, ratios = Draws(options.seed), {}
    end = time.monotonic() + 60 * options.minutes
    print("| case | us | ONNX Runtime, us | ratio | difference | kernels | host steps | |\n|---|---|---|---|---|---|---|---|")
    while time.monotonic() < end:
        kind, drawn = draws.next(options.only)
        row = operators.measure(drawn, options)
        if "ratio" in row:
            ratios.setdefault(kind, []).append(row["ratio"])
        if options.json:
            with open(options.json, "a", encoding="utf-8") as file:
                file.write(json.dumps(row | {"kind": kind}) + "\n")
        if operators.is_bad(row, options.tolerance) or row.get("ratio", math.inf) < options.below:
            operators.print_row(row)
    print("\n| kind | cases | geometric mean | below 0.9 |\n|---|---|---|---|")
    for kind, of_kind in sorted(ratios.items()):
        print(f"| {kind} | {len(of_kind)} | {statistics.geometric_mean(of_kind):.2f} | {int(np.sum(np.array(of_kind) < 0.9))} |")


if __name__ == "__main__":
    main()
