#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Does an installed kernelpro find what was installed with it? Usage: install.sh CMAKE BUILD SOURCE
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
DESTDIR="$folder/root" "$1" --install "$2" --prefix /opt/kernelpro > "$folder/log" || {
  cat "$folder/log"
  exit 1
}
unset KERNELPRO_WORKER
ln -s "$folder/root/opt/kernelpro/bin/kernelpro" "$folder/kernelpro"
cd "$folder"
# Of the installed examples, as README's first command names them.
./kernelpro evaluate examples/softmax "$3/examples/softmax/kernel.cpp" --no-timing
