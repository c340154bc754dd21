"""Runs models that work their shapes out from sizes that are open, in the ways of several exporters, and compares them with
the onnx package's evaluator at several sizes.

usage: size_chains.py SYLVITE_COMMAND WORK_FOLDER

The models are texts of text_models.py.
"""

import json
import pathlib
import shutil
import sys

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from run_model import run_model
from text_models import made_model

# torch.onnx of TorchScript: Shape, Gather, Unsqueeze, Concat, Reshape; Expand by Where; a slice of the positions.
TORCH_SCRIPT = """
text (int64[batch, sequence] ids, int64[batch, sequence] mask) => (float[batch, sequence, 16] y) {
  shape = Shape(ids)
  b = Gather <axis = 0> (shape, n0)
  s = Gather <axis = 0> (shape, n1)
  b1 = Unsqueeze(b, l0)
  s1 = Unsqueeze(s, l0)
  all_places = Constant <value = int64[1, 40] {0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,
                         30,31,32,33,34,35,36,37,38,39}> ()
  places = Slice(all_places, l0, s1, l1, l1)
  words = Gather <axis = 0> (w50x16, ids)
  rows = Gather <axis = 0> (w40x16, places)
  x = Add(words, rows)
  m1 = Unsqueeze(mask, l1)
  m2 = Unsqueeze(m1, l2)
  full = Concat <axis = 0> (b1, l1, s1, s1)
  rank = Shape(full)
  ones = ConstantOfShape <value = int64[1] {1}> (rank)
  minus = Mul(ones, lm1)
  is_minus = Equal(full, minus)
  target = Where(is_minus, ones, full)
  m3 = Expand(m2, target)
  m4 = Cast <to = 1> (m3)
  one = Constant <value = float {1.0}> ()
  large = Constant <value = float {-10000.0}> ()
  m5 = Sub(one, m4)
  square = Concat <axis = 0> (s1, s1)
  filled = ConstantOfShape <value = float[1] {1.0}> (square)
  above = Trilu <upper = 1> (filled, n1)
  hidden = Max(m5, above)
  m6 = Mul(hidden, large)
  q = MatMul(x, w16x16)
  split = Concat <axis = 0> (b1, s1, l4, lm1)
  q1 = Reshape(q, split)
  q2 = Transpose <perm = [0, 2, 1, 3]> (q1)
  k2 = Transpose <perm = [0, 2, 3, 1]> (q1)
  scores = MatMul(q2, k2)
  masked = Add(scores, m6)
  p = Softmax <axis = -1> (masked)
  o = MatMul(p, q2)
  o1 = Transpose <perm = [0, 2, 1, 3]> (o)
  q1s = Shape(q1)
  heads = Gather <axis = 0> (q1s, n2)
  depth = Gather <axis = 0> (q1s, n3)
  width = Mul(heads, depth)
  width1 = Unsqueeze(width, l0)
  joined = Concat <axis = 0> (b1, s1, width1)
  o2 = Reshape(o1, joined)
  y = Add(o2, x)
}"""

