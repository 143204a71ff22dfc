"""The operators: each a row of the tables below. An operator finds, in the code of a file (text.code_of), places and what
stands there instead."""

import re
from dataclasses import dataclass
from typing import Callable

from mutation.text import closing

DEVICE = r"^templates/"
HOST = r"^(compiler|cache|runtime|tools)/"
ALL = r"^"


@dataclass(frozen=True)
class Operator:
    name: str
    weight: float  # its share of a draw, beside those of the others
    where: str     # pattern of the paths that it applies to
    find: Callable  # code -> (begin, end, replacement) of each place


def exchange(pattern, *replacements):
    """Each replacement in turn for the whole match: a text that may name its groups, or a function of the match."""
    compiled = re.compile(pattern, re.MULTILINE)

    def find(code):
        for match in compiled.finditer(code):
            for replacement in replacements:
                after = replacement(match) if callable(replacement) else match.expand(replacement)
                if after is not None and after != match.group():
                    yield match.start(), match.end(), after
    return find


def one_for_another(words, before="", behind=""):
    """Each word for those that stand beside it; `before` and `behind` are what surrounds it."""
    pattern = "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
    finds = re.compile(f"{before}({pattern}){behind}")

    def find(code):
        for match in finds.finditer(code):
            for other in words[match[1]]:
                yield match.start(1), match.end(1), other
    return find


def conditions(code):
    """`if (...)` and `while (...)` the other way round, but for those that declare something."""
    for match in re.finditer(r"\b(?:if|if constexpr|while) \(", code):
        begin, end = match.end(), closing(code, match.end() - 1) - 1
        condition = code[begin:end]
        if condition.strip() and ";" not in condition and not re.search(r"[^=!<>]=[^=]", condition):
            yield begin, end, f"!({condition})"


# A whole statement that calls or assigns: begins a line behind the end of another, and is no declaration.
_STATEMENT = re.compile(r"(?:(?<=[;{})])|^)[ ]*\n[ ]+(?P<text>(?:\+\+|--|[*(:])?[\w:]+(?:[\w.:\[\]]|->|<[\w:, ]*>|\([^;{}]*?\))*"
                        r"(?:\s(?:[-+*/%&|^]|<<|>>)?=\s[^;{}]*)?;)", re.MULTILINE)
_NO_CALL = re.compile(r"(?:return|break|continue|using|typedef|case|default|goto|else|throw|namespace|friend|public|private|"
                      r"protected|do|delete|new|static|const|constexpr)\b|\w+;")


def statements(code):
    for match in _STATEMENT.finditer(code):
        if not _NO_CALL.match(match["text"]):
            yield match.start("text"), match.end("text"), ";"


def returns(code):
    """Another value for the one returned."""
    for match in re.finditer(r"\breturn (?P<value>[^;{}]+);", code):
        if not re.fullmatch(r"true|false|nullptr|[-\d.f]+", match["value"]):
            yield match.start("value"), match.end("value"), "{}"


def loop_bounds(code):
    """The last step of a loop left out, or its first."""
    for match in re.finditer(r"\bfor \((?P<first>[^;()]*); (?P<bound>[^;]*);", code):
        for compare in re.finditer(r" (?P<sign><|>) ", match["bound"]):
            at = match.start("bound") + compare.start()
            yield at, at + 3, {"<": " + 1 < ", ">": " - 1 > "}[compare["sign"]]
        if first := re.search(r"= (?P<value>[\w.]+)$", match["first"]):
            yield match.start("first") + first.start("value"), match.start("first") + first.end("value"), first["value"] + " + 1"


def quotients(code):
    """A quotient rounded down that was rounded up."""
    for match in re.finditer(r"\b(?P<name>ceil_div)\((?=[^()]*(?:\([^()]*\)[^()]*)*\))", code):
        end = closing(code, match.end() - 1)
        depth, commas = 0, []
        for place in range(match.end(), end - 1):
            depth += (code[place] in "([{") - (code[place] in ")]}")
            if code[place] == "," and depth == 0:
                commas.append(place)
        if len(commas) == 1:
            left, right = code[match.end():commas[0]], code[commas[0] + 1:end - 1].strip()
            yield match.start(), end, f"(({left}) / ({right}))"


def without_a_bit(match):
    """A hexadecimal number without its highest bit."""
    value = int(match["digits"], 16)
    return f"0x{value & ~(1 << value.bit_length() - 1):0{len(match['digits'])}x}{match['suffix']}" if value else None


