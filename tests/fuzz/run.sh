#!/usr/bin/env bash
# Fuzzes one target for a while and says how to repeat what breaks.
#
#   tests/fuzz/run.sh build/fuzz/bin/fuzz_spec 60
#
# Begins with the corpus of the repository, which stays as it is; new inputs are kept beside the build, in fuzz/NAME, and what
# breaks in fuzz/broken. Exit status: 0 nothing broke, 1 something did, 130 stopped before the end.
set -uo pipefail
program=$(realpath "$1") seconds=$2
name=${program##*/fuzz_}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
found=$(dirname "$(dirname "$program")")/fuzz
mkdir -p "$found/$name" "$found/broken"
interrupted=72  # what libFuzzer exits with on Ctrl-C and SIGTERM
arguments=(-interrupted_exitcode="$interrupted" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=3072 -max_len=8192 -print_final_stats=1)
[[ ! -f $here/dictionaries/$name.dict ]] || arguments+=(-dict="$here/dictionaries/$name.dict")
log=$found/$name.log
status=0
"$program" "${arguments[@]}" -artifact_prefix="$found/broken/$name-" "$found/$name" "$here/corpus/$name" >"$log" 2>&1 || status=$?
if ((status == 0)); then
  grep -E 'cov: |stat::number_of_executed_units' "$log" | tail -2
  echo '[  PASSED  ] 1 test.'  # as tools/dev/test_report.py counts
  exit 0
fi
if ((status == interrupted || status == 130 || status == 143)); then
  grep -E 'cov: |stat::number_of_executed_units' "$log" | tail -2
  echo "fuzz_$name was interrupted; nothing had broken by then."
  exit 130
fi
grep -vE '^#[0-9]+' "$log" | tail -60
input=$(grep -oE "$found/broken/$name-[^ ]+" "$log" | tail -1)
echo "fuzz_$name broke. Repeat: $program $input"
echo "Once it is mended, keep the input: cp $input $here/corpus/$name/"
exit 1
