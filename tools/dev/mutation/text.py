"""What of a C++ or device file is code that a mutant may change."""

import re

# Comments, literals and preprocessor lines, in the order in which the first match wins.
_LITERAL = re.compile(r"""
    (?P<comment>//[^\n]*|/\*.*?\*/)
  | (?P<raw>R"(?P<mark>[^()\s\\]{0,16})\(.*?\)(?P=mark)")
  | (?P<string>"(?:\\.|[^"\\\n])*")
  | (?P<character>(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+')
  | (?P<preprocessor>^[ \t]*\#(?:[^\n]*\\\n)*[^\n]*)
""", re.VERBOSE | re.DOTALL | re.MULTILINE)

# Code whose mutants cannot matter to any test, or must not run: pattern -> reason. It ends with the parenthesis that the
# pattern opens, or else with its last character; where there is a group `only`, it is that group.
EXCLUDED = {
    r"\bstatic_assert\(": "speaks at compile time alone",
    r"\bassert\(": "not in a release build",
    r"[.>]reserve\(": "capacity is no result",
    r"\b__builtin_(?:assume|unreachable)\(": "a hint to the optimiser",
    r"(?<=__builtin_expect\()[^;]*?(?P<only>, (?:true|false))\)": "a hint to the optimiser",
    r"\b__launch_bounds__\(": "a bound on registers; results are the same",
    r"\b(?:grow|shrink)_registers<[^<>;]*>\(": "who has how many registers is no result",
    r"\bpin\(": "where the compiler keeps a value is no result (templates/base/pin.cuh)",
    r"\bprefetch_map\(": "an earlier load is no result",
    r"\bl2_policy<[^<>;]*>\(": "what stays in L2 is no result",
    r"\[\[[^\]]*\]\]": "an attribute",
    r"\bmemory_order_\w+": "the order of accesses that x86 keeps anyway",
    r"\b(?:sleep_for|nanosleep|__nanosleep)\(": "a pause is no result",
    r"\b(?:remove_all|kill)\(": "changed, it might harm the machine that runs the mutant",
    r"\b(?:template) <(?=[^;{]*>)[^;{]*>\n": "names of parameters",
}
_EXCLUDED = [(re.compile(pattern), reason) for pattern, reason in EXCLUDED.items()]

# Files and folders of which no mutant is drawn -> reason.
EXCLUDED_FILES = {
    "runtime/python/": "built and tested as a wheel, by no suite of either tier",
    "runtime/examples/": "built by the test of the installation alone, with a build of its own",
    "runtime/include/lacuna/dlpack.h": "not ours",
    "tools/tune/process.cpp": "signals other processes: a mutant might signal all of them",
}


def _blank(text):
    return re.sub(r"[^\n]", " ", text)


def _without_literals(match):
    text = match.group()
    if match["string"]:  # its quotes stay, so that an operator can see what it stands beside
        return '"' + " " * (len(text) - 2) + '"'
    if match["raw"]:
        return '"' + _blank(text[1:-1]) + '"'
    return _blank(text)


def closing(code, opening):
    """The place behind the parenthesis that closes the one at `opening`, or the end of the text."""
    depth = 0
    for place in range(opening, len(code)):
        if code[place] in "([{":
            depth += 1
        elif code[place] in ")]}":
            depth -= 1
            if depth == 0:
                return place + 1
    return len(code)


def code_of(text):
    """`text`, where all that is no code is blank; every other character keeps its place."""
    code = _LITERAL.sub(_without_literals, text)
    for pattern, _ in _EXCLUDED:
        at = 0
        while match := pattern.search(code, at):
            begin, end = match.span("only" if "only" in pattern.groupindex else 0)
            if code[end - 1] == "(":
                end = closing(code, end - 1)
            code = code[:begin] + _blank(code[begin:end]) + code[end:]
            at = end
    return code
