# What .ci/run and .ci/full have in common; they read it with `source`. A lane is a function that runs beside others: what it prints
# is shown when it is awaited, and if it failed, so does the script.
cd "$(dirname "${BASH_SOURCE[0]}")/.."
project=$PWD
python=${PYTHON:-python3}
work=$(mktemp -d)
declare -A lanes=()
trap 'for each in "${lanes[@]}"; do kill -- "-$each" 2> /dev/null || true; done; rm -rf "$work"' EXIT
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_QUIET=1 PIP_COMPILE=0 PYPOPLAR_CACHE_DIR=$work/cache
export PYTHONPYCACHEPREFIX=$work/bytecode # a module is compiled once, for every process that tests start, and leaves nothing here
unset POPLAR_ENGINE_OPTIONS PYTHONPATH PYTHONDONTWRITEBYTECODE

step() { printf '\n== %s (%s)\n' "$*" "$(date +%T)"; }

# beside LANE COMMAND...: run it in a group of processes of its own, which ends with this script.
beside() {
    local lane=$1
    shift
    set -m
    "$@" > "$work/$lane.log" 2>&1 < /dev/null &
    set +m
    lanes[$lane]=$!
}

# await LANE...: show what each has printed when it is done.
await() {
    local lane status
    for lane in "$@"; do
        status=0
        wait "${lanes[$lane]}" || status=$?
        unset "lanes[$lane]"
        cat "$work/$lane.log"
        [ "$status" = 0 ] || exit "$status"
    done
}

# environment NAME PACKAGES...: a new one with these packages.
environment() {
    local place=$work/$1
    shift
    "$python" -m venv "$place"
    "$place/bin/pip" install "$@"
}

# PyTorch for the CPU, without a graphics card's several GB; TORCH names another package to install.
torch=${TORCH:-torch==2.13.0+cpu}

browser() {
    step "a browser for the tests of pages and of the site"
    if ! command -v chromium > /dev/null || ! command -v chromedriver > /dev/null; then
        if [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
            apt-get update > "$work/output" 2>&1 || { cat "$work/output"; exit 1; }
            DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends chromium chromium-driver > "$work/output" 2>&1 ||
                { cat "$work/output"; exit 1; }
        else
            echo "none here, and no right to install one: the tests that need it are skipped"
        fi
    fi
}

site() {
    step "the site: every link leads somewhere, every name has its page"
    "$work/tools/bin/sphinx-build" -q -W --keep-going -j auto docs "$work/site"
}
