"""Device code as a list of declarations, and those of them that a kernel reaches.

What a kernel compiles to follows from the declarations that its entry reaches by name. So two kernels are compared by
these alone, in the order in which they are reached: declarations may move from header to header, and others may come
and go. Names may change too, as long as each changes everywhere alike, and a constant may stand for its number.

This takes a program apart without a compiler. What it does not recognise, it keeps, so that it errs towards calling
kernels different; what order of declarations means to C++ (an overload that is declared behind its use) it does not see.
"""
import hashlib
import re
from dataclasses import dataclass
from functools import cached_property

TOKEN = re.compile(r"""
    (?P<space>[ \t\r\f\v]+|\\\n) | (?P<comment>//[^\n]*|/\*.*?\*/) | (?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
  | (?P<number>\.?[0-9](?:[eEpP][+-]|[0-9a-zA-Z_.])*) | (?P<name>[A-Za-z_]\w*) | (?P<newline>\n) | (?P<other>.)""",
                   re.VERBOSE | re.DOTALL)
# Words that mean the same in every text: a renaming may not touch them.
FIXED = set("""alignas alignof asm auto bool break case char class const constexpr const_cast continue decltype default
delete do double dynamic_cast else enum explicit extern false final float for friend goto if inline int long mutable
namespace new noexcept nullptr operator override private protected public register reinterpret_cast return short signed
sizeof static static_assert static_cast struct switch template this throw true typedef typename union unsigned using
virtual void volatile while define undef ifdef ifndef elif endif pragma unroll error defined main
threadIdx blockIdx blockDim gridDim warpSize x y z w int2 int4 uint2 uint4 float2 float4 make_int2 make_int4 make_uint2
make_uint4 make_float2 make_float4 dim3""".split())
BUILT_INS = set("""exp expf exp2f exp10f logf log2f log10f log1pf sqrtf rsqrtf fabsf fmaxf fminf fmaf floorf ceilf roundf
truncf rintf tanhf sinf cosf powf fmodf abs min max isnan isinf isfinite copysignf atomicAdd atomicOr atomicAnd atomicMax
atomicMin atomicExch atomicCAS clock clock64 printf assert memcpy memset size_t""".split())
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
DROPPED = re.compile(r"^\s*#\s*(line\b|pragma\s+once\b|include\b).*$", re.MULTILINE)


def is_fixed(name):
    """Names that the compiler knows: keywords, and functions of the CUDA built-in headers (exp2f, __shfl_sync, ...)."""
    return name in FIXED or name.startswith("__") or name in BUILT_INS


@dataclass(frozen=True)
class Token:
    kind: str  # of TOKEN's groups
    word: str


def tokens_of(text):
    """What means something; a newline only behind a directive."""
    tokens, in_directive, at_begin = [], False, True
    for found in TOKEN.finditer(text):
        kind, word = found.lastgroup, found.group()
        if kind in ("space", "comment"):
            continue
        if kind == "newline":
            if in_directive:
                tokens.append(Token(kind, word))
            in_directive, at_begin = False, True
            continue
        if at_begin and word == "#":
            in_directive = True
        at_begin = False
        tokens.append(Token(kind, word))
    return tokens


OPENING, CLOSING = {"(": 1, "[": 1, "{": 1}, {")": -1, "]": -1, "}": -1}
NESTING = OPENING | CLOSING


def end_of_group(tokens, at):
    """Behind the bracket that closes the one at `at`."""
    depth = 0
    while True:
        depth += NESTING.get(tokens[at].word, 0)
        at += 1
        if depth == 0:
            return at


def end_of_angles(tokens, at):
    """Behind the > that closes the < at `at`."""
    depth = 0
    while at < len(tokens):
        word = tokens[at].word
        if word in OPENING:
            at = end_of_group(tokens, at)
            continue
        depth += {"<": 1, ">": -1}.get(word, 0)
        at += 1
        if depth == 0:
            return at
    return at


def without_asserts(tokens):
    kept, at = [], 0
    while at < len(tokens):
        if tokens[at] == Token("name", "static_assert"):
            at = end_of_group(tokens, at + 1) + 1  # the semicolon
        else:
            kept.append(tokens[at])
            at += 1
    return kept


