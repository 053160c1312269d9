import { type InstallerRun, runInstaller } from "../installer.ts";
import { NotForUv } from "./not-for-uv.ts";

/** pip's settings by their long names (`index-url`), as they stand: values of several lines are one text. */
export type PipSettings = ReadonlyMap<string, string>;

/**
 * Merges what pip would take as its settings for `install`: its files from the least to the most particular one, `[global]`
 * before `[install]`, then variables (pip's documentation, "Configuration", "Precedence / Override order").
 */
const reader = `
import configparser, json, os, sys
env, home = os.environ, os.path.expanduser("~")
given = env.get("PIP_CONFIG_FILE")
has_given = bool(given) and os.path.exists(given)
own = [] if has_given else [
    os.path.join(home, ".pip", "pip.conf"),
    os.path.join(env.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"), "pip", "pip.conf"),
]
files = [
    *(os.path.join(one, "pip", "pip.conf") for one in (env.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":")),
    "/etc/pip.conf",
    "/Library/Application Support/pip/pip.conf",
    *own,
    os.path.join(sys.prefix, "pip.conf"),
    *([given] if has_given else []),
]
sections = {"global": {}, "install": {}}
for file in files if given != os.devnull else []:
    if not os.path.exists(file):
        continue
    parser = configparser.RawConfigParser()
    with open(file) as text:
        parser.read_file(text)
    for section in set(parser.sections()) & set(sections):
        for name, value in parser.items(section):
            sections[section][name.lower().replace("_", "-").removeprefix("--")] = value
variables = {name[4:].lower().replace("_", "-"): value for name, value in env.items() if name.startswith("PIP_")}
merged = {}
for settings in (*sections.values(), variables):
    merged.update((name, value) for name, value in settings.items() if value)
print(json.dumps(merged))
`;

/**
 * Asks the interpreter on `PATH`, whose own file counts too. Its output may contain logins, which must not be shown.
 * Throws `NotForUv` when something is wrong, which pip itself will report.
 */
export async function readPipSettings(run: InstallerRun): Promise<PipSettings> {
  try {
    const { output } = await runInstaller("python3", ["-I", "-c", reader], run);
    return new Map(Object.entries(JSON.parse(output) as Record<string, string>));
  } catch {
    throw new NotForUv("pip's settings cannot be read");
  }
}
