#!/bin/sh
# Collects the wheels that a GPU machine without network lacks: Python 3.12 on x86_64, torch and triton are there.
# Usage: benchmarks/first_light/carry.sh [FOLDER]    (default: .whl)   See README.md beside this file.
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
folder=${1:-.whl}
most=$((20 << 20))
mkdir -p "$folder"
rm -f "$folder"/*.whl
wanted=''
for name in pydantic pydantic_core annotated-types typing-inspection typing_extensions kernelguard; do
    wanted="$wanted $(grep "^$name==" "$here/constraints.txt")"
done
# shellcheck disable=SC2086  # one argument per package
python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --dest "$folder" \
    --implementation cp --python-version 3.12 --abi cp312 --abi abi3 --abi none \
    --platform manylinux2014_x86_64 --platform manylinux_2_17_x86_64 --platform any $wanted
ls -l "$folder"/*.whl
size=$(cat "$folder"/*.whl | wc -c)
echo "$(ls "$folder"/*.whl | wc -l) wheels, $((size >> 10)) KiB together"
[ "$size" -lt "$most" ] || { echo "more than the $((most >> 20)) MiB that may travel" >&2; exit 1; }
