/** The script `start` of package.json, as far as a shell would start one Node.js program by it. */

/** What the script runs, and with what. */
export interface StartCommand {
  /** As the script names it; undefined where it is for the package's `main`. */
  file: string | undefined;
  variables: Record<string, string>;
  /** Modules that are loaded before the program. */
  preloads: { option: "--require" | "--import"; name: string }[];
  args: string[];
  /** Parts of the script that have no effect here. */
  left: string[];
}

/** Programs that run a file of JavaScript or TypeScript, and stay. */
const interpreters = new Set(["node", "nodejs", "tsx", "ts-node", "nodemon", "faas-js-runtime"]);
/** Programs that run another with the variables that follow. */
const wrappers = new Set(["cross-env", "cross-env-shell", "env", "npx", "exec"]);
/** Options with a value of their own. */
const withValue = new Set([
  "--loader",
  "--experimental-loader",
  "--env-file",
  "-C",
  "--conditions",
]);

/** Scripts by which packages are started; frameworks with a `start` of their own have the other for their output. */
const names = ["start", "start:prod"];

/** Of package.json's scripts, the first that is understood. */
export function startCommandOf(scripts: unknown): StartCommand | undefined {
  if (scripts === null || typeof scripts !== "object") return undefined;
  const all = names.map((name) => readStartScript((scripts as Record<string, unknown>)[name]));
  return all.find((command) => command !== undefined);
}

/** Undefined for a script that starts anything else. */
export function readStartScript(script: unknown): StartCommand | undefined {
  if (typeof script !== "string" || script.length > 4096) return undefined;
  const commands = split(script);
  const words = commands.pop() ?? [];
  const command: StartCommand = {
    file: undefined,
    variables: {},
    preloads: [],
    args: [],
    left: commands.map((each) => each.join(" ")).filter(Boolean),
  };
  for (;;) {
    const word = words[0] ?? "";
    const [, name, value] = /^([A-Za-z_]\w*)=(.*)$/s.exec(word) ?? [];
    if (name !== undefined && value !== undefined) command.variables[name] = value;
    else if (!wrappers.has(word)) break;
    words.shift();
  }
  const program = (words.shift() ?? "").replace(/^.*node_modules\/\.bin\//, "");
  if (program === "functions-framework") return googles(words, command);
  if (!interpreters.has(program)) return undefined;
  while (words[0]?.startsWith("-")) option(words, command);
  const file = words.shift();
  if (file === undefined) return undefined;
  return { ...command, file: file === "." || file === "./" ? undefined : file, args: words };
}

function option(words: string[], { preloads, left }: StartCommand): void {
  const [word = "", given] = (words.shift() ?? "").split(/=(.*)/s);
  const short = word === "-r" ? "--require" : word;
  if (short === "--require" || short === "--import")
    preloads.push({ option: short, name: given ?? words.shift() ?? "" });
  else if (withValue.has(word)) left.push(`${word} ${given ?? words.shift() ?? ""}`);
  else left.push(given === undefined ? word : `${word}=${given}`);
}

/** `functions-framework --target=hello --signature-type=http`, whose options are variables, too. */
function googles(words: string[], command: StartCommand): StartCommand {
  const variables: Record<string, string> = {
    "--target": "FUNCTION_TARGET",
    "--signature-type": "FUNCTION_SIGNATURE_TYPE",
  };
  while (words.length > 0) {
    const [word = "", given] = (words.shift() ?? "").split(/=(.*)/s);
    const name = variables[word];
    if (name !== undefined) command.variables[name] = given ?? words.shift() ?? "";
    else if (word === "--port") {
      if (given === undefined) words.shift();
    } else command.left.push(given === undefined ? word : `${word}=${given}`);
  }
  return command;
}

/** Commands of words, as a shell would read them; what a shell would compute is left as it is written. */
function split(script: string): string[][] {
  const commands: string[][] = [[]];
  const tokens = script.matchAll(
    /\s*(?:(&&|\|\||;|\||&)|((?:"(?:\\.|[^"\\])*"|'[^']*'|\\.|[^\s"'\\;&|])+))/gs,
  );
  for (const [, operator, word = ""] of tokens) {
    if (operator !== undefined) commands.push([]);
    else commands.at(-1)?.push(unquoted(word));
  }
  return commands.filter((each) => each.length > 0);
}

function unquoted(word: string): string {
  return word.replaceAll(/"((?:\\.|[^"\\])*)"|'([^']*)'|\\(.)/gs, (_, double, single, sign) =>
    String(double?.replaceAll(/\\(["\\$`])/g, "$1") ?? single ?? sign),
  );
}
