/** `-o json`, which every command has that prints a table. */
import { Option } from "commander";
import { UserError } from "../user-error.ts";
import { suggesting } from "./suggestions.ts";

export const jsonOutput = (): Option =>
  suggesting(new Option("-o, --output <format>", "json").argParser(jsonAlone), ["json"]);

function jsonAlone(text: string): string {
  if (text === "json") return text;
  throw new UserError(`unknown output format ${text}`, "use json, or leave -o out");
}
