/** How a user writes our own commands: `npx spry` in a checkout, `spry` where the package is installed or the command is on `PATH`. */
import { existsSync, realpathSync } from "node:fs";
import path from "node:path";
import { checkoutRoot, isPackage } from "./programs.ts";
import { shellWord } from "./shell-word.ts";

const names =
  "apply|async|backup|build|completion|dashboard|debug|delete|deploy|describe|dev|diff|dlq|doctor|down|eject|env|events|explain|expose|" +
  "function|get|history|import|init|install|invoke|logs|open|restore|rollback|run|scale|schedule|schema|secrets|status|sync|test|traffic|trust|unexpose|uninstall|up|" +
  "upgrade|version";
const ours = new RegExp(String.raw`(?<![\w./-]|npx )spry (?=(?:${names}|--help)\b)`, "g");

/** Set by bin/spry.mjs, when that was started by its name. */
const isShort = isPackage || process.env["SPRY_COMMAND"] === "spry";
// What this process starts, a Function above all, need not know.
delete process.env["SPRY_COMMAND"];

/** A text with our commands as this user writes them. */
export const withShownCommands = (text: string): string =>
  isShort ? text : text.replaceAll(ours, "npx spry ");

/** `npx spry dev`, or `spry dev`. */
export const spryCommand = (rest: string): string => `${isShort ? "spry" : "npx spry"} ${rest}`;

/**
 * The same for a user who is in `directory`: npx looks for the command in the package around it, so that one in another
 * package, such as a new Function, has to name the checkout.
 */
export function spryCommandHere(rest: string, directory = process.cwd()): string {
  const root = checkoutRoot();
  if (isShort || root === undefined || packageAround(directory) === realpathSync(root))
    return spryCommand(rest);
  return `npx --prefix ${shellWord(root)} spry ${rest}`;
}

/** Where npx looks. */
function packageAround(directory: string): string {
  const start = realpathSync(directory);
  for (let each = start; ; each = path.dirname(each)) {
    if (["package.json", "node_modules"].some((name) => existsSync(path.join(each, name))))
      return each;
    if (each === path.dirname(each)) return start;
  }
}

/** Commands with what they do, where a terminal of 80 columns has room for that. */
export function explainedCommands(commands: readonly [command: string, comment: string][]): string {
  const width = Math.max(30, ...commands.map(([command]) => command.length));
  const lines = commands.map(([command, comment]) => `  ${command.padEnd(width)}  # ${comment}`);
  if (lines.every((line) => line.length <= 80)) return lines.join("\n");
  return commands.map(([command]) => `  ${command}`).join("\n");
}

/** What starts the platform, with its options: `npm start -- --api-port 0`, or `spry up --api-port 0`. */
export function startCommand(options = ""): string {
  if (isShort) return `spry up ${options}`.trim();
  return options ? `npm start -- ${options}` : "npm start";
}
