/** Python packages that are ready to be installed. */
import { execFileSync } from "node:child_process";

/** What a wheel is made of (packaging specification "Binary distribution format"), as far as it matters to installers. */
export interface Wheel {
  name: string;
  version: string;
  /** By paths in the archive; `<name>-<version>.data/…` goes elsewhere when it is installed. */
  files: Record<string, string>;
  /** Lines of its METADATA besides name and version. */
  metadata?: string;
  /** Paths of files that may be run. */
  executable?: readonly string[];
}

const program = `
import base64, hashlib, io, json, sys, zipfile
wheel = json.load(sys.stdin)
info = f"{wheel['name']}-{wheel['version']}.dist-info"
files = {
    **wheel["files"],
    f"{info}/METADATA": f"Metadata-Version: 2.1\\nName: {wheel['name']}\\nVersion: {wheel['version']}\\n{wheel.get('metadata', '')}",
    f"{info}/WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
}
digest = lambda text: base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
record = f"{info}/RECORD"
files[record] = "".join(f"{name},sha256={digest(text)},{len(text)}\\n" for name, text in files.items()) + record + ",,\\n"
archive = io.BytesIO()
with zipfile.ZipFile(archive, "w") as entries:
    for name, text in files.items():
        entry = zipfile.ZipInfo(name)
        entry.external_attr = (0o100755 if name in wheel.get("executable", []) else 0o100644) << 16
        entries.writestr(entry, text)
sys.stdout.buffer.write(archive.getvalue())
`;

/** The archive. */
export function wheelOf(wheel: Wheel): Buffer {
  return execFileSync("python3", ["-I", "-c", program], { input: JSON.stringify(wheel) });
}

export const wheelName = ({ name, version }: Wheel): string =>
  `${name}-${version}-py3-none-any.whl`;

/** A module that greets, with a command, and a file that is no Python. */
export const greeting: Wheel = {
  name: "greeting",
  version: "1.2.3",
  files: {
    "greeting/__init__.py": "def greet():\n    return 'hello'\n",
    "greeting/template.py": "{% not python %}\n",
    "greeting-1.2.3.dist-info/entry_points.txt": "[console_scripts]\ngreet = greeting:greet\n",
  },
};
