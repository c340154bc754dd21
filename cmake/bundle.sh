#!/usr/bin/env bash
# bundle.sh BUILD_FOLDER FOLDER [PROGRAM ...]: the command, the GPU tests and further programs of the build (benchmarks,
# fuzzers) with every library that a bare Linux machine lacks, small enough to carry around. FOLDER/run PROGRAM
# [ARGUMENT ...] unpacks it beside itself once and runs it there.
set -euo pipefail
build=$1
folder=$2
shift 2
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir -p "$folder" "$work/bin" "$work/lib"
for program in sylvite gpu_test "$@"; do
  strip -o "$work/bin/$program" "$build/bin/$program"
done
cp -r "$source/tests/data" "$work/bin/data"

# What every glibc system has stays out.
is_everywhere='^(linux-vdso|ld-linux-x86-64|libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s)\.so'
for program in "$work"/bin/*; do
  [ -d "$program" ] || ldd "$build/bin/${program##*/}"
done | awk '$2 == "=>" { print $1, $3 }' | sort -u | while read -r name path; do
  if [[ $name =~ $is_everywhere ]]; then
    continue
  elif [[ $name == libHalide.so ]]; then
    # Minutes to compress, and hardly ever another one.
    [ "$folder/libHalide.so.xz" -nt "$path" ] || xz -6 -T0 -k -c "$path" > "$folder/libHalide.so.xz"
  elif [[ $name == libsylvite.so* ]]; then
    strip -o "$work/lib/$name" "$path"
  else
    cp -L "$path" "$work/lib/$name"
  fi
done

tar -C "$work" -c bin lib | xz -9 -T1 > "$folder/programs.tar.xz"
cat > "$folder/run" <<'RUN'
#!/usr/bin/env bash
# run PROGRAM [ARGUMENT ...]: unpacks on the first call, into $SYLVITE_UNPACKED or a folder beside this script.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
there=${SYLVITE_UNPACKED:-$here/unpacked}
unxz_to() {
  if command -v xz >/dev/null; then xz -dc "$1"; else python3 -c 'import lzma, shutil, sys
shutil.copyfileobj(lzma.open(sys.argv[1]), sys.stdout.buffer)' "$1"; fi
}
if [ ! -e "$there/complete" ]; then
  mkdir -p "$there/lib"
  unxz_to "$here/libHalide.so.xz" > "$there/lib/libHalide.so" &
  unxz_to "$here/programs.tar.xz" | tar -C "$there" -x
  wait
  touch "$there/complete"
fi
program=$1
shift
export LD_LIBRARY_PATH="$there/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
exec "$there/bin/$program" "$@"
RUN
chmod +x "$folder/run"
size=$(du -sk --exclude=unpacked "$folder" | cut -f1)
echo "$folder: $((size / 1024)) MiB"
[ "$size" -le $((60 * 1024)) ] || { echo "bundle: larger than 60 MiB" >&2; exit 1; }