ATTRIBUTES = {"__launch_bounds__", "alignas", "__align__", "decltype", "__attribute__", "noexcept"}


def declared_names(tokens):
    """Of a declaration; nothing where it is not clear which: such a one always counts."""
    at = 0
    while tokens[at].word == "template":
        at = end_of_angles(tokens, at + 1)
    words = [token.word for token in tokens[at:]]
    if words[0] in ("struct", "class", "union", "enum"):
        return names_of_type(tokens, at)
    if words[0] == "using":
        return (words[1],) if words[2] == "=" else ()
    if words[0] in ("extern", "typedef", "#", ";") or "operator" in words:
        return ()
    return name_of_variable_or_function(tokens, at)


def names_of_type(tokens, at):
    is_open_enum = tokens[at].word == "enum" and tokens[at + 1].word not in ("class", "struct")
    at += 1
    while tokens[at].word in ("class", "struct") or tokens[at].word in ATTRIBUTES:
        at = end_of_group(tokens, at + 1) if tokens[at].word in ATTRIBUTES else at + 1
    if tokens[at].kind != "name":
        return ()
    if is_open_enum:  # its values are names of the scope around it
        return tuple(token.word for token in tokens[at:] if token.kind == "name")
    return (tokens[at].word,)


def name_of_variable_or_function(tokens, at):
    name = qualifier = None
    while at < len(tokens):
        token = tokens[at]
        if token.word in ATTRIBUTES and tokens[at + 1].word == "(":
            at = end_of_group(tokens, at + 1)
        elif token.kind == "name":
            if name is not None and tokens[at - 1].kind == "name":  # what is qualified was a type in front of it
                qualifier = None
            name, at = token.word, at + 1
        elif token.word == "<":
            at = end_of_angles(tokens, at)
        elif token.word == ":":
            qualifier, at = name, at + 2
        elif token.word in "(=;{[":
            break
        elif token.word == ",":  # several variables, which one_by_one has not taken apart
            return ()
        else:
            qualifier, at = None, at + 1
    if name is None or is_fixed(name):
        return ()
    # A member that is defined outside of its class comes with the class.
    return (qualifier,) if qualifier not in (None, "lacuna") else (name,)


NUMBER = re.compile(r"[0-9]+")
CONSTANT_NAME = re.compile(r"k[A-Z]\w*")  # which nothing but a constant has
CONSTANT = ("inline", "constexpr", "int")
NOT_A_TYPE = {"return", "case", "else", "sizeof", "lacuna"}


class Declaration:
    def __init__(self, tokens, names):
        self.tokens, self.names = tokens, names
        self.uses = tuple(dict.fromkeys(t.word for t in tokens if t.kind == "name" and not is_fixed(t.word)))
        self.content = hashlib.sha256("\x1f".join(t.word for t in tokens).encode()).digest()

    @cached_property
    def constant(self):
        """The number of `inline constexpr int kName = number;`."""
        words = [token.word for token in self.tokens]
        is_constant = len(words) == 7 and tuple(words[:3]) == CONSTANT and words[4] == "=" and NUMBER.fullmatch(words[5])
        return words[5] if is_constant and CONSTANT_NAME.fullmatch(words[3]) else None

    @cached_property
    def declares(self):
        """Names like those of constants in front of which a type stands, or that are values of an enum: members, local ones."""
        is_enum = self.tokens[0].word == "enum"
        return {token.word for before, token in zip(self.tokens, self.tokens[1:]) if CONSTANT_NAME.fullmatch(token.word) and
                (is_enum or (before.kind == "name" and before.word not in NOT_A_TYPE))}


def end_of_declaration(tokens, at):
    """Behind the semicolon, or behind the body of a function."""
    is_initialised = False
    while at < len(tokens):
        word = tokens[at].word
        if word == ";":
            return at + 1
        is_initialised |= word == "="
        if word not in OPENING:
            at += 1
            continue
        at = end_of_group(tokens, at)
        if word == "{" and not is_initialised and (at == len(tokens) or tokens[at].word != ";"):
            return at
    return at


