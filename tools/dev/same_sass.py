#!/usr/bin/env python3
"""Are the kernels of all shipped specs the same, instruction for instruction, before and after a change?

  tools/dev/same_sass.py snapshot build/same-sass/before          # of this checkout, before the change
  tools/dev/same_sass.py compare build/same-sass/before           # with this checkout, after it
  tools/dev/same_sass.py compare build/same-sass/before --specs bsfa,sparge --archs sm_90a
  tools/dev/same_sass.py compare ../other-checkout .              # two checkouts, both built

A side is a checkout with a built command (build/release/bin/lacuna, or --build) or a snapshot of one: the generated
sources and the device headers. Kernels are compared by their place in the launch order; names of specs have to agree,
names of kernels, files, types and variables may differ.

Two kernels are the same without any compilation if their sources, with the headers they include, agree token by token
but for comments, static_asserts, #line directives and a consistent renaming of identifiers. Other pairs are compiled
by NVRTC, and the code sections of the cubins, their constants and their numbers of registers are compared. What a
source compiles to is remembered under build/same-sass/compiled, so that a baseline is compiled once.

Exit 0: all the same. 1: some differ, or only one side has them. 3: something that is needed is missing.
"""
import argparse
import ctypes
import ctypes.util
import glob
import hashlib
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ARCHS = ["sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"]
COMPILED = ROOT / "build" / "same-sass" / "compiled"
LARGE_STACK = 512 << 20  # NVRTC recurses deeply


def stop(message):
    print(f"same_sass: {message}", file=sys.stderr)
    sys.exit(3)


# ---- the sources of a side

@dataclass(frozen=True, order=True)
class Case:
    spec: str
    arch: str
    head_dim: int
    dtype: str
    batch: str = "uniform"

    def name(self):
        return f"{self.spec}.{self.arch}.d{self.head_dim}.{self.dtype}.{self.batch}"


@dataclass
class Side:
    path: Path
    templates: Path
    sources: dict = field(default_factory=dict)  # Case -> text; "" where the target refuses the spec
    headers: dict = field(default_factory=dict)  # path of a header -> its lines


def spec_files(checkout):
    files = [p for p in (checkout / "specs").glob("*.json") if p.stem != "schema"]
    return sorted(files + list((checkout / "specs" / "examples").glob("*.json")))


def emit(command, checkout, path, case):
    environment = dict(os.environ, LACUNA_CACHE_DIR=str(COMPILED.parent / "no-tuning"))
    run = subprocess.run([command, "emit", "--stage", "cuda", path, "--arch", case.arch, "--head-dim", str(case.head_dim),
                          "--dtype", case.dtype, "--batch", case.batch],
                         cwd=checkout, env=environment, capture_output=True, text=True)
    if run.returncode not in (0, 1):
        stop(f"{command} emit {path} --arch {case.arch}: exit {run.returncode}\n{run.stderr}")
    return run.stdout if run.returncode == 0 else ""


