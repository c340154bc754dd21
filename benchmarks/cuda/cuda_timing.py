"""Times on a GPU: bursts that are taken in turns with pauses, so that every contender runs at full clock."""

import statistics
import subprocess
import time

import torch

ROUNDS = 9
PAUSE = 0.012


class Server:
    """A benchmark of this folder, run as `PROGRAM serve`: a line in, a line out."""

    def __init__(self, program):
        self.process = subprocess.Popen([program, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if not answer:
            raise RuntimeError(f"no answer to '{line}'")
        return answer

    def end(self):
        self.process.stdin.close()


def graph_of(function, sets, runs):
    """A CUDA graph of `runs` calls over the sets of tensors in turn."""
    for tensors in sets:
        function(*tensors)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(runs):
            function(*sets[i % len(sets)])
    return graph


def time_once(call, runs):
    """Microseconds a run of something that runs so many times."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    call()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 1e3 / runs


def take_turns(ways):
    """Medians of the ways (functions that return a time), each turn beginning with another; the first is not counted."""
    samples = {name: [] for name in ways}
    names = list(ways)
    for round_number in range(ROUNDS + 1):
        for i in range(len(names)):
            name = names[(i + round_number) % len(names)]
            time.sleep(PAUSE)
            sample = ways[name]()
            if round_number > 0:
                samples[name].append(sample)
    return {name: statistics.median(times) for name, times in samples.items()}


def save(tensor, path):
    tensor.cpu().view(torch.int16).numpy().tofile(path)


def load(path, like):
    with open(path, "rb") as file:
        bits = torch.frombuffer(bytearray(file.read()), dtype=torch.int16)
    return bits.view(like.dtype).view(like.shape).to(like.device)


def error_of(result, reference):
    return ((result.double() - reference).norm() / reference.norm()).item()