def end_of_directive(tokens, at):
    while tokens[at].kind != "newline":
        at += 1
    return at + 1


MACRO_NAME = re.compile(r"[A-Z][A-Z0-9_]+")


def is_macro_call(tokens, at):
    """As LACUNA_OPTIONAL_FIELD(...), behind which no semicolon ends the declaration."""
    return tokens[at].kind == "name" and MACRO_NAME.fullmatch(tokens[at].word) and tokens[at + 1].word == "("


def one_by_one(tokens):
    """`inline constexpr int kA = 1, kB = 2;` as two declarations."""
    head = 3
    if [token.word for token in tokens[:2]] != ["inline", "constexpr"] or len(tokens) < 5 or tokens[head + 1].word != "=":
        return [tokens]
    parts, begin, at = [], head, head
    while at < len(tokens):
        if tokens[at].word in OPENING:
            at = end_of_group(tokens, at)
            continue
        if tokens[at].word in ",;":
            parts.append(tokens[:head] + tokens[begin:at] + [Token("other", ";")])
            begin = at + 1
        at += 1
    # A comma may also stand between arguments of a template.
    return parts if all(len(part) > head + 2 and part[head + 1].word == "=" for part in parts) else [tokens]


def parse(text):
    """The declarations of a text at namespace scope, in their order, without asserts and includes."""
    tokens = without_asserts(tokens_of(DROPPED.sub("", text) + "\n"))
    is_conditional = re.search(r"^\s*#\s*if", text, re.MULTILINE) is not None
    found, at = [], 0
    while at < len(tokens):
        if tokens[at].word == "namespace":
            while tokens[at].word != "{":
                at += 1
            at += 1
        elif tokens[at].word == "}":
            at += 1
        elif is_macro_call(tokens, at):  # it may declare any of its arguments
            end = end_of_group(tokens, at + 1)
            names = tuple(token.word for token in tokens[at + 2:end] if token.kind == "name" and not is_fixed(token.word))
            found.append(Declaration(tokens[at:end], () if is_conditional else names))
            at = end
        else:
            is_directive = tokens[at].word == "#"
            end = end_of_directive(tokens, at) if is_directive else end_of_declaration(tokens, at)
            part, at = tokens[at:end], end
            if is_conditional or is_directive:
                is_macro = not is_conditional and part[1].word == "define"
                found.append(Declaration(part, (part[2].word,) if is_macro else ()))
            else:
                found += [Declaration(each, declared_names(each)) for each in one_by_one(part)]
    return found


def reached(declarations):
    """Those that count, in an order that does not depend on where they stand: first all without a name (the entry), then
    what they use, and so on. Declarations of one name keep their order."""
    groups = {}
    for declaration in declarations:
        for name in declaration.names:
            groups.setdefault(name, []).append(declaration)
    order = [declaration for declaration in declarations if not declaration.names]
    seen, done = set(map(id, order)), set()
    for declaration in order:  # which grows
        for name in declaration.uses:
            if name in done:
                continue
            done.add(name)
            for other in groups.get(name, ()):
                if id(other) not in seen:
                    seen.add(id(other))
                    order.append(other)
    return order


def fingerprint(order):
    """The same for the same declarations in the same order."""
    return hashlib.sha256(b"".join(declaration.content for declaration in order)).hexdigest()


def canonical(order):
    """The same for declarations that agree but for names, and for constants in place of their numbers."""
    constants = {declaration.names[0]: declaration.constant for declaration in order if declaration.constant is not None}
    for declaration in order:
        if declaration.constant is None:
            for name in declaration.declares & constants.keys():
                del constants[name]
    numbers, words = {}, []
    for declaration in order:
        if declaration.constant is not None and declaration.names[0] in constants:
            continue
        for token in declaration.tokens:
            word = token.word
            if token.kind == "name" and not is_fixed(word):
                word = constants.get(word) or f"~{numbers.setdefault(word, len(numbers))}"
            words.append(word)
    return hashlib.sha256("\x1f".join(words).encode()).hexdigest()
