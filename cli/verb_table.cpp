#include "cli/verb.h"

namespace sylvite {
namespace {

constexpr Verb verbs[] = {
    {"compile", verb_compile, "compile a model, so that later runs start at once"},
    {"run", verb_run, "run a model once on given or random inputs; check it against a reference"},
    {"bench", verb_bench, "measure throughput and latency, and where the time goes"},
    {"tune", verb_tune, "search for faster schedules within a time budget, and remember them"},
    {"sweep", verb_sweep, "tune models x threads x precisions x modes from a file; resumes where it stopped"},
    {"info", verb_info, "say what a model takes and gives, and what it is made of"},
    {"explain", verb_explain, "show the graph, its kernels and why, and each kernel's schedule"},
    {"export", verb_export, "write a static library, a C header, weights and a CMake package to embed"},
    {"schedule", verb_schedule, "schedules by hand: show, check, race, pin, unpin"},
    {"lock", verb_lock, "write what every kernel runs to a file that --frozen reads, for version control"},
    {"db", verb_db,
     "look into the database of trials: top, trials, stats, export, merge, forget, replay, why"},
    {"cache", verb_cache,
     "size of the cache of compiled kernels, and how to make it smaller: size, list, prune"},
    {"knobs", verb_knobs, "print the table of knobs as Markdown"},
    {"worker", verb_worker, ""},
};

}  // namespace

std::span<const Verb> verb_table() {
  return verbs;
}

}  // namespace sylvite
