/**
 * This machine's way to its Python package index: mirror, proxy, certificates, directories with wheels.
 * The counterpart of npm-settings.ts, read from pip's own files and variables, because asking pip would
 * start Python each time. Credentials are not part of it.
 */
import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";
import { type Logger, messageOf } from "@spry/kube";
import { writeAtomically } from "./data-dir.ts";
import { withoutCredentials } from "./without-credentials.ts";

type Environment = Readonly<Record<string, string | undefined>>;

const carried = [
  "index-url",
  "extra-index-url",
  "no-index",
  "find-links",
  "trusted-host",
  "cert",
  "proxy",
  "timeout",
];
/** What pip heeds without being configured. */
const fallbacks: Record<string, string[]> = {
  cert: ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"],
  proxy: ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"],
};

/** Writes the settings to the file. Never fails: builds then use pip's defaults. */
export function writePipSettings(file: string, log: Logger): void {
  try {
    const texts = configFiles(process.env).filter(existsSync);
    writeAtomically(
      file,
      pipConfOf(
        texts.map((each) => readFileSync(each, "utf8")),
        process.env,
      ),
      0o644,
    );
  } catch (error) {
    log.warn({ error: messageOf(error) }, "this machine's pip settings could not be read");
  }
}

/** As pip reads them: what comes later wins. */
function configFiles(env: Environment): string[] {
  const home = env["HOME"] || homedir();
  const config = env["XDG_CONFIG_HOME"] || path.join(home, ".config");
  const own = env["PIP_CONFIG_FILE"];
  return [
    "/etc/xdg/pip/pip.conf",
    "/etc/pip.conf",
    "/Library/Application Support/pip/pip.conf",
    path.join(home, ".pip", "pip.conf"),
    path.join(config, "pip", "pip.conf"),
    path.join(home, "Library", "Application Support", "pip", "pip.conf"),
    ...(own ? [own] : []),
  ];
}

/** The `pip.conf` that says the same as these, with `PIP_*` variables on top. Exported for its test. */
export function pipConfOf(texts: readonly string[], env: Environment): string {
  const settings = new Map<string, string>();
  for (const text of texts) for (const [name, value] of settingsIn(text)) settings.set(name, value);
  for (const name of carried) {
    const variable = `PIP_${name.toUpperCase().replaceAll("-", "_")}`;
    const value = env[variable] ?? (name === "timeout" ? env["PIP_DEFAULT_TIMEOUT"] : undefined);
    const fallback = fallbacks[name]?.map((each) => env[each]).find(Boolean);
    if (value) settings.set(name, value);
    else if (fallback && !settings.has(name)) settings.set(name, fallback);
  }
  const lines = [...settings].map(([name, value]) => {
    const parts = value.split(/\s+/).filter(Boolean).map(withoutCredentials);
    return `${name} = ${parts.join("\n    ")}`;
  });
  return `[global]\n${lines.join("\n")}\n`;
}

/** The carried settings of the sections for all commands and for `install`; values may go on in indented lines. */
function settingsIn(text: string): Map<string, string> {
  const sections = new Map([
    ["global", new Map<string, string>()],
    ["install", new Map<string, string>()],
  ]);
  let section: Map<string, string> | undefined;
  let name: string | undefined;
  for (const line of text.split(/\r?\n/)) {
    if (/^\s*(?:[#;].*)?$/.test(line)) continue;
    const header = /^\[(.+?)\]/.exec(line)?.[1];
    const [, key, value = ""] = /^([^\s=:][^=:]*?)\s*[=:]\s*(.*)$/.exec(line) ?? [];
    if (header !== undefined) {
      section = sections.get(header);
      name = undefined;
    } else if (/^\s/.test(line)) {
      if (name) section?.set(name, `${section.get(name) ?? ""} ${line.trim()}`);
    } else {
      const normal = key
        ?.toLowerCase()
        .replaceAll("_", "-")
        .replace(/^default-/, "");
      name = normal && carried.includes(normal) ? normal : undefined;
      if (name) section?.set(name, value);
    }
  }
  return new Map([...sections.values()].flatMap((each) => [...each]));
}
