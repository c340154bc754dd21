#!/bin/bash
# Tunes models, then stands them beside the peers: unattended, and resumable, for `sylvite sweep` skips what is done and
# every trial is in the database.
# usage: tune_and_compare.sh SYLVITE FOLDER BUDGET [MODEL.onnx...]   FOLDER keeps the database, the objects and the tables
# THREADS="1 2" and ROUNDS, SECONDS_EACH of compare_peers.py may be set. Give the models absolute paths.
set -eu
if [ $# -lt 4 ]; then
  sed -n '2,5s/^# //p' "$0" >&2
  exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
sylvite=$1 folder=$(mkdir -p "$2" && cd "$2" && pwd) budget=$3
shift 3
export XDG_CACHE_HOME=$folder
for threads in ${THREADS:-1 2}; do
  sweep=$folder/threads-$threads.ini
  models=$(printf '%s, ' "$@")
  printf '[sweep]\nmodels = %s\nmodes = max-autotune\nthreads = %s\nbudget = %s\n' "${models%, }" "$threads" "$budget" > "$sweep"
  "$sylvite" sweep "$sweep" --progress lines
done
for threads in ${THREADS:-1 2}; do
  python3 "$here/../models/compare_peers.py" "$sylvite" "$@" --mode max-autotune --set "tune.budget=$budget" --threads "$threads" \
    --rounds "${ROUNDS:-5}" --seconds "${SECONDS_EACH:-2}" --json "$folder/threads-$threads.json" \
    --svg "$folder/threads-$threads.svg" | tee "$folder/threads-$threads.txt"
done
