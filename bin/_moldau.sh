# Sourced by the scripts beside it: finds a Python that has moldau and hands over to it.
run_moldau() {
    # The scripts may be reached by a link, as from /usr/local/bin.
    bin_folder=$(dirname "$(readlink -f "$0")")
    MOLDAU_SCRIPT=$(basename "$0" .sh)
    export MOLDAU_SCRIPT
    if [ -x "$bin_folder/../.venv/bin/python" ]; then
        exec "$bin_folder/../.venv/bin/python" -m moldau.cli "$@"
    elif command -v moldau >/dev/null 2>&1; then
        exec moldau "$@"
    fi
    echo "$MOLDAU_SCRIPT: moldau is not installed. Run 'make run' once, or 'pip install .'" >&2
    exit 1
}
