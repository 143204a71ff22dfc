#!/usr/bin/env bash
# The rules a machine can check: format, lint, file length, retired words (retired_words.txt).
#
#   tools/dev/check_style.sh                 every file
#   tools/dev/check_style.sh runtime tools   the files of these folders
#
# Needs clang-format 14 and clang-tidy 19 (apt-get install clang-tidy-19): older ones do not parse std::ranges::subrange of
# libstdc++ 12. Configures build/release; takes about ten minutes on two cores.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 3
readonly most_lines=400
vendored=runtime/include/lacuna/dlpack.h
mapfile -t files < <(git ls-files -- "${@:-.}" | grep -E '\.(cpp|hpp|h|cuh)$' | grep -v "^$vendored\$")
failed=0
tidy=$(command -v clang-tidy-19) || { echo "check_style.sh: no clang-tidy-19" >&2; exit 3; }

clang-format --dry-run -Werror "${files[@]}" || failed=1

for file in "${files[@]}"; do
  lines=$(wc -l <"$file")
  ((lines <= most_lines)) || { echo "$file: $lines lines, at most $most_lines"; failed=1; }
done

# Where an old key of a spec is answered with the new one (SpecField::was), the old word stays.
while IFS=$'\t' read -r retired now; do
  [[ $retired == \#* || -z $now ]] && continue
  git grep -nwF -e "$retired" -- "${@:-.}" ':!tools/dev/retired_words.txt' ':!tests/mutants.json' ':!tests/fuzz/corpus' \
    ':!tests/diagnostics/unknown-key-renamed.*' | grep -v '\.was = ' | sed "s|\$|  <- say $now|" | grep . && failed=1
done <tools/dev/retired_words.txt

# Device code and tests keep to the format alone. The rest is linted as it is built for a release,
# where the files of a folder are one unit: headers are read once for all of them.
cmake --preset release >/dev/null || exit 3
parts=$(printf '%s\n' "${files[@]}" | grep -oE '^(compiler|cache|runtime|tools)/' | sort -u | paste -sd '|' | tr -d /)
wanted=$(printf '%s|' "${@:-$parts}")
if [[ -n $parts ]]; then
  sed -nE 's/^ *"file": "(.*)",?$/\1/p' build/release/compile_commands.json |
    grep -E "^$PWD/(build/release/)?($parts)/" | grep -v embedded_headers |
    xargs -r -P 2 -n 1 "$tidy" --quiet -p build/release --header-filter="^$PWD/(${wanted%|})[a-z0-9_/]*\.(hpp|cpp)$" \
      --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-sign-conversion --extra-arg=-Wno-deprecated-declarations \
      2> >(grep -v 'warnings generated\|Suppressed\|Use -header-filter' >&2) || failed=1
fi
exit $failed
