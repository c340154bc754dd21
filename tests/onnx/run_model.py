"""The command's answers for a model's inputs."""

import subprocess

import numpy as np


def run_model(command, folder, model, arrays, outputs, words=()):
    """Outputs of `folder`/`model`, which --check interpreter agrees with. RuntimeError: what the command says."""
    words = [command, "run", folder / model, *words, "--output-dir", folder / "out", "--check", "interpreter",
             "--db", folder / "trials.db", "--cache-dir", folder / "objects"]
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
        words += ["--input", f"{name}={folder / name}.npy"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return [np.load(folder / "out" / f"{i}.npy") for i in range(outputs)]
