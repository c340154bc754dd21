#!/usr/bin/env python3
"""What a step of training takes at a size that was not met before, and at its next calls, on a GPU (bf16 by autocast) or
a CPU (f32): dynamic=True, one of torch's backends; with the loss and the largest relative difference of a gradient beside
eager's.

  training_sizes.py decoder --backend sylvite
  training_sizes.py images --backend inductor --count 14
  training_sizes.py images --device cpu
"""
import argparse
import random
import resource
import time

import torch
import torch.nn.functional as F
from torch import nn

WORDS = 8192


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.heads_of, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.heads_of(self.before(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.wide(self.between(x))


class Decoder(nn.Module):
    def __init__(self, width=512):
        super().__init__()
        self.words = nn.Embedding(WORDS, width)
        self.layers = nn.Sequential(*(Layer(width, 8) for _ in range(4)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, WORDS)

    def forward(self, x, wanted):
        return F.cross_entropy(self.head(self.norm(self.layers(self.words(x)))).flatten(0, 1), wanted.flatten())


def convolution(width, groups=1):
    return nn.Sequential(nn.Conv2d(width, width, 3, 1, 1, groups=groups, bias=False), nn.BatchNorm2d(width))


class Images(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 3, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
                                  nn.MaxPool2d(3, 2, 1))
        self.blocks = nn.ModuleList(nn.Sequential(convolution(width), nn.ReLU(), convolution(width)) for _ in range(3))
        self.last, self.head = convolution(width, width), nn.Linear(width, 100)

    def forward(self, x, wanted):
        x = self.stem(x)
        for block in self.blocks:
            x = F.relu(x + block(x))
        return F.cross_entropy(self.head(self.last(x).mean((2, 3))), wanted)


def tokens(draw, device):
    batch, length = draw.randint(2, 16), draw.randint(33, 256)
    return f"{batch}x{length}", [torch.randint(0, WORDS, (batch, length), device=device) for _ in range(2)]


def images(draw, device):
    batch, side = draw.randint(2, 32), 8 * draw.randint(8, 28)
    picture = torch.randn(batch, 3, side, side, device=device).to(memory_format=torch.channels_last)
    return f"{batch}x{side}", [picture, torch.randint(0, 100, (batch,), device=device)]


def step(network, call, data):
    """The loss and gradients, and seconds until the device has them."""
    network.zero_grad(set_to_none=True)
    start = time.time()
    on_gpu = data[0].is_cuda
    with torch.autocast("cuda", torch.bfloat16, enabled=on_gpu):
        loss = call(*data)
    loss.backward()
    if on_gpu:
        torch.cuda.synchronize()
    return loss.item(), [weight.grad for weight in network.parameters()], time.time() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("network", choices=["decoder", "images"])
    parser.add_argument("--backend", default="sylvite")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--count", type=int, default=14, help="sizes")
    args = parser.parse_args()
    torch.manual_seed(0)
    make, draw_data = (Decoder, tokens) if args.network == "decoder" else (Images, images)
    network = make().to(args.device)
    if args.network == "images":
        network = network.to(memory_format=torch.channels_last)
    compiled = torch.compile(network, backend=args.backend, dynamic=True)
    draw = random.Random(1)
    for _ in range(args.count):
        name, data = draw_data(draw, args.device)
        loss, gradients, first = step(network, compiled, data)
        again = min(step(network, compiled, data)[2] for _ in range(6))
        wanted, eager, _ = step(network, network, data)
        far = max(float((a - b).norm() / (b.norm() + 1e-6)) for a, b in zip(gradients, eager))
        print(f"{name}: first {first * 1e3:.0f} ms, next {again * 1e3:.2f} ms, loss {loss:.4f} (eager {wanted:.4f}), "
              f"gradients differ by {far:.3f}", flush=True)
    print(f"most memory of the host: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MB")


if __name__ == "__main__":
    main()
