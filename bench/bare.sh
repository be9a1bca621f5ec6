#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a bare system to a finished run of the demo's example: what a newcomer waits for.
#   bench/bare.sh WHEEL [SUITE [MIRROR]]     as root, with debootstrap; bookworm of deb.debian.org
#   bench/bare.sh WHEEL noble http://archive.ubuntu.com/ubuntu      and with ubuntu-keyring
# EVALUATIONS: of the run, 2 as scripts/wheel has them. Prints a table of seconds; downloads are a
# row of their own. Leaves nothing behind.
set -euo pipefail

wheel=$(realpath "$1")
suite=${2:-bookworm}
mirror=${3:-http://deb.debian.org/debian}
root=$(mktemp -d)
trap 'umount "$root/proc" 2> /dev/null || true; rm -rf "$root"' EXIT

# A script of debootstrap's own is named after each suite that it knows; newer ones are like these.
script=/usr/share/debootstrap/scripts/$suite
case "$mirror" in
  *ubuntu*) keys=ubuntu-archive-keyring.gpg components=main,universe like=jammy ;;
  *) keys=debian-archive-keyring.gpg components=main like=bookworm ;;
esac
[ -e "$script" ] || script=/usr/share/debootstrap/scripts/$like
debootstrap --variant=minbase --components="$components" --keyring="/usr/share/keyrings/$keys" \
  "$suite" "$root" "$mirror" "$script" > "$root.log" 2>&1 ||
  { tail -3 "$root.log"; exit 1; }
rm -f "$root.log"
mount -t proc proc "$root/proc"
cp "$wheel" "$root/tmp/"
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
  DEBIAN_FRONTEND=noninteractive bash -euc "$1"; }
row() { # WHAT COMMAND
  local begin=${EPOCHREALTIME/./}
  inside "$2" > "$root/log" 2>&1 || { tail -20 "$root/log"; exit 1; }
  local tenths=$(((${EPOCHREALTIME/./} - begin) / 100000))
  printf '| %s | %d.%d |\n' "$1" $((tenths / 10)) $((tenths % 10))
}

echo "| $suite | s |"
echo "|---|---|"
row "downloads: python3-venv, g++" \
  'apt-get update && apt-get install -y --no-install-recommends -d python3-venv g++'
row "unpacking them" 'apt-get install -y --no-install-recommends python3-venv g++'
row "a virtual environment" 'python3 -m venv /opt/kp'
row "pip install of the wheel" \
  "/opt/kp/bin/pip install --disable-pip-version-check --no-index /tmp/$(basename "$wheel")"
row "kernelpro optimize examples/softmax --evaluations ${EVALUATIONS:-2}" \
  "cd /root && PATH=/opt/kp/bin:\$PATH kernelpro optimize examples/softmax --target cpu \
   --evaluations ${EVALUATIONS:-2} --run run"
grep -E "faster than|No candidate" "$root/log" || true
