/** A Python package in C, as a source distribution and as a wheel of this machine. */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createLayer } from "@spry/image";

/** Compiles by itself: what packages are usually built with would have to come from somewhere. */
const backend = `
import os, subprocess, sys, sysconfig, zipfile
tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
def build_wheel(directory, settings=None, metadata=None):
    include = sysconfig.get_path("include")
    subprocess.run(["cc", "-shared", "-fPIC", "-I", include, "-o", "native.so", "native.c"], check=True)
    name = f"native-1.0.0-{tag}-{tag}-{platform}.whl"
    with zipfile.ZipFile(os.path.join(directory, name), "w") as archive:
        archive.write("native.so", "native" + sysconfig.get_config_var("EXT_SUFFIX"))
        archive.writestr("native-1.0.0.dist-info/METADATA", open("PKG-INFO").read())
        archive.writestr("native-1.0.0.dist-info/WHEEL", f"Wheel-Version: 1.0\\nRoot-Is-Purelib: false\\nTag: {tag}-{tag}-{platform}\\n")
        archive.writestr("native-1.0.0.dist-info/RECORD", "")
    return name
`;
const source = `#include <Python.h>
static PyObject *word(PyObject *self, PyObject *arguments) { return PyUnicode_FromString("from C"); }
static PyMethodDef methods[] = {{"word", word, METH_NOARGS, ""}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "native", "", -1, methods};
PyMODINIT_FUNC PyInit_native(void) { return PyModule_Create(&module); }
`;
const files = {
  "pyproject.toml": `[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n`,
  "PKG-INFO": "Metadata-Version: 2.1\nName: native\nVersion: 1.0.0\n",
  "backend.py": backend,
  "native.c": source,
};

/** Whether there is a compiler, and what it needs to know of this Python. */
export function canCompileFor(python: string): boolean {
  const code = `import os, sysconfig; print(os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))`;
  const { stdout } = spawnSync(python, ["-I", "-c", code], { encoding: "utf8" });
  return stdout?.trim() === "True" && spawnSync("cc", ["--version"]).status === 0;
}

/** `native-1.0.0.tar.gz`: `native.word()` gives `from C`. */
export async function nativeSource(): Promise<Record<string, Buffer>> {
  const entries = Object.entries(files);
  const { body } = await createLayer(
    entries.map(([name, content]) => ({ path: `native-1.0.0/${name}`, content })),
  );
  return { "native-1.0.0.tar.gz": Buffer.from(body?.open() as Uint8Array) };
}

/** The same, compiled. */
export function nativeWheel(python: string): Record<string, Buffer> {
  const dir = mkdtempSync(path.join(tmpdir(), "native-python-"));
  try {
    for (const [name, content] of Object.entries(files))
      writeFileSync(path.join(dir, name), content);
    const code = `import sys; sys.path.insert(0, "."); import backend; backend.build_wheel(".")`;
    execFileSync(python, ["-c", code], { cwd: dir });
    const wheel = readdirSync(dir).find((name) => name.endsWith(".whl")) ?? "";
    return { [wheel]: readFileSync(path.join(dir, wheel)) };
  } finally {
    rmSync(dir, { recursive: true });
  }
}
