/** How a user writes our own commands: `npx spry` in a checkout, `spry` where the package is installed. */
import { isPackage } from "./programs.ts";

const names =
  "apply|async|backup|build|completion|dashboard|debug|delete|deploy|describe|dev|diff|dlq|doctor|down|eject|env|events|explain|expose|get|" +
  "history|import|init|install|invoke|logs|open|restore|rollback|run|scale|schedule|secrets|status|sync|test|traffic|trust|uninstall|up|" +
  "upgrade|version";
const ours = new RegExp(String.raw`(?<![\w./-]|npx )spry (?=(?:${names}|--help)\b)`, "g");

/** A text with our commands as this user writes them. */
export const withShownCommands = (text: string): string =>
  isPackage ? text : text.replaceAll(ours, "npx spry ");

/** `npx spry dev`, or `spry dev`. */
export const spryCommand = (rest: string): string => `${isPackage ? "spry" : "npx spry"} ${rest}`;

/** Commands with what they do, where a terminal of 80 columns has room for that. */
export function explainedCommands(commands: readonly [command: string, comment: string][]): string {
  const width = Math.max(30, ...commands.map(([command]) => command.length));
  const lines = commands.map(([command, comment]) => `  ${command.padEnd(width)}  # ${comment}`);
  if (lines.every((line) => line.length <= 80)) return lines.join("\n");
  return commands.map(([command]) => `  ${command}`).join("\n");
}

/** What starts the platform, with its options: `npm start -- --api-port 0`, or `spry up --api-port 0`. */
export function startCommand(options = ""): string {
  if (isPackage) return `spry up ${options}`.trim();
  return options ? `npm start -- ${options}` : "npm start";
}
