#!/usr/bin/env bash
# usage: demo.sh SYLVITE      (./dev demo builds the command and calls this)
# The whole path on ResNet-50's real graph: import, default mode, max-autotune within a budget, run again from the
# database, export. Weights are drawn from a seed; outputs are compared with what ONNX Runtime computed for the same
# weights and input. Environment: DEMO_BUDGET (default 120s), DEMO_DIR (default: a fresh folder, removed at the end).
set -euo pipefail

sylvite=$(realpath "$1")
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
model=$root/tests/data/models/resnet50.onnx
expected=$root/tests/data/expected/resnet50.output.npy
budget=${DEMO_BUDGET:-120s}
if [ -z "${DEMO_DIR:-}" ]; then
  DEMO_DIR=$(mktemp -d)
  trap 'rm -rf "$DEMO_DIR"' EXIT
fi
mkdir -p "$DEMO_DIR"
common=("$model" --random-weights 0 --cache-dir "$DEMO_DIR/objects" --db "$DEMO_DIR/trials.db")

# step NAME VERB-OPTION...: makes the model ready as the options say, measures it, and checks its outputs.
step() {
  local name=$1
  shift
  echo "-- $name"
  "$sylvite" bench "${common[@]}" "$@" --warmup 1s --duration 5s --no-profile --check "$expected" \
    --json "$DEMO_DIR/$name.json"
}

echo "ResNet-50 on $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), $(nproc) threads"
step default --mode default
step max-autotune --mode max-autotune --budget "$budget"
step from-database --mode default
echo "-- tuned, default and plain schedules turn by turn, so that they may be compared on a busy machine"
"$sylvite" bench "${common[@]}" --baseline default --baseline reference --duration 10s --no-profile
echo "-- export"
"$sylvite" export "${common[@]}" --output "$DEMO_DIR/export" | tail -n 1

python3 - "$DEMO_DIR" <<'EOF'
import json, sys

rows = [("", "ready s", "compiled", "trials", "median ms", "p90 ms", "p99 ms", "error")]
for name in ("default", "max-autotune", "from-database"):
    report = json.load(open(f"{sys.argv[1]}/{name}.json"))
    latency, counters = report["latency_ms"], report["counters"]
    rows.append((name, f"{report['seconds']['ready']:.2f}", str(counters["compiled"]), str(counters["trials"]),
                 f"{latency['median']:.2f}", f"{latency['p90']:.2f}", f"{latency['p99']:.2f}",
                 f"{report['check']['largest_error_of_scale']:.1e}"))
widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
print()
for row in rows:
    print("  ".join(cell.ljust(width) if i == 0 else cell.rjust(width)
                    for i, (cell, width) in enumerate(zip(row, widths))))
print("\nready: import, choose, tune, compile and load, without reading weights; error: largest difference from")
print("ONNX Runtime's output, as a share of its largest magnitude.")
EOF
