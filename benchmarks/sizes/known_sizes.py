#!/usr/bin/env python3
"""What making a program anew costs at sizes whose plan is known, beyond a run there, in processor time: one program is kept.

  known_sizes.py mobilenetv2.onnx --dims batch=1..8,height=96..640%32,width=96..640%32
  known_sizes.py timm:mobilenetv2_100     the same through torch.compile

The model takes images [batch, 3, height, width].
"""

import argparse
import itertools
import random
import statistics
import time

import numpy as np

LEARNED = 70  # sizes that are met first, at some of which the model is imported
MOST = 30  # the smallest of them are made anew


def onnx_model(path, dims):
    import sylvite

    options = {"db.enabled": False, "compile.threads": 1, "compile.sizes_kept": 1}
    model = sylvite.compile(path, dims=dict(each.split("=") for each in dims.split(",")), options=options)
    model.wait()
    return model, lambda shape: np.zeros(shape, "f4")


def torch_model(name):
    import timm
    import torch

    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    model = timm.create_model(name, pretrained=False).eval()
    compiled = torch.compile(model, backend="sylvite", dynamic=True, options={"compile.sizes_kept": 1})
    return compiled, torch.zeros


def extra_milliseconds(run, image):
    times = []
    for _ in range(3):
        start = time.process_time()
        run(image)
        times.append(time.process_time() - start)
    return (times[0] - min(times[1:])) * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--dims", help="ranges of an ONNX file, as the command takes them")
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--imported", type=float, default=45, help="sizes that cost more milliseconds were imported, and are left out")
    args = parser.parse_args()
    is_torch = args.model.startswith("timm:")
    run, make = torch_model(args.model.removeprefix("timm:")) if is_torch else onnx_model(args.model, args.dims)
    lengths = range(96, 352, 32)
    shapes = [(n, 3, h, w) for n, h, w in itertools.product((2, 3, 4, 5), lengths, lengths) if h != w]
    random.Random(0).shuffle(shapes)
    for shape in shapes[:LEARNED]:
        run(make(shape))
    images = [make(shape) for shape in sorted(shapes[:LEARNED], key=np.prod)[:MOST]]
    images = [image for image in images if extra_milliseconds(run, image) < args.imported]
    times = []
    end = time.monotonic() + args.seconds
    while time.monotonic() < end:
        times += [extra_milliseconds(run, image) for image in images]
    print(f"{len(images)} sizes: median {statistics.median(times):.2f} ms, least {min(times):.2f} ms, most {max(times):.2f} ms")


if __name__ == "__main__":
    main()
