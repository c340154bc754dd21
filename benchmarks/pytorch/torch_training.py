#!/usr/bin/env python3
"""Steps of training with autocast (bf16) on a GPU, Sylvite beside Inductor's default.

usage: torch_training.py [--only NAME,...] [--turns 12]

A step is forward, loss and backward. Each model has a process, which compiles by both while others do; one at a time is timed, ten steps of one and ten of the other
in turns: --only one model where nothing else may compile. Printed are the least of a turn's milliseconds per step, Inductor's over Sylvite's, the most memory of a step in MB, seconds to the first step (beside the other processes), and how far the
gradients are from eager's in f32, as a share of their length, beside eager's with autocast. Needs torchvision and transformers.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time


def image_model(name, batch):
    import torch
    import torchvision
    model = getattr(torchvision.models, name)(weights=None)
    for each in model.modules():
        if isinstance(each, torch.nn.Dropout):
            each.p = 0.0
    x, y = torch.randn(batch, 3, 224, 224, device="cuda"), torch.randint(1000, (batch,), device="cuda")
    if name.startswith(("resnet", "mobile")):
        x = x.to(memory_format=torch.channels_last)
        model = model.to(memory_format=torch.channels_last)
    return model, lambda m: torch.nn.functional.cross_entropy(m(x).float(), y)


def text_model(kind, batch, length):
    import torch
    import transformers
    if kind == "gpt2":
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, use_cache=False))
    else:
        model = transformers.BertForMaskedLM(transformers.BertConfig(hidden_dropout_prob=0, attention_probs_dropout_prob=0))
    words = torch.randint(30000, (batch, length), device="cuda")
    return model, lambda m: m(input_ids=words, labels=words).loss


def spelled_model(masks, batch, length, width=512, heads=8, layers=4):
    """Layers whose attention is products, a mask and a softmax, as tutorials have it: causal by a buffer and -inf, or padding and -1e9."""
    import torch
    from torch import nn

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
            self.mixed, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.register_buffer("before", torch.ones(1, 1, length, length).tril())

        def forward(self, given):
            x, seen = given
            q, k, v = (part.unflatten(2, (heads, -1)).transpose(1, 2) for part in self.mixed(self.first(x)).split(width, 2))
            scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
            if masks == "causal":
                scores = scores.masked_fill(self.before == 0, float("-inf"))
            else:
                scores = scores.masked_fill(seen[:, None, None] == 0, -1e9)
            x = x + self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
            return x + self.down(nn.functional.gelu(self.up(self.second(x)))), seen

    x = torch.randn(batch, length, width, device="cuda")
    seen = torch.arange(length, device="cuda") < torch.randint(length // 2, length, (batch, 1), device="cuda")
    return nn.Sequential(*(Layer() for _ in range(layers))), lambda m: m((x, seen))[0].float().square().mean()


MODELS = {
    "resnet50 128": lambda: image_model("resnet50", 128),
    "gpt2 16x512": lambda: text_model("gpt2", 16, 512),
    "bert 32x128": lambda: text_model("bert", 32, 128),
    "vit_b_16 64": lambda: image_model("vit_b_16", 64),
    "mobilenet_v3 128": lambda: image_model("mobilenet_v3_large", 128),
    "spelled decoder 16x512": lambda: spelled_model("causal", 16, 512),
    "spelled encoder 16x512": lambda: spelled_model("padding", 16, 512),
}  # fmt: skip


def gradients(model, call, autocast):
    import torch
    model.zero_grad(set_to_none=True)
    with torch.autocast("cuda", torch.bfloat16, enabled=autocast):
        loss = call()
    loss.backward()
    return torch.cat([p.grad.float().flatten() for p in model.parameters() if p.grad is not None])


def child(name, turns):
    import torch
    torch.manual_seed(0)
    model, loss_of = MODELS[name]()
    model.cuda().train()
    line, ways = {"model": name}, {}
    exact = gradients(model, lambda: loss_of(model), False)
    eager = gradients(model, lambda: loss_of(model), True)
    line["eager_error"] = ((eager - exact).norm() / exact.norm()).item()
    del eager
    for backend in ("sylvite", "inductor"):
        torch._dynamo.reset()
        compiled = torch.compile(model, backend=backend)
        start = time.perf_counter()
        found = gradients(model, lambda: loss_of(compiled), True)
        line[backend + "_first_s"] = time.perf_counter() - start
        line[backend + "_error"] = ((found - exact).norm() / exact.norm()).item()
        del found
        ways[backend] = lambda c=compiled: loss_of(c)

    def step(way):
        model.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16):
            loss = way()
        loss.backward()

    del exact
    print("READY", flush=True)
    sys.stdin.readline()
    for backend, way in ways.items():
        for _ in range(3):
            step(way)
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        step(way)
        line[backend + "_mb"] = torch.cuda.max_memory_allocated() / 1e6
        line[backend + "_ms"] = float("inf")
    for _ in range(turns):
        for backend, way in ways.items():
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            for _ in range(10):
                step(way)
            end.record()
            torch.cuda.synchronize()
            line[backend + "_ms"] = min(line[backend + "_ms"], begin.elapsed_time(end) / 10)
    print("LINE " + json.dumps(line), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="parts of names, with commas")
    parser.add_argument("--turns", type=int, default=12)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child, options.turns)
        return
    names = [n for n in MODELS if any(part in n for part in options.only.split(","))]
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "XDG_CACHE_HOME": cache, "TORCHINDUCTOR_CACHE_DIR": cache + "/torch", "TORCHINDUCTOR_COMPILE_THREADS": "4"}
        children = {n: subprocess.Popen([sys.executable, __file__, "--child", n, "--turns", str(options.turns)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) for n in names}
        for n, process in children.items():
            if not any(line.startswith("READY") for line in iter(process.stdout.readline, "")):
                continue
            for line in process.communicate("\n")[0].splitlines():
                if line.startswith("LINE "):
                    found = json.loads(line[5:])
                    print(f"{n:18} {found['inductor_ms'] / found['sylvite_ms']:.2f} " + " ".join(f"{k}={v:.4g}" for k, v in found.items() if k != "model"), flush=True)


if __name__ == "__main__":
    main()
