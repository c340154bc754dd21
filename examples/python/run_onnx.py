#!/usr/bin/env python3
"""Compiles an ONNX model and runs it on random images of two batch sizes.

usage: run_onnx.py MODEL.onnx [PIXELS]
The model's input is images of three channels, 224 by 224 unless PIXELS says how many, whose batch is called "batch".
"""

import sys

import numpy as np
import sylvite

pixels = int(sys.argv[2]) if len(sys.argv) > 2 else 224
model = sylvite.compile(sys.argv[1], dims={"batch": (1, 8)})
for batch in (1, 3):
    images = np.random.default_rng(0).standard_normal((batch, 3, pixels, pixels)).astype(np.float32)
    scores = model(images)[0]
    print(f"{batch} images: {model.output_names[0]} {scores.dtype}{list(scores.shape)}, best {scores.argmax(1).tolist()}")
print(f"{model.report['kernels']} kernels, {model.report['programs']} programs, {len(model.report['warnings'])} warnings")
