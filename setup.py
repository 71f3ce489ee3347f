"""How the compiled modules that pyproject.toml lists are built: what that file cannot say.

Cython writes what all modules need of it once, into a module of its own, instead of into each. It
runs in processes: in threads, which build_ext's ``parallel`` alone would give it, it writes
other C from run to run (cython/cython#7997). Only the C compiler runs in threads.
"""

from __future__ import annotations

import gc
import os
import runpy
import sys
import tomllib
from typing import ClassVar

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build import build
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

SHARED = "ripple._cyutility"
SHARED_SOURCE = "ripple/_cyutility.c"
# Nobody pickles what is compiled, or reads it: that code is a tenth of all, comments are a seventh.
DIRECTIVES = {"auto_pickle": False, "emit_code_comments": False}
# No debug symbols: nobody debugs the generated C. No copies of functions for arguments that are
# known: they take the compiler's time, and no workload that was tried is faster for them.
FLAGS = ["-g0", "-fno-ipa-cp-clone"]
# With -O3 no more inlining than with -O2, which takes the compiler's time, too, except where a
# workload is slower without.
MODEST_INLINING = [
    "--param=max-inline-insns-single=70",
    "--param=max-inline-insns-auto=15",
    "--param=inline-min-speedup=30",
    "--param=early-inlining-insns=6",
]
INLINED = {
    "ripple.connectors.files.csv.parser",
    "ripple.model.aggregate.ordered",
    "ripple.model.aggregate.running",
    "ripple.model.keys.index",
}
JOBS = os.cpu_count() or 1


def generate(extensions: list[Extension], jobs: int = JOBS) -> None:
    """Write the C of each extension, and of what they share, and let it be their source."""
    gc.disable()  # also in the processes: it takes half of Cython's time, and frees little
    try:
        generated = cythonize(
            extensions,
            nthreads=jobs,
            quiet=True,
            shared_utility_qualified_name=SHARED,
            compiler_directives=DIRECTIVES,
        )
    finally:
        gc.enable()
    for extension, done in zip(extensions, generated, strict=True):
        assert extension.name == done.name
        extension.sources = done.sources


class BuildExtensions(build_ext):
    """Compiles all extensions, the longest first, as many at once as there are processors.

    ``--demo`` leaves out what the demo does not import.
    """

    user_options: ClassVar = [*build_ext.user_options, ("demo", None, "compile the demo's modules")]
    boolean_options: ClassVar = [*build_ext.boolean_options, "demo"]

    def initialize_options(self) -> None:
        """Compile all, by default."""
        super().initialize_options()
        self.demo = False

    def finalize_options(self) -> None:
        """Add what belongs to no module in particular, and leave out what is not wanted."""
        listed = self.distribution.ext_modules
        if self.demo:
            with open("pyproject.toml", "rb") as file:
                left_out = tomllib.load(file)["tool"]["ripple"]["not-in-demo"]
            listed[:] = [extension for extension in listed if extension.name not in left_out]
        if all(extension.name != SHARED for extension in listed):
            listed.append(Extension(SHARED, [SHARED_SOURCE], extra_compile_args=["-O1"]))
        if self.editable_mode:  # what was compiled in place before stays
            plain = build(self.distribution)
            plain.ensure_finalized()
            self.build_lib, self.build_temp = plain.build_platlib, plain.build_temp
        super().finalize_options()
        self.parallel = JOBS

    def build_extensions(self) -> None:
        """Generate and compile."""
        generate(self.extensions)
        self.extensions.sort(key=_source_bytes, reverse=True)
        for extension in self.extensions:
            extension.extra_compile_args += FLAGS
            if extension.name not in INLINED:
                extension.extra_compile_args += MODEST_INLINING
            if not self.inplace and sys.platform == "linux":  # names that only profilers read
                extension.extra_link_args += ["-Wl,--strip-all"]
        super().build_extensions()


class BuildModules(build_py):
    """Copies modules, and for a wheel gets the files of others that the dashboard's page needs.

    Where they cannot be had the wheel is built without them, and its dashboard says what to do;
    with RIPPLE_DASHBOARD=needed in the environment, as in releases, that is an error.
    """

    def run(self) -> None:
        """Fetch, then copy."""
        assets = runpy.run_path("ripple/client/dashboard/assets.py")
        if not self.editable_mode and assets["missing"]():
            try:
                assets["fetch"]()
            except assets["NotFetchedError"] as error:
                if os.environ.get("RIPPLE_DASHBOARD") == "needed":
                    raise
                sys.stderr.write(f"warning: without the dashboard's page: {error}\n")
        super().run()


def _source_bytes(extension: Extension) -> int:
    return os.path.getsize(extension.sources[0])


if __name__ == "__main__":
    setup(cmdclass={"build_ext": BuildExtensions, "build_py": BuildModules})
