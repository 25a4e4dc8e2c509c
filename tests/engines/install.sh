#!/bin/sh
# Installs the Debian packages that tests/engines needs, where their programs are missing.
set -eu

find_program() {
    command -v "$1" >/dev/null && return
    for path in "/usr/sbin/$1" /usr/lib/postgresql/*/bin/"$1"; do
        [ ! -x "$path" ] || return 0
    done
    return 1
}

missing=
find_program postgres || missing="$missing postgresql"
find_program mariadbd || missing="$missing mariadb-server"
find_program java || missing="$missing default-jre-headless"
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null; then
    echo "make engines needs what Debian calls$missing, and there is no apt-get: install them." >&2
    exit 1
fi
as_root=
[ "$(id -u)" = 0 ] || as_root=sudo
$as_root apt-get update
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing
