#!/usr/bin/env python3
"""A compiler for the kernels in place of nvcc: the NVRTC library of CUDA 12, which Python's package nvidia-cuda-nvrtc-cu12 has.

CUDA 12 has no nvcc in Python's packages, and machine code of CUDA 13 needs a driver of CUDA 13 (580). With this program the
kernels run with drivers from CUDA 12.0 (525) on:

    pip install nvidia-cuda-nvrtc-cu12 nvidia-cuda-nvcc       # the second one for its program fatbinary
    cmake --preset default -DHARTSIFT_NVCC=packaging/nvrtc.py -DHARTSIFT_CUDA=ON

A build that finds no nvcc, but the first package, takes this program by itself; code for one architecture needs no fatbinary.
Architectures that CUDA 12 does not know (11.0) are compiled by CUDA 13's library, if the package nvidia-cuda-nvrtc is
installed too. It takes the options that pipeline/cmake/cuda_toolkit.cmake passes to nvcc. HARTSIFT_NVRTC names other
libraries, separated by colons: each architecture is compiled by the first that knows it. HARTSIFT_FATBINARY names another
fatbinary.
"""
import ctypes
import glob
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# What the kernels need of the C library's headers; NVRTC has none.
HEADERS = {
    "stdint.h": """#pragma once
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long uint64_t;
typedef long intptr_t;
typedef unsigned long uintptr_t;
#define INT16_MAX 32767
#define INT32_MAX 2147483647
#define INT64_MAX 9223372036854775807l
#define UINT8_MAX 255
#define UINT16_MAX 65535
#define UINT32_MAX 4294967295u
#define UINT64_MAX 18446744073709551615ul
#define SIZE_MAX UINT64_MAX
""",
    "stddef.h": "#pragma once\ntypedef long ptrdiff_t;\n#ifndef NULL\n#define NULL 0\n#endif\n",
    "float.h": "#pragma once\n#define FLT_MAX 3.402823466e+38f\n",
    "math.h": "#pragma once\n#define INFINITY __int_as_float(0x7f800000)\n#define NAN __int_as_float(0x7fffffff)\n",
    "string.h": "#pragma once\nstatic inline void memmove(void *to, const void *from, size_t bytes) {\n"
                "  for (size_t i = 0; i < bytes; i++) ((char *)to)[i] = ((const char *)from)[i];\n}\n",
    "assert.h": "#pragma once\n#undef assert\n#define assert(condition) ((void)0)\n",
    "stdalign.h": "#pragma once\n",
    "stdbool.h": "#pragma once\n",
}


def of_python(pattern):
    """The newest file of NVIDIA's Python packages that matches the pattern."""
    try:
        import nvidia
    except ImportError:
        return None
    found = sorted(path for folder in nvidia.__path__ for path in glob.glob(os.path.join(folder, pattern)))
    return found[-1] if found else None


class Nvrtc:
    def __init__(self, path):
        self.library = ctypes.CDLL(path)

    def call(self, name, *arguments):
        return getattr(self.library, "nvrtc" + name)(*arguments)

    def version(self):
        major, minor = ctypes.c_int(), ctypes.c_int()
        self.call("Version", ctypes.byref(major), ctypes.byref(minor))
        return major.value, minor.value

    def architectures(self):
        count = ctypes.c_int()
        self.call("GetNumSupportedArchs", ctypes.byref(count))
        numbers = (ctypes.c_int * count.value)()
        self.call("GetSupportedArchs", numbers)
        return list(numbers)

    def text_of(self, program, what):
        size = ctypes.c_size_t()
        self.call(f"Get{what}Size", program, ctypes.byref(size))
        text = ctypes.create_string_buffer(size.value)
        self.call(f"Get{what}", program, text)
        return text.raw

    def compile(self, source, architecture, options):
        """Machine code for sm_90, PTX for compute_90."""
        program = ctypes.c_void_p()
        names, texts = ((ctypes.c_char_p * len(HEADERS))(*(item.encode() for item in items))
                        for items in (HEADERS.keys(), HEADERS.values()))
        self.call("CreateProgram", ctypes.byref(program), pathlib.Path(source).read_bytes(), source.encode(), len(HEADERS), texts,
                  names)
        words = [f"--gpu-architecture={architecture}", "--device-as-default-execution-space", *options]
        status = self.call("CompileProgram", program, len(words), (ctypes.c_char_p * len(words))(*(w.encode() for w in words)))
        if status:
            sys.exit(self.text_of(program, "ProgramLog").rstrip(b"\0").decode(errors="replace") or f"NVRTC: status {status}")
        return self.text_of(program, "CUBIN" if architecture.startswith("sm_") else "PTX")