# torch.onnx by dynamo: Shape of one axis, Range, a mask of comparisons, Split by sizes, If on a size.
TORCH_DYNAMO = """
text (int64[batch, sequence] ids, int64[batch] lengths) => (float[batch, sequence, 16] y, float[rest, 16] z) {
  b1 = Shape <start = 0, end = 1> (ids)
  s1 = Shape <start = 1, end = 2> (ids)
  s = Squeeze(s1)
  places = Range(n0, s, n1)
  row = Unsqueeze(places, l1)
  column = Unsqueeze(places, l0)
  past = LessOrEqual(column, row)
  past4 = Unsqueeze(past, l0_1)
  ends = Unsqueeze(lengths, l1)
  inside = Less(column, ends)
  inside4 = Unsqueeze(inside, l1_2)
  seen = And(past4, inside4)
  four = Concat <axis = 0> (b1, l1, s1, s1)
  absolute = Abs(four)
  seen4 = Expand(seen, absolute)
  zero = Constant <value = float {0.0}> ()
  least = Constant <value = float {-1e30}> ()
  bias = Where(seen4, zero, least)
  words = Gather <axis = 0> (w50x16, ids)
  rows = Gather <axis = 0> (w64x16, column)
  x = Add(words, rows)
  flat_shape = Concat <axis = 0> (lm1, l16)
  x2 = Reshape <allowzero = 1> (x, flat_shape)
  qkv = Gemm(x2, w16x48)
  back = Concat <axis = 0> (b1, s1, l48)
  qkv3 = Reshape <allowzero = 1> (qkv, back)
  q, k, v = Split <axis = 2, num_outputs = 3> (qkv3)
  heads = Concat <axis = 0> (b1, s1, l2_8)
  q4 = Reshape(q, heads)
  k4 = Reshape(k, heads)
  v4 = Reshape(v, heads)
  qt = Transpose <perm = [0, 2, 1, 3]> (q4)
  kt = Transpose <perm = [0, 2, 3, 1]> (k4)
  vt = Transpose <perm = [0, 2, 1, 3]> (v4)
  scores = MatMul(qt, kt)
  masked = Add(scores, bias)
  p = Softmax(masked)
  o = MatMul(p, vt)
  ot = Transpose <perm = [0, 2, 1, 3]> (o)
  three = Concat <axis = 0> (b1, s1, l16)
  o3 = Reshape(ot, three)
  half = Div(s1, l2)
  others = Sub(s1, half)
  sizes = Concat <axis = 0> (half, others)
  left, right = Split <axis = 1> (o3, sizes)
  swapped = Concat <axis = 1> (right, left)
  y = Add(swapped, x)
  alone = Equal(s, n1)
  last = Sub(s, n1)
  z = If (alone) <then_branch = one () => (float[rest, 16] first) { first = Squeeze(y, l1) },
                  else_branch = many () => (float[rest, 16] end) { end = Gather <axis = 1> (y, last) }>
}"""

# Paddle: slices of shapes in int32, a token by Tile, fills like another tensor, a mask of lengths, Resize by sizes.
PADDLE = """
image (float[batch, 3, height, width] x, int64[batch] lengths) => (float[batch, tokens, 8] y, float[batch, 3, h2, w2] up) {
  c = Conv <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (x, w8x3x3x3)
  shape = Shape(c)
  shape32 = Cast <to = 6> (shape)
  b32 = Slice(shape32, l0, l1, l0)
  b = Cast <to = 7> (b32)
  hw = Slice(shape, l2, l4, l0)
  area = ReduceProd <keepdims = 1> (hw, l0)
  target = Concat <axis = 0> (b, l8, area)
  flat = Reshape(c, target)
  tokens = Transpose <perm = [0, 2, 1]> (flat)
  repeats = Concat <axis = 0> (b, l1_1)
  first = Tile(w1x1x8, repeats)
  all = Concat <axis = 1> (first, tokens)
  all_shape = Shape(all)
  n = Gather <axis = 0> (all_shape, n1)
  places = Range(n0, n, n1)
  ends = Unsqueeze(lengths, l1)
  seen = Less(places, ends)
  mask = Cast <to = 1> (seen)
  mask3 = Unsqueeze(mask, lm1)
  like = ConstantOfShape <value = float[1] {0.5}> (all_shape)
  shifted = Sub(all, like)
  y = Mul(shifted, mask3)
  input_shape = Shape(x)
  big = Slice(input_shape, l2, l4, l0)
  bigger = Add(big, l1_3)
  channels = Slice(input_shape, l0, l2, l0)
  sizes = Concat <axis = 0> (channels, bigger)
  up = Resize <mode = "linear", coordinate_transformation_mode = "align_corners"> (x, , , sizes)
}"""

