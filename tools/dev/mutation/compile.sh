#!/bin/sh
# The compiler launcher of the mutants' build: what a mutant changes is compiled with LACUNA_MUTANT_FLAGS behind its own options.
# shellcheck disable=SC2086
exec $LACUNA_MUTANT_CACHE "$@" $LACUNA_MUTANT_FLAGS
