#!/usr/bin/env python3
"""An exported library in six threads under ThreadSanitizer: no race but those that it only thinks to see.

usage: export_threads.py SYLVITE EMBED [--model MODEL.onnx]

EMBED is runtime/export/embed: the launcher is compiled from there with -fsanitize=thread; kernels and Halide's pool of threads
are those of the library. Each thread runs a model of its own, all try one that they share, and some set the number of
threads meanwhile. Results must be the same in every run, and a shared model busy or right.

ThreadSanitizer does not see the atomics of Halide's pool, which is compiled without it. Mutexes that the pool makes on its
stack and hands on by such an atomic are named races in Halide::Runtime::Internal::Synchronization, five or so in a run; only
those are passed over. Code 77: the compiler has no ThreadSanitizer.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

from small_model import write_small_model

PROGRAM = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "net.h"
static sylvite_model* shared;
static size_t in_bytes, out_bytes;
static void* expected;
static int wrong;
static void* run(sylvite_model* model, int may_be_busy) {
  void* input = calloc(1, in_bytes);
  void* output = calloc(1, out_bytes);
  for (size_t i = 0; i < in_bytes / sizeof(float); ++i) ((float*)input)[i] = (float)(i % 17) / 17;
  const void* inputs[] = {input};
  void* outputs[] = {output};
  const int status = net_run(model, inputs, outputs);
  const int is_busy = may_be_busy && status == SYLVITE_BUSY;
  if (!is_busy && (status != SYLVITE_OK || (expected != NULL && memcmp(expected, output, out_bytes) != 0)))
    __atomic_store_n(&wrong, 1, __ATOMIC_RELAXED);
  free(input);
  return output;
}
static void* work(void* weights) {
  sylvite_model* own = NULL;
  if (net_create(weights, &own) != SYLVITE_OK) return (void*)net_error_message(NULL);
  for (int i = 0; i < 20; ++i) {
    free(run(own, 0));
    free(run(shared, 1));
    if (i % 5 == 0) net_set_threads(2 + i % 3);
  }
  net_destroy(own);
  return NULL;
}
int main(int count, char** arguments) {
  if (count != 2 || net_create(arguments[1], &shared) != SYLVITE_OK) return 2;
  in_bytes = net_input(0)->bytes;
  out_bytes = net_output(0)->bytes;
  net_set_threads(4);
  expected = run(shared, 0);
  pthread_t threads[6];
  for (int i = 0; i < 6; ++i) pthread_create(&threads[i], NULL, work, arguments[1]);
  for (int i = 0; i < 6; ++i) {
    void* message = NULL;
    pthread_join(threads[i], &message);
    if (message != NULL) puts(message);
  }
  net_destroy(shared);
  free(expected);
  return wrong ? 3 : 0;
}
"""
SEEN_WRONGLY = "race:^Halide::Runtime::Internal::Synchronization::\n"
LAUNCHER = ("launcher.c", "launcher_arguments.c", "weights_file.c", "sized_program.c", "first_places.c")


def has_sanitizer(folder):
    (folder / "empty.c").write_text("int main(void) { return 0; }\n")
    built = subprocess.run(["cc", "-fsanitize=thread", folder / "empty.c", "-o", folder / "empty"], capture_output=True, check=False)
    return built.returncode == 0 and subprocess.run([folder / "empty"], capture_output=True, check=False).returncode == 0


def build(folder, embed):
    """The kernels as exported, and all that is C with the sanitizer."""
    objects = folder / "objects"
    objects.mkdir()
    subprocess.run(["ar", "x", folder / "out" / "libnet.a"], cwd=objects, check=True)
    compiled_anew = {"net.o"} | {f"sylvite_{name[:-2]}.o" for name in LAUNCHER}
    kernels = [path for path in objects.iterdir() if path.name not in compiled_anew]
    (folder / "main.c").write_text(PROGRAM)
    sources = [folder / "main.c", folder / "out" / "net.c", *(embed / name for name in LAUNCHER)]
    subprocess.run(["cc", "-O1", "-g", "-fsanitize=thread", f"-I{folder / 'out'}", f"-I{embed}", f"-I{embed.parents[2]}", *sources,
                    *kernels, "-lm", "-lpthread", "-ldl", "-o", folder / "main"], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sylvite")
    parser.add_argument("embed", type=pathlib.Path)
    parser.add_argument("--model")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if not has_sanitizer(folder):
            print("no ThreadSanitizer here")
            return 77
        model = arguments.model or write_small_model(str(folder / "small.onnx"))
        subprocess.run([arguments.sylvite, "export", model, "--output", folder / "out", "--name", "net", "--cache-dir",
                        folder / "objects_cache", "--db", folder / "trials.db"], check=True, stdout=subprocess.DEVNULL)
        build(folder, arguments.embed.resolve())
        (folder / "seen_wrongly").write_text(SEEN_WRONGLY)
        ended = subprocess.run([folder / "main", folder / "out" / "net.weights"], check=False, text=True, capture_output=True,
                               env={"TSAN_OPTIONS": f"history_size=7 suppressions={folder / 'seen_wrongly'}"})
        print(ended.stdout + ended.stderr, end="")
        if ended.returncode == 0:
            print("no race")
        return ended.returncode


if __name__ == "__main__":
    sys.exit(main())