def compilers():
    """The libraries, and for each architecture that one of them knows, such as "90", the first that does."""
    paths = [path for path in os.environ.get("HARTSIFT_NVRTC", "").split(":") if path]
    of_packages = [of_python("cuda_nvrtc/lib/libnvrtc.so.12"), of_python("cu13/lib/libnvrtc.so.13")]
    libraries = [Nvrtc(path) for path in paths or list(filter(None, of_packages)) or ["libnvrtc.so.12"]]
    return libraries, {str(number): library for library in reversed(libraries) for number in library.architectures()}


def included(source, folders, found):
    """The source and all files of the tree that it includes."""
    found.append(source)
    for name in re.findall(r'^#\s*include "([^"]+)"', pathlib.Path(source).read_text(), re.M):
        for folder in folders:
            path = os.path.join(folder, name)
            if os.path.isfile(path) and path not in found:
                included(path, folders, found)
    return found


def fatbinary():
    return (os.environ.get("HARTSIFT_FATBINARY") or shutil.which("fatbinary") or of_python("cu*/bin/fatbinary")
            or shutil.which("/usr/local/cuda/bin/fatbinary"))


def main(words):
    libraries, known = compilers()
    if words == ["--version"]:
        major, minor = libraries[0].version()
        print(f"NVRTC in place of nvcc, release {major}.{minor}")
        return
    if words == ["--list-gpu-arch"]:
        print("\n".join(f"compute_{number}" for number in sorted(known, key=int)))
        return
    if words == ["--help"]:
        print(__doc__)
        return
    values = {"-MF": "", "-MT": "", "-o": "", "-Werror": ""}
    options, images, folders, source = [], [], [], ""
    mode = ["--compress=false"]  # as every driver reads it
    rest = iter(words)
    for word in rest:
        if word in values:
            values[word] = next(rest)
        elif word.startswith("-gencode="):
            images += re.findall(r"(?:sm|compute)_\w+", word[word.index("code=", 10):])
        elif word.startswith("-I"):
            folders.append(word[2:])
            options.append(word)
        elif word.startswith(("-D", "-std=")):
            options.append(word)
        elif re.match(r"-(fmad|prec-div|prec-sqrt|ftz)=", word):
            options.append("-" + word)
        elif word.startswith("--compress-mode="):
            mode = ["--compress-all", word]
        elif not word.startswith("-"):
            source = word
    with tempfile.TemporaryDirectory() as folder:
        packer = fatbinary()
        command = [packer, f"--create={values['-o']}", "-64", *mode]
        for image in images:
            kind, number = "elf" if image.startswith("sm_") else "ptx", image.split("_")[1]
            if number.rstrip("a") not in known:
                sys.exit(f"No NVRTC library here knows {image}")
            path = pathlib.Path(folder, image)
            code = known[number.rstrip("a")].compile(source, image, options)
            path.write_bytes(code if kind == "elf" else code.rstrip(b"\0"))
            command.append(f"--image3=kind={kind},sm={number},file={path}")
        if packer:
            subprocess.run(command, check=True)
        elif len(images) == 1:  # the driver takes it as it is; PTX is zero-terminated
            pathlib.Path(values["-o"]).write_bytes(code)
        else:
            sys.exit("Code for several architectures needs the program fatbinary: pip install nvidia-cuda-nvcc")
    if values["-MF"]:
        pathlib.Path(values["-MF"]).write_text(f"{values['-MT']}: " + " \\\n ".join(included(source, folders, [])) + "\n")


main(sys.argv[1:])