def step(by):
    def changed(match):
        value = int(match["number"]) + by
        return f"{value}{match['suffix']}" if value >= 0 else None
    return changed


def scaled(match):
    return f"1.0{match['tail']}" if not match["number"].strip("0.") else f"(2 * {match.group()})"


NAME = r"[A-Za-z_][\w]*(?:(?:\.|->|::)[A-Za-z_]\w*)*"
CALL_OR_NAME = NAME + r"(?:\(\))?"
# Not beside a text: what joins texts has one sign alone.
PLUS_BEFORE, PLUS_BEHIND = r'(?<=[\w)\]] )', r'(?= [\w(*&!~-])'
CALLER = r"(?<![\w.>:(])(?<!= )(?<!, )(?<!return )(?:[\w:]+(?:\([^;{}]*?\)|\[[^;\]]*\])?(?:\.|->))*"

FIELD = [
    Operator("barrier_dropped", 12, DEVICE, exchange(CALLER + r"(?:__syncthreads|__syncwarp|sync)\([^;{}]*\);", ";")),
    Operator("arrival_dropped", 8, DEVICE, exchange(CALLER + r"arrive\w*\([^;{}]*\);", ";")),
    Operator("wait_dropped", 12, DEVICE, exchange(
        CALLER + r"(?:wait|await|await_\w+|wgmma_wait(?:<[^;<>]*>)?|fence_accumulator|arrived|cp_async_wait(?:<[^;]*>)?|"
        r"tma_store_wait_read)\([^;{}]*\);", ";")),
    Operator("fence_dropped", 10, DEVICE, exchange(
        CALLER + r"(?:fence_\w+|__threadfence\w*|wgmma_begin|wgmma_commit|cp_async_commit|tma_store_commit)\([^;{}]*\);", ";")),
    Operator("wait_too_short", 2, DEVICE, exchange(r"\b(?P<call>wgmma_wait|cp_async_wait)<(?P<pending>[^;]*?)>\(\)",
                                                   r"\g<call><\g<pending> + 1>()")),
    Operator("phase_flipped", 8, DEVICE, exchange(r"\b(?P<phase>phase\(\))(?P<flip> \^ 1)?",
                                                  lambda match: match["phase"] + ("" if match["flip"] else " ^ 1"))),
    Operator("slot_reused_early", 8, DEVICE, exchange(r"\b" + NAME + r"\.advance\(\);", ";")),
    Operator("other_slot", 4, DEVICE, exchange(r"\b(?P<at>\w+)\.slot\(\)", r"\g<at>.before().slot()")),
    Operator("ring_shortened", 3, DEVICE, exchange(r"(?P<size>\bk?\w*(?:[Ss]tages|[Ss]lots|[Bb]uffers|[Aa]head)) - 1\b", r"\g<size>")),
    Operator("full_for_empty", 5, DEVICE, one_for_another(
        {"_full": ["_empty"], "_empty": ["_full"]}, r"(?<=\w)", r"(?=\[)")),
    Operator("mask_bit_lost", 5, ALL, exchange(r"\b0[xX](?P<digits>[0-9a-fA-F]+)(?P<suffix>[uUlL]*)\b", without_a_bit)),
    Operator("vote_lost", 6, DEVICE, exchange(r"\b(?P<vote>__ballot_sync\([^;()]*(?:\([^;()]*\)[^;()]*)*\))", r"(\g<vote> & ~1u)")),
    Operator("flag_not_set", 2, ALL, exchange(r" \| " + NAME + r"(?=[;,)])", "")),
    Operator("flag_ignored", 3, ALL, exchange(r"\bif (?P<at>(?:constexpr )?)\(!?" + CALL_OR_NAME + r"\)", r"if \g<at>(true)",
                                              r"if \g<at>(false)")),
    Operator("condition_ignored", 2, ALL, exchange(r" (?:&&|\|\|) !?" + CALL_OR_NAME + r"(?=[;,)?]|:(?!:)| [?&|])", "")),
    Operator("bound_off_by_one", 3, ALL, exchange(r"(?<=[\w)\]]) [-+] 1\b(?![\w.])", "")),
    Operator("rounded_down", 3, ALL, quotients),
    Operator("order_exchanged", 1, ALL, exchange(
        rf"(?<=[({{,])(?P<space> ?)(?P<a>{NAME}), (?P<b>{NAME})(?=[,)}}])", r"\g<space>\g<b>, \g<a>")),
    Operator("direction_exchanged", 3, ALL, one_for_another(
        {"ascending": ["descending"], "descending": ["ascending"], "Config::kDescending": ["!Config::kDescending"],
         "kAscending": ["kDescending"], "kDescending": ["kAscending"], "greater": ["less"], "less": ["greater"]},
        r"(?:(?<=[.>:])|\b(?=Config::))", r"\b(?! [=:])")),
    Operator("twin_exchanged", 3, ALL, one_for_another(
        {"stride_b": ["stride_h"], "stride_h": ["stride_n"], "stride_n": ["stride_h"], "n_q": ["n_k"], "n_k": ["n_q"],
         "n_h": ["n_b"], "n_b": ["n_h"], "tile_q": ["tile_k"], "tile_k": ["tile_q"], "kTileQ": ["kTileK"], "kTileK": ["kTileQ"],
         "q_tiles": ["k_tiles"], "k_tiles": ["q_tiles"], "heads": ["heads_kv"], "heads_kv": ["heads"], "q0": ["q1"], "q1": ["q0"],
         "k0": ["k1"], "k1": ["k0"], "lo": ["hi"], "hi": ["lo"], "begin": ["end"]}, r"(?<=[.>:])", r"\b(?!\()")),
]

