#!/usr/bin/env bash
# The recipes for conda and Conan (packaging/) as their own tools read them: rattler-build renders the one, Conan exports
# the other, and both have the version of the project. Installs the tools from PyPI into FOLDER/venv.
#   tests/recipes.sh [FOLDER]    build/recipes by default
set -euo pipefail
# shellcheck source=cmake/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/setup.sh"
work=${1:-$SAMEBYTES_BUILD/recipes}
samebytes_packages peers
mkdir -p "$work"
[ -x "$work/venv/bin/conan" ] || python3 -m venv "$work/venv"
"$work/venv/bin/pip" -q install 'conan>=2,<3' 'py-rattler-build>=0.50' >"$work/pip.log" 2>&1
version=$(sed -n 's/^project(Samebytes VERSION \([0-9.]*\).*/\1/p' "$SAMEBYTES_TOP/CMakeLists.txt")

"$work/venv/bin/python" - "$SAMEBYTES_TOP/packaging/conda/recipe.yaml" "$version" <<'RENDER'
import sys
import rattler_build

path, version = sys.argv[1:]
variants = rattler_build.VariantConfig({"c_compiler": ["gcc"], "cxx_compiler": ["gxx"], "c_stdlib": ["sysroot"],
                                        "c_stdlib_version": ["2.34"]})
(rendered,) = rattler_build.Stage0Recipe.from_file(path).render(variants)
assert f"version='{version}'" in str(rendered), f"{path}: expected version {version}, got {rendered}"
RENDER

export CONAN_HOME=$work/conan
"$work/venv/bin/conan" profile detect --force >"$work/conan.log" 2>&1
"$work/venv/bin/conan" export "$SAMEBYTES_TOP/packaging/conan" >>"$work/conan.log" 2>&1 || { tail -n 20 "$work/conan.log"; exit 1; }
"$work/venv/bin/conan" inspect "$SAMEBYTES_TOP/packaging/conan" 2>/dev/null | grep -qx "version: $version" || {
  echo "packaging/conan: expected version $version" >&2
  exit 1
}
echo "rattler-build renders the conda recipe, Conan exports its own, version $version"
