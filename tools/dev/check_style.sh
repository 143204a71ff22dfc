#!/usr/bin/env bash
# The rules a machine can check: format, lint, file length, retired words (retired_words.txt).
#
#   tools/dev/check_style.sh                 every file
#   tools/dev/check_style.sh runtime tools   the files of these folders
#
# Needs clang-format and clang-tidy 14 or newer; configures build/debug, where each file is compiled by itself.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 3
readonly most_lines=400
vendored=runtime/include/lacuna/dlpack.h
mapfile -t files < <(git ls-files -- "${@:-.}" | grep -E '\.(cpp|hpp|h|cuh)$' | grep -v "^$vendored\$")
failed=0

clang-format --dry-run -Werror "${files[@]}" || failed=1

for file in "${files[@]}"; do
  lines=$(wc -l <"$file")
  ((lines <= most_lines)) || { echo "$file: $lines lines, at most $most_lines"; failed=1; }
done

# Where an old key of a spec is answered with the new one (SpecField::was), the old word stays.
while IFS=$'\t' read -r retired now; do
  [[ $retired == \#* || -z $now ]] && continue
  git grep -nwF -e "$retired" -- "${@:-.}" ':!tools/dev/retired_words.txt' ':!tests/mutants.json' ':!tests/fuzz/corpus' \
    ':!tests/diagnostics/unknown-key-renamed.*' | grep -v '\.was = ' | sed "s/\$/  <- say $now/" | grep . && failed=1
done <tools/dev/retired_words.txt

cmake --preset debug >/dev/null || exit 3
ninja -C build/debug compiler/embedded_headers.cpp >/dev/null || exit 3
# Device code and tests keep to the format alone.
printf '%s\n' "${files[@]}" | grep -E '^(compiler|runtime|cache|tools)/.*\.cpp$' |
  xargs -r -P 2 -n 4 clang-tidy --quiet -p build/debug --extra-arg=-Wno-unknown-warning-option \
    2> >(grep -v 'warnings generated\|Suppressed\|Use -header-filter' >&2) || failed=1
exit $failed