USUAL = [
    Operator("relation", 4, ALL, one_for_another(
        {"<": ["<=", ">="], "<=": ["<", ">"], ">": [">=", "<="], ">=": [">", "<"], "==": ["!="], "!=": ["=="]},
        r"(?<=[\w)\]\"'] )(?<!template )", r"(?= )")),
    Operator("arithmetic", 4, ALL, one_for_another(
        {"+": ["-"], "-": ["+"], "*": ["/"], "/": ["*"], "%": ["*"]}, PLUS_BEFORE, PLUS_BEHIND)),
    Operator("bitwise", 2, ALL, one_for_another(
        {"&": ["|"], "|": ["&"], "^": ["|"], "<<": [">>"], ">>": ["<<"]}, PLUS_BEFORE, PLUS_BEHIND)),
    Operator("logical", 3, ALL, one_for_another({"&&": ["||"], "||": ["&&"]}, "(?<= )", "(?= )")),
    Operator("assignment", 2, ALL, one_for_another(
        {"+=": ["-="], "-=": ["+="], "*=": ["/="], "/=": ["*="], "|=": ["&=", "="], "&=": ["|=", "="], "<<=": [">>="], ">>=": ["<<="],
         "^=": ["|="]}, "(?<= )", "(?= )")),
    Operator("increment", 1, ALL, one_for_another({"++": ["--"], "--": ["++"]}, r"(?<![\w)\]])", r"(?=[\w(*])")),
    Operator("complement", 1, ALL, exchange(r"(?<=[ (])[~!](?=[\w(])", "")),
    Operator("constant", 4, ALL, exchange(r"(?<![\w.'\]])(?P<number>\d+)(?P<suffix>[uUlL]*)\b(?![.'\"])", step(1), step(-1))),
    Operator("float_constant", 2, ALL, exchange(r"(?<![\w.])(?P<number>\d+\.\d*)(?P<tail>(?:e[-+]?\d+)?f?)\b", scaled)),
    Operator("boolean", 2, ALL, one_for_another({"true": ["false"], "false": ["true"]}, r"\b", r"\b")),
    Operator("condition_negated", 4, ALL, conditions),
    Operator("choice_exchanged", 2, ALL, exchange(
        r"(?<= \? )(?P<a>[\w.:\[\]()]+|-\d+) : (?P<b>[\w.:\[\]]+(?:\([^;()]*\))?|-\d+)(?=[;,)}])", r"\g<b> : \g<a>")),
    Operator("loop_bound", 3, ALL, loop_bounds),
    Operator("statement_deleted", 5, ALL, statements),
    Operator("return_value", 3, ALL, returns),
    Operator("jump", 1, ALL, exchange(r"\b(?P<jump>break|continue);", lambda match: "continue;" if match["jump"] == "break" else "break;")),
    Operator("extremum", 2, ALL, one_for_another(
        {"min": ["max"], "max": ["min"], "smaller": ["larger"], "larger": ["smaller"], "fmaxf": ["fminf"], "fminf": ["fmaxf"]},
        r"(?<![\w.])(?:std::)?", r"(?=\()")),
]

# Where two find the same change, the first has it.
OPERATORS = FIELD + USUAL
