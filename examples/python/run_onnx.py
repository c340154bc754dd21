#!/usr/bin/env python3
"""Compiles an ONNX model and runs it on random images of two batch sizes.

usage: run_onnx.py MODEL.onnx
The model's first input has a symbolic batch; its other sizes are fixed.
"""

import sys

import numpy as np
import sylvite

model = sylvite.compile(sys.argv[1], dims={"batch": (1, 8)})
for batch in (1, 3):
    images = np.random.default_rng(0).standard_normal((batch, 3, 8, 8)).astype(np.float32)
    scores = model(images)[0]
    print(f"{batch} images: {model.output_names[0]} {scores.dtype}{list(scores.shape)}, best {scores.argmax(1).tolist()}")
print(f"{model.report['kernels']} kernels, {model.report['programs']} programs, {len(model.report['warnings'])} warnings")
