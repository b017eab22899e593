#!/bin/sh
# The quick tests in a fresh environment: `sh tests/helpers/test_version.sh 3.13`, or `lowest` for the oldest libraries allowed.
# More arguments are pytest's: `sh tests/helpers/test_version.sh lowest -n 2 tests/test_join.py`. KEEP=folder keeps the environment.
set -eu
version=$1
shift
if [ "$version" = lowest ]; then
    python=${PYTHON:-python3}
else
    python=
    for candidate in "python$version" "$HOME"/.pyenv/versions/"$version".*/bin/python; do
        if "$candidate" --version >/dev/null 2>&1; then python=$candidate; fi  # a shim of pyenv may be there, and not work
    done
    [ -n "$python" ] || { echo "Python $version is not here: left out"; exit 0; }
fi
folder=${KEEP:-$(mktemp -d)}
[ -n "${KEEP:-}" ] || trap 'rm -rf "$folder"' EXIT
"$python" -m venv --clear "$folder/venv"
if [ "$version" = lowest ]; then
    "$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check uv
    "$folder/venv/bin/uv" pip install --quiet --python "$folder/venv/bin/python" --resolution lowest-direct -e '.[all,dev]'
else
    "$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[all,dev]'
fi
echo "$version: $("$folder/venv/bin/python" --version)"
NUMBA_CACHE_DIR="$folder/kernels" "$folder/venv/bin/python" -m pytest -q -p no:cacheprovider -n "${JOBS:-2}" "$@"