# tf2onnx: NHWC, the shape in floats, Resize by scales that are a quotient, slices of a shape in int32.
# (No auto_pad: the evaluator pads even sizes at the wrong end.)
TENSORFLOW = """
image (float[batch, height, width, 3] x) => (float[batch, 5] y, float[batch, h2, w2, 4] z) {
  nchw = Transpose <perm = [0, 3, 1, 2]> (x)
  c = Conv <kernel_shape = [3, 3], strides = [2, 2], pads = [0, 0, 1, 1]> (nchw, w4x3x3x3)
  shape = Shape(c)
  shape32 = Cast <to = 6> (shape)
  hw32 = Slice(shape32, l2, l4, l0)
  hwf = Cast <to = 1> (hw32)
  two = Constant <value = float {2.0}> ()
  wanted_f = Mul(hwf, two)
  wanted = Floor(wanted_f)
  ratio = Div(wanted, hwf)
  ones = Constant <value = float[2] {1.0, 1.0}> ()
  scales = Concat <axis = 0> (ones, ratio)
  up = Resize <mode = "nearest", nearest_mode = "floor", coordinate_transformation_mode = "asymmetric"> (c, , scales)
  z = Transpose <perm = [0, 2, 3, 1]> (up)
  means = ReduceMean <keepdims = 0, axes = [2, 3]> (c)
  means_shape = Shape(means)
  means32 = Cast <to = 6> (means_shape)
  b1 = Slice(means32, l0, l1, l0)
  b = Squeeze(b1, l0)
  b_again = Unsqueeze(b, l0)
  b64 = Cast <to = 7> (b_again)
  target = Concat <axis = 0> (b64, l4)
  flat = Reshape(means, target)
  y = MatMul(flat, w4x5)
}"""

# What windows and running positions need: remainders of sizes, Pad to a multiple, CumSum, the smaller of two sizes.
WINDOWS = """
windows (float[batch, height, width, 4] x, int64[batch, sequence] mask) => (float[batch, height, width, 4] y,
                                                                          float[batch, sequence, 8] z, float[batch, k] t) {
  h1 = Shape <start = 1, end = 2> (x)
  w1 = Shape <start = 2, end = 3> (x)
  b1 = Shape <start = 0, end = 1> (x)
  hm = Mod(h1, l4)
  hl = Sub(l4, hm)
  hp = Mod(hl, l4)
  wm = Mod(w1, l4)
  wl = Sub(l4, wm)
  wp = Mod(wl, l4)
  pads = Concat <axis = 0> (l0_0_0_0, l0, hp, wp, l0)
  zero = Constant <value = float {0.0}> ()
  padded = Pad(x, pads, zero)
  ht = Add(h1, hp)
  wt = Add(w1, wp)
  hn = Div(ht, l4)
  wn = Div(wt, l4)
  windows_shape = Concat <axis = 0> (b1, hn, l4, wn, l4_4)
  parts = Reshape(padded, windows_shape)
  turned = Transpose <perm = [0, 1, 3, 2, 4, 5]> (parts)
  rows = Reshape(turned, lm1_16_4)
  kt = Transpose <perm = [0, 2, 1]> (rows)
  s = MatMul(rows, kt)
  p = Softmax(s)
  o = MatMul(p, rows)
  tiles_shape = Concat <axis = 0> (b1, hn, wn, l4_4_4)
  tiles = Reshape(o, tiles_shape)
  back = Transpose <perm = [0, 1, 3, 2, 4, 5]> (tiles)
  image_shape = Concat <axis = 0> (b1, ht, wt, l4)
  image = Reshape(back, image_shape)
  ends = Concat <axis = 0> (h1, w1)
  y = Slice(image, l0_0, ends, l1_2)
  running = CumSum(mask, n1)
  counted = Mul(running, mask)
  places = Add(counted, n1)
  z = Gather <axis = 0> (w66x8, places)
  length = Shape <start = 1> (mask)
  k1 = Min(length, l3)
  zt = ReduceSum <keepdims = 0> (z, l2)
  t, where = TopK <axis = 1> (zt, k1)
}"""

