/** Names of Functions as kubectl and this command print them: `hello`, `function/hello`, `functions.serverless.kyma-project.io/hello`. */
import { type Command } from "commander";
import { UserError } from "../user-error.ts";

const kind = /^(?:fn|functions?)(?:\.(?:v1alpha[12]\.)?serverless\.kyma-project\.io)?$/i;

/** Whether a word stands for the kind Function. */
export const isFunctionKind = (word: string): boolean => kind.test(word);

/** The name alone; a UserError for what names something else. */
export function functionNamed(text: string): string {
  const [first = "", name, ...more] = text.split("/");
  if (name === undefined) return text;
  if (kind.test(first) && name !== "" && more.length === 0) return name;
  throw new UserError(
    `${text} is not the name of a Function`,
    "write the name alone, or as in function/NAME; -n names another namespace",
  );
}

/** Has every command understand a Function's name so, wherever it takes one. */
export function readFunctionNames(command: Command): void {
  for (const argument of command.registeredArguments) {
    if (!["name", "names", "function"].includes(argument.name())) continue;
    argument.argParser((text: string, before: unknown) => {
      const name = functionNamed(text);
      return argument.variadic ? [...((before as string[] | undefined) ?? []), name] : name;
    });
  }
  for (const each of command.commands) readFunctionNames(each);
}

/** The original's `init function` writes a config.yaml; what only ours has is ours. */
const kymaInit = (args: readonly string[]): string[] =>
  args.some((each) => /^(?:-t|--(?:template|from)(?:=.*)?)$/.test(each))
    ? []
    : ["--schema-version", "v0"];

/** The original's `--version 22` of `function create`, which asks for our own version elsewhere. */
const withNodeVersion = (args: readonly string[]): string[] =>
  args.map((each, index) => {
    if (each.startsWith("--version=")) return each.replace("--version", "--node-version");
    const isVersion = /^(?:-v|--version)$/.test(each) && /^\d+$/.test(args[index + 1] ?? "");
    return isVersion ? "--node-version" : each;
  });

/** Commands of the original that have the word `function` after them. */
const original = new Set(["apply", "run", "sync", "init"]);

/**
 * What was typed, without the word for the kind: kubectl's `get function hello`, the original's `apply function` and `function get`
 * mean `get hello`, `apply` and `get`. `at`: where the command is. `isPath`: whether something on disk has a name.
 */
export function withoutKind(
  args: readonly string[],
  at: number,
  { takesFunctions, isPath }: Record<"takesFunctions" | "isPath", (word: string) => boolean>,
): string[] {
  const [command = "", word = "", next] = args.slice(at);
  const rest = (from: number) => [...args.slice(0, at), ...args.slice(from)];
  if (command === "function" && word === "create") return withNodeVersion(args);
  if (command === "function" && (takesFunctions(word) || word === "explain")) return rest(at + 1);
  if (command === "get" && word === "schema" && next === "serverless")
    return [...args.slice(0, at), "schema", "config.yaml", ...args.slice(at + 3)];
  if (!kind.test(word)) return [...args];
  const without = rest(at + 1)
    .toSpliced(at, 0, command)
    .toSpliced(at + 1, 1);
  if (takesFunctions(command) && next !== undefined && !next.startsWith("-")) return without;
  if (!original.has(command) || word !== "function") return [...args];
  if (command === "init")
    return [...without.slice(0, at + 1), ...kymaInit(args), ...without.slice(at + 1)];
  // A file may well be called so.
  return command === "apply" && isPath(word) ? [...args] : without;
}
