/** For VS Code: F5 starts `spry dev` with its debugger and connects to it, and the editor shows what cannot be loaded. */
import { type Runtime } from "@spry/function";
import { defaultInspectPorts } from "../dev/inspect-ports.ts";
import { labelOf } from "../dev/terminal.ts";
import { checkoutProgram } from "../programs.ts";
import { shellWord } from "../shell-word.ts";

export interface EditedFunction {
  name: string;
  language: Runtime["language"];
  /** Relative to the directory that is opened; "" for that one. */
  directory: string;
  /** Its debugger's, with `spry dev`. */
  port: number;
}

/** The name of the task, and of what F5 does. */
const devTask = "spry dev";
/** Where images have the Function's files. */
const inImages = "/usr/src/app/function";

/** The files, by their paths in the directory that is opened. */
export function vscodeFiles(functions: readonly EditedFunction[]): Record<string, string> {
  return {
    ".vscode/launch.json": asJson(launch(functions)),
    ".vscode/tasks.json": asJson(tasks(functions)),
    ".vscode/settings.json": asJson(editorSettings),
  };
}

/**
 * VS Code asks before each start while any file has a mistake, such as a package's missing types; `spry dev` runs all the same, and
 * says what it cannot load.
 */
export const editorSettings = { "debug.onTaskErrors": "debugAnyway" };

const asJson = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;

/** Of a directory with one Function. */
export const alone = (name: string, { language }: Runtime): EditedFunction[] => [
  { name, language, directory: "", port: defaultInspectPorts[language] },
];

function launch(functions: readonly EditedFunction[]): object {
  const version = "0.2.0";
  const [first, ...others] = functions;
  if (first && others.length === 0) {
    const start = { name: devTask, preLaunchTask: devTask };
    const here = { ...start, ...attach(first) };
    return { version, configurations: [here, attachDeployed("Attach to spry debug", first)] };
  }
  const named = functions.map((each) => ({ name: `Attach to ${each.name}`, ...attach(each) }));
  const deployed = functions.map((each) =>
    attachDeployed(`Attach to spry debug ${each.name}`, each),
  );
  const all = {
    name: devTask,
    configurations: named.map(({ name }) => name),
    preLaunchTask: devTask,
    stopAll: true,
    // First in the list, which makes it what F5 does.
    presentation: { order: 1 },
  };
  return { version, configurations: [...named, ...deployed], compounds: [all] };
}

function attach({ language, port }: Pick<EditedFunction, "language" | "port">): object {
  // By its address: localhost may be an IPv6 address first, where nothing listens.
  const address = "127.0.0.1";
  if (language === "python")
    return {
      type: "debugpy",
      request: "attach",
      connect: { host: address, port },
      justMyCode: true,
    };
  return {
    type: "node",
    request: "attach",
    address,
    port,
    // A saved file is loaded by a new process.
    restart: true,
    continueOnAttach: true,
    sourceMaps: true,
    resolveSourceMapLocations: ["${workspaceFolder}/**", "!**/node_modules/**"],
    // The runtime, in an image and in the cache: `**` matches no directory that begins with a dot.
    skipFiles: ["<node_internals>/**", "**/usr/src/app/server.cjs", "**/.cache/spry/**"],
  };
}

/** `spry debug` relays one Function at a time, by the usual port. */
function attachDeployed(name: string, of: EditedFunction): object {
  const place = { localRoot: folderOf(of.directory), remoteRoot: inImages };
  const port = defaultInspectPorts[of.language];
  return {
    name,
    ...attach({ language: of.language, port }),
    ...(of.language === "nodejs" ? place : { pathMappings: [place] }),
  };
}

function tasks(functions: readonly EditedFunction[]): object {
  const dev = {
    label: devTask,
    type: "shell",
    command: devCommand(),
    options: { cwd: "${workspaceFolder}" },
    isBackground: true,
    presentation: { panel: "dedicated" },
    problemMatcher: functions.map((each) => matcher(each, functions)),
  };
  return { version: "2.0.0", tasks: [dev] };
}

/** npx finds the command only in the package that a directory belongs to, which is the Function's. */
function devCommand(): string {
  const program = checkoutProgram();
  return program === undefined ? "spry dev --inspect" : `${shellWord(program)} dev --inspect`;
}

/** Reads what `spry dev` prints (`dev/terminal.ts`). */
function matcher({ name, directory }: EditedFunction, all: readonly EditedFunction[]): object {
  const isAlone = all.length === 1;
  // Each Function's mistakes are its own: a save of one does not clear those of the others.
  const owner = isAlone ? "spry" : `spry-${name}`;
  const label = isAlone ? "" : `${escaped(labelOf(name))} *│ `;
  const ready = "✔ ready after |waiting for code that can be loaded";
  const ends = `${label}(?:✔ new code answers| *requests are answered with this error)`;
  return {
    owner,
    source: devTask,
    severity: "error",
    fileLocation: ["relative", folderOf(directory)],
    pattern: {
      regexp: String.raw`^${label}✘ ([^\s:][^:]*):(\d+)(?::(\d+))?: (.*)$`,
      file: 1,
      line: 2,
      column: 3,
      message: 4,
    },
    background: {
      activeOnStart: true,
      beginsPattern: `^${label}changed: `,
      endsPattern: `^(?:${ready}|${ends})`,
    },
  };
}

const folderOf = (directory: string): string =>
  directory === "" ? "${workspaceFolder}" : `\${workspaceFolder}/${directory}`;

const escaped = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
