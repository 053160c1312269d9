/** How a user writes our own commands: `npx spry` in a checkout, `spry` where the package is installed. */
import { isPackage } from "./programs.ts";

/** `npx spry dev`, or `spry dev`. */
export const spryCommand = (rest: string): string => `${isPackage ? "spry" : "npx spry"} ${rest}`;

/** What starts the platform, with its options: `npm start -- --api-port 0`, or `spry up --api-port 0`. */
export function startCommand(options = ""): string {
  if (isPackage) return `spry up ${options}`.trim();
  return options ? `npm start -- ${options}` : "npm start";
}
