"""Sources to machine code, by NVRTC, and what of a cubin has to agree."""
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
import tempfile
import threading

from sass.declarations import tokens_of
from sass.sources import COMPILED, stop


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
    """(name, content) of an ELF file of 64 bits; of sections that have a size alone, so many zeros."""
    begin, = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names = struct.unpack_from("<HHH", cubin, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", cubin, begin + n * size) for n in range(count)]
    table = headers[names][4]
    for name, kind, _, _, offset, length, *_ in headers:
        text = cubin[table + name:cubin.index(b"\0", table + name)].decode()
        yield text, bytes(length) if kind == 8 else cubin[offset:offset + length]


REGISTERS = 0x2F  # an attribute of .nv.info (cuobjdump -elf: EIATTR_REGCOUNT): a symbol, and the registers of its threads
WITH_VALUE = 4  # the format of an attribute whose value follows it; else the value stands in the place of its size


def registers_of(info):
    """Of each function, in the order of .nv.info. The sections of code say it only up to sm_89."""
    counts, at = [], 0
    while at < len(info):
        form, attribute, size = struct.unpack_from("<BBH", info, at)
        at += 4
        if form == WITH_VALUE:
            if attribute == REGISTERS:
                counts.append(struct.unpack_from("<II", info, at)[1])
            at += size
    return counts


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
    """What has to agree: instructions, constants, registers, static shared memory."""
    parts = {}
    has_globals = reads_globals(cubin)
    for name, content in sections_of(cubin):
        if name in (".nv.constant4", ".nv.global.init") and not has_globals:
            continue
        if name.startswith((".text.", ".nv.constant", ".nv.global.init", ".nv.shared.")):
            parts[name.replace(entry, "ENTRY")] = hashlib.sha256(content).hexdigest()
        elif name == ".nv.info":
            parts["registers"] = " ".join(map(str, registers_of(content)))
    if ".text.ENTRY" not in parts or not parts.get("registers"):
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
        text = kernel.flat_text()
        # Comments and layout make no difference.
        words = "\x1f".join(token.word for token in tokens_of(text))
        key = hashlib.sha256(f"words, registers, shared {self.nvrtc.version} {arch}\n{words}".encode()).hexdigest()
        path = COMPILED / (key + ".json")
        if path.exists():
            return json.loads(path.read_text())
        parts = machine_code(self.nvrtc.cubin(text, arch), kernel.name)
        COMPILED.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=COMPILED, delete=False) as file:
            json.dump(parts, file)
        os.replace(file.name, path)
        self.compiled += 1
        return parts