def read_checkout(checkout, build, cases_of):
    command = checkout / build / "bin" / "lacuna"
    if not command.exists():
        stop(f"{command} is not built")
    side = Side(checkout, checkout / "templates")
    work = [(path.relative_to(checkout), case) for path in spec_files(checkout) for case in cases_of(path.stem)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        texts = pool.map(lambda item: emit(command, checkout, item[0], item[1]), work)
        side.sources = dict(zip([case for _, case in work], texts))
    return side


def read_snapshot(folder, cases_of):
    side = Side(folder, folder / "templates")
    for record in json.loads((folder / "same-sass.json").read_text()):
        case = Case(**record)
        if case in cases_of(case.spec):
            side.sources[case] = (folder / (case.name() + ".cu")).read_text()
    return side


def read_side(path, build, cases_of):
    path = Path(path).resolve()
    return read_snapshot(path, cases_of) if (path / "same-sass.json").exists() else read_checkout(path, build, cases_of)


def write_snapshot(side, folder):
    if folder.exists() and not (folder / "same-sass.json").exists():
        stop(f"{folder} is there and is no snapshot")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(side.templates, folder / "templates")
    for case, text in side.sources.items():
        (folder / (case.name() + ".cu")).write_text(text)
    (folder / "same-sass.json").write_text(json.dumps([vars(case) for case in side.sources], indent=0))


# ---- one text for each kernel

def split_branches(text):
    """A spec with branches is one file for each, one behind the other; each begins with this line."""
    return [part for part in re.split(r"^(?=// .* Generated by lacuna )", text, flags=re.MULTILINE) if part]


def split_kernels(text):
    """The shared head, then one text for each kernel: each begins with the includes of its templates."""
    hooks = text.find("struct Hooks {")
    begins, previous = [], None
    for found in re.finditer(r"^(#include .*)\n", text[hooks:], re.MULTILINE):
        at = hooks + found.start()
        if previous is None or text[previous:at].strip():
            begins.append(at)
        previous = hooks + found.end()
    ends = begins[1:] + [len(text)]
    return [text[:begins[0]] + text[begin:end] for begin, end in zip(begins, ends)] if begins else []


INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
DROPPED = re.compile(r"^\s*#\s*(line\b|pragma\s+once\b)")


def header_lines(side, path):
    if path not in side.headers:
        side.headers[path] = path.read_text().split("\n")
    return side.headers[path]


def flatten(side, lines, seen):
    """The text with every header in place of its first #include."""
    flat = []
    for line in lines:
        include = INCLUDE.match(line)
        if include:
            path = side.templates / include.group(1)
            if path not in seen:
                seen.add(path)
                flat += flatten(side, header_lines(side, path), seen)
        elif not DROPPED.match(line):
            flat.append(line)
    return flat


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


def is_fixed(name):
    """Names that the compiler knows: keywords, and functions of the CUDA built-in headers (exp2f, __shfl_sync, ...)."""
    return name in FIXED or name.startswith("__") or name in BUILT_INS


BUILT_INS = set("""exp expf exp2f exp10f logf log2f log10f log1pf sqrtf rsqrtf fabsf fmaxf fminf fmaf floorf ceilf roundf
truncf rintf tanhf sinf cosf powf fmodf abs min max isnan isinf isfinite copysignf atomicAdd atomicOr atomicAnd atomicMax
atomicMin atomicExch atomicCAS clock clock64 printf assert memcpy memset size_t""".split())


def tokens_of(text):
    """(kind, text) of what means something; a newline only behind a directive."""
    tokens, in_directive, at_begin = [], False, True
    for found in TOKEN.finditer(text):
        kind, word = found.lastgroup, found.group()
        if kind in ("space", "comment"):
            continue
        if kind == "newline":
            if in_directive:
                tokens.append((kind, word))
            in_directive, at_begin = False, True
            continue
        if at_begin and word == "#":
            in_directive = True
        at_begin = False
        tokens.append((kind, word))
    return tokens


def without_asserts(tokens):
    kept, at = [], 0
    while at < len(tokens):
        if tokens[at] != ("name", "static_assert"):
            kept.append(tokens[at])
            at += 1
            continue
        depth, at = 0, at + 1
        while True:
            depth += {"(": 1, ")": -1}.get(tokens[at][1], 0)
            at += 1
            if depth == 0:
                break
        at += 1  # the semicolon
    return kept


def canonical(text):
    """The tokens, with a number for each identifier by its first occurrence."""
    numbers, words = {}, []
    for kind, word in without_asserts(tokens_of(text)):
        if kind == "name" and not is_fixed(word):
            word = f"~{numbers.setdefault(word, len(numbers))}"
        words.append(word)
    return hashlib.sha256("\x1f".join(words).encode()).hexdigest()


@dataclass
class Kernel:
    name: str
    text: str
    digest: str  # of the canonical text


def kernels_of(side, case, known):
    kernels = []
    for text in (kernel for branch in split_branches(side.sources[case]) for kernel in split_kernels(branch)):
        flat = "\n".join(flatten(side, text.split("\n"), set()))
        key = hashlib.sha256(flat.encode()).hexdigest()
        if key not in known:
            known[key] = canonical(flat)
        name = re.findall(r"^(\w+)\(const __grid_constant__", text, re.MULTILINE)[-1]
        kernels.append(Kernel(name, flat, known[key]))
    return kernels


# ---- NVRTC

class Nvrtc:
    def __init__(self):
        places = [os.environ.get("LACUNA_NVRTC_PATH"), ctypes.util.find_library("nvrtc")]
        places += sorted(glob.glob("/usr/local/cuda*/lib*/libnvrtc.so.1?"), reverse=True) + ["libnvrtc.so"]
        for place in filter(None, places):
            try:
                self.library = ctypes.CDLL(place)
                break
            except OSError:
                continue
        else:
            stop("no NVRTC (name the library in LACUNA_NVRTC_PATH)")
        major, minor = ctypes.c_int(), ctypes.c_int()
        self.library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        self.version = f"{major.value}.{minor.value}"

    def fetch(self, program, what):
        size = ctypes.c_size_t()
        getattr(self.library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        getattr(self.library, f"nvrtcGet{what}")(program, buffer)
        return buffer.raw

    def cubin(self, text, arch):
        program = ctypes.c_void_p()
        options = [f"--gpu-architecture={arch}", "-std=c++17", "-default-device", "-no-source-include"]
        array = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
        self.library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None)
        result = self.library.nvrtcCompileProgram(program, len(options), array)
        if result != 0:
            stop(f"NVRTC cannot compile a kernel for {arch}:\n" + self.fetch(program, "ProgramLog").decode()[:4000])
        cubin = self.fetch(program, "CUBIN")
        self.library.nvrtcDestroyProgram(ctypes.byref(program))
        return cubin


def sections_of(cubin):
    """(name, content, sh_info) of an ELF file of 64 bits."""
    begin, = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names = struct.unpack_from("<HHH", cubin, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", cubin, begin + n * size) for n in range(count)]
    table = headers[names][4]
    for name, kind, _, _, offset, length, _, info, _, _ in headers:
        text = cubin[table + name:cubin.index(b"\0", table + name)].decode()
        yield text, b"" if kind == 8 else cubin[offset:offset + length], info


def reads_globals(cubin):
    """Does an instruction take an address of a global from bank 4? Every static constexpr member of a class is such a global,
    used or not, and a member more or less changes their table. Without a disassembler: as if one did."""
    disassembler = shutil.which("nvdisasm")
    if disassembler is None:
        return True
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        listing = subprocess.run([disassembler, "-c", file.name], capture_output=True, text=True)
    return listing.returncode != 0 or re.search(r"\b(c\[0x4\]|cx\[)", listing.stdout) is not None


def machine_code(cubin, entry):
    """What has to agree: instructions, constants, registers (bits 24 up of the section's info), static shared memory."""
    parts = {}
    has_globals = reads_globals(cubin)
    for name, content, info in sections_of(cubin):
        if name in (".nv.constant4", ".nv.global.init") and not has_globals:
            continue
        if name.startswith((".text.", ".nv.constant", ".nv.global.init")):
            plain = name.replace(entry, "ENTRY")
            parts[plain] = hashlib.sha256(content).hexdigest() + (f" registers {info >> 24}" if ".text." in name else "")
    if ".text.ENTRY" not in parts:
        stop(f"no code of {entry} in its cubin: {sorted(parts)}")
    return parts


class Compiler:
    """What kernels compile to, remembered by their text."""

    def __init__(self):
        self.nvrtc = None
        self.lock = threading.Lock()
        self.compiled = 0

    def machine_code(self, kernel, arch):
        with self.lock:
            self.nvrtc = self.nvrtc or Nvrtc()
        # "globals": caches of parts that always held the globals have other keys.
        key = hashlib.sha256(f"globals {self.nvrtc.version} {arch}\n{kernel.text}".encode()).hexdigest()
        path = COMPILED / (key + ".json")
        if path.exists():
            return json.loads(path.read_text())
        parts = machine_code(self.nvrtc.cubin(kernel.text, arch), kernel.name)
        COMPILED.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=COMPILED, delete=False) as file:
            json.dump(parts, file)
        os.replace(file.name, path)
        self.compiled += 1
        return parts


# ---- the comparison

@dataclass
class Pair:
    case: Case
    before: Kernel
    after: Kernel


def pair_up(before, after):
    pairs, problems, known = [], [], {}
    for case in sorted(before.sources.keys() | after.sources.keys()):
        sides = [side for side in (before, after) if side.sources.get(case)]
        if not sides:
            continue  # refused by both
        if len(sides) == 1:
            problems.append(f"{case.name()}: only in {sides[0].path}")
            continue
        old, new = kernels_of(before, case, known), kernels_of(after, case, known)
        if len(old) != len(new) or not old:
            problems.append(f"{case.name()}: {len(old)} kernels, then {len(new)}")
            continue
        pairs += [Pair(case, *kernels) for kernels in zip(old, new)]
    return pairs, problems


def compare(before, after, jobs):
    pairs, problems = pair_up(before, after)
    unlike = [pair for pair in pairs if pair.before.digest != pair.after.digest]
    print(f"{len(pairs)} pairs of kernels, {len(unlike)} of them with other sources", flush=True)
    compiler = Compiler()
    threading.stack_size(LARGE_STACK)

    def differs(pair):
        arch = pair.case.arch
        old, new = compiler.machine_code(pair.before, arch), compiler.machine_code(pair.after, arch)
        return sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))

    with ThreadPoolExecutor(jobs) as pool:
        for pair, parts in zip(unlike, pool.map(differs, unlike)):
            if parts:
                problems.append(f"{pair.case.name()}: {pair.before.name}, then {pair.after.name}: {', '.join(parts)}")
                print("DIFFERS " + problems[-1], flush=True)
    for problem in problems:
        print("PROBLEM " + problem)
    print(f"{len(pairs) - len(unlike)} the same by their sources, {len(unlike)} compared as machine code "
          f"({compiler.compiled} compilations), {len(problems)} problems")
    return 1 if problems or not pairs else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["snapshot", "compare"])
    parser.add_argument("before", help="a snapshot, or a checkout; with `snapshot`: where to write it")
    parser.add_argument("after", nargs="?", default=str(ROOT), help="the same; this checkout if left out")
    parser.add_argument("--specs", help="only these, with commas between them")
    parser.add_argument("--archs", default=",".join(ARCHS))
    parser.add_argument("--head-dims", default="128")
    parser.add_argument("--dtypes", default="bf16")
    parser.add_argument("--batches", default="uniform", help="of uniform,sequences,pages")
    parser.add_argument("--build", default="build/release", help="the folder of a checkout's build")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    wanted = set(options.specs.split(",")) if options.specs else None

    def cases_of(spec):
        if wanted and spec not in wanted:
            return []
        return [Case(spec, arch, int(head_dim), dtype, batch) for arch in options.archs.split(",")
                for head_dim in options.head_dims.split(",") for dtype in options.dtypes.split(",")
                for batch in options.batches.split(",")]

    after = read_side(options.after, options.build, cases_of)
    if options.action == "snapshot":
        write_snapshot(after, Path(options.before).resolve())
        print(f"{len(after.sources)} sources in {options.before}")
        return 0
    return compare(read_side(options.before, options.build, cases_of), after, options.jobs)


if __name__ == "__main__":
    sys.exit(main())