# What a recurrence needs: zero states of the batch, a Loop over the sequence, pieces as a list, a mask by ScatterND.
RECURRENT = """
steps (float[batch, sequence, 6] x) => (float[sequence, 1, batch, 4] y, float[batch, 6] sums, float[batch, sequence, 6] z,
                                        float[sequence, sequence] band, float[places] low) {
  shape = Shape(x)
  b = Gather <axis = 0> (shape, n0)
  s = Gather <axis = 0> (shape, n1)
  b1 = Unsqueeze(b, l0)
  s1 = Unsqueeze(s, l0)
  state_shape = Concat <axis = 0> (l1, b1, l4)
  state = ConstantOfShape(state_shape)
  rows_first = Transpose <perm = [1, 0, 2]> (x)
  y, h, c = LSTM <hidden_size = 4> (rows_first, w1x16x6, w1x16x4, , , state, state)
  sums_shape = Concat <axis = 0> (b1, l6)
  nothing = ConstantOfShape(sums_shape)
  yes = Constant <value = bool {1}> ()
  sums = Loop (s, yes, nothing) <body = step (int64 i, bool go, float[batch, 6] sum) => (bool on, float[batch, 6] next) {
    row = Gather <axis = 0> (rows_first, i)
    next = Add(sum, row)
    on = Identity(go)
  }>
  parts = SplitToSequence <axis = 1> (x, n2)
  z = ConcatFromSequence <axis = 1> (parts)
  square = Concat <axis = 0> (s1, s1)
  zeros = ConstantOfShape(square)
  places = Range(n0, s, n1)
  column = Unsqueeze(places, l1)
  pairs = Concat <axis = 1> (column, column)
  fours = ConstantOfShape <value = float[1] {4.0}> (s1)
  diagonal = ScatterND(zeros, pairs, fours)
  eye = EyeLike <k = 1> (zeros)
  band = Sub(diagonal, eye)
  found = NonZero(band)
  at = Transpose <perm = [1, 0]> (found)
  low = GatherND(band, at)
}"""

MODELS = {  # the text, the ranges given, the sizes tried
    "torch_script": (TORCH_SCRIPT, "batch=1..8,sequence=1..40", [(1, 7), (3, 40), (8, 1)]),
    "torch_dynamo": (TORCH_DYNAMO, "batch=1..8,sequence=1..64@16", [(1, 7), (3, 64), (5, 1)]),
    "paddle": (PADDLE, "batch=1..8,height=8..64,width=8..64%8", [(1, 8, 16), (3, 33, 64)]),
    "tensorflow": (TENSORFLOW, "batch=1..,height=8..64%2,width=8..64", [(2, 8, 15), (3, 34, 64)]),
    "recurrent": (RECURRENT, "batch=1..8,sequence=1..32", [(1, 7), (3, 32), (8, 1)]),
    "windows": (WINDOWS, "batch=1..4,height=4..32,width=4..32,sequence=1..64", [(1, 8, 8, 1), (2, 9, 30, 12)]),
}


def sizes_of(model, numbers):
    names = dict.fromkeys(dim.dim_param for value in model.graph.input for dim in value.type.tensor_type.shape.dim
                          if dim.dim_param)
    return dict(zip(names, numbers))


def drawn_inputs(model, sizes):
    random = np.random.default_rng(0)
    arrays = {}
    for value in model.graph.input:
        tensor = value.type.tensor_type
        shape = [sizes[dim.dim_param] if dim.dim_param else dim.dim_value for dim in tensor.shape.dim]
        if tensor.elem_type == onnx.TensorProto.FLOAT:
            arrays[value.name] = random.standard_normal(shape).astype(np.float32)
        elif value.name == "lengths":
            arrays[value.name] = random.integers(1, sizes.get("sequence", 20) + 1, shape)
        else:
            arrays[value.name] = random.integers(0, 2 if value.name == "mask" else 50, shape)
    return arrays


def problems(command, folder, name):
    text, dims, tried = MODELS[name]
    model = made_model(text)
    folder.mkdir()
    onnx.save(model, folder / "model.onnx")
    for numbers in tried:
        sizes = sizes_of(model, numbers)
        arrays = drawn_inputs(model, sizes)
        expected = ReferenceEvaluator(model).run(None, arrays)
        try:
            actual = run_model(command, folder, "model.onnx", arrays, len(model.graph.output),
                               ["--dims", dims, "--json", folder / "report.json"])
        except RuntimeError as error:
            yield f"{name} at {json.dumps(sizes)}: {error}"
            continue
        for i, (a, e) in enumerate(zip(actual, expected)):
            if a.shape != e.shape or not np.allclose(a, e, rtol=1e-3, atol=1e-4 * np.abs(e).max(initial=1)):
                worst = np.abs(a - e).max(initial=0) if a.shape == e.shape else f"{a.shape}, expected {e.shape}"
                yield f"{name} at {json.dumps(sizes)}: output {i} differs: {worst}"


def main():
    command, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    found = [line for name in MODELS for line in problems(command, folder / name, name)]
    print("\n".join(found))
    sys.exit(1 if found else 0)


main()
