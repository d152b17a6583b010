#!/bin/sh
# Installs the Debian packages that set-up needs and, with `test`, those that the tests use. A user other than root gets
# the command that installs the missing packages. This runs before anything is built.
set -eu

wanted="openjdk-17-jdk-headless maven g++ python3-dev python3-venv"
case "${1:-run}" in
    run) ;;
    test) wanted="$wanted chromium fonts-dejavu-core openssl prometheus systemd" ;;
    *) echo "usage: $0 [run|test]" >&2; exit 2 ;;
esac

if ! command -v dpkg-query >/dev/null; then
    echo "error: set-up supports Debian 12 and its derivatives only: dpkg-query was not found." >&2
    echo "Install the equivalents of: $wanted; then run \`make setup-python\`." >&2
    exit 1
fi

missing=""
for package in $wanted; do
    state=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null) || state=absent
    [ "$state" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -ne 0 ]; then
    echo "error: these Debian packages are missing. Install them, then run make again:" >&2
    echo "sudo apt-get install --yes --no-install-recommends$missing" >&2
    exit 1
fi

echo "  Installing Debian packages:$missing" >&2
log=$(mktemp)
# Only one of two checkouts that are set up at the same time can hold apt's locks.
exec 9>"${TMPDIR:-/tmp}/strandline-apt.lock"
flock 9
# shellcheck disable=SC2086 # The list is meant to be split.
if ! { apt-get update --quiet --quiet && DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet \
        --no-install-recommends -o DPkg::Lock::Timeout=600 $missing; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    echo "error: apt-get failed; its full output is in $log" >&2
    exit 1
fi
rm -f "$log"
