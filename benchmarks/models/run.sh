#!/usr/bin/env bash
# usage: run.sh SYLVITE [MODEL...]      (./dev bench builds the command and calls this)
# Latency of each model of tests/data/models in default mode against the plain schedules, turn by turn in one process.
# Environment: BENCH_OPTIONS, e.g. "--mode max-autotune --budget 60s"; BENCH_DURATION, default 5s.
set -euo pipefail

sylvite=$(realpath "$1")
shift
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
[ $# -gt 0 ] || set -- "$root"/tests/data/models/*.onnx
read -ra extra <<< "${BENCH_OPTIONS:-}"

printf '%-20s %12s %12s %14s %8s\n' model 'median ms' 'p99 ms' 'reference ms' faster
for model in "$@"; do
  json=$("$sylvite" bench "$model" --random-weights 0 --duration "${BENCH_DURATION:-5s}" --baseline reference \
    --no-profile --json - ${extra[@]+"${extra[@]}"} 2>/dev/null)
  python3 - "$(basename "$model" .onnx)" "$json" <<'EOF'
import json, sys

report = json.loads(sys.argv[2])
own, slow = report["latency_ms"], report["baselines"][0]["latency_ms"]
print(f"{sys.argv[1]:<20} {own['median']:>12.3f} {own['p99']:>12.3f} {slow['median']:>14.3f}"
      f" {slow['median'] / own['median']:>7.1f}x")
EOF
done
