/** What `spry deploy` prints when several Functions are through. */
import { messageOf, StatusError } from "@spry/kube";
import { printError } from "../print-error.ts";
import { printable } from "../printable.ts";
import { type Progress } from "../progress.ts";
import { tableLines } from "../table.ts";
import { columnsOf, shortened } from "../terminal-width.ts";
import { UserError } from "../user-error.ts";
import { type Deployed } from "./deploy-one.ts";

/** What became of one Function. */
export interface DeployResult {
  name: string;
  deployed?: Deployed;
  error?: unknown;
}

/** Mistakes in full, then a row for each Function. The exit code is 1 if one has failed. */
export function reportResults(results: readonly DeployResult[], progress: Progress): void {
  const failed = results.filter(({ deployed }) => !deployed);
  if (failed.length > 0) process.exitCode = 1;
  const unexpected = failed.find(
    ({ error }) => !(error instanceof UserError || error instanceof StatusError),
  );
  if (!progress.isJson) {
    for (const [text, { names, wayOut }] of problemsIn(failed))
      printError(`${names.join(", ")}: ${text}`, wayOut);
    const rows = results.map(({ name, deployed, error }) => [
      name,
      deployed ? (deployed.isRunning ? "running" : "applied") : "failed",
      deployed ? (deployed.url ?? "") : (messageOf(error).split("\n", 1)[0] ?? ""),
    ]);
    const columns = columnsOf(process.stdout);
    const [header = "", ...lines] = tableLines(["NAME", "RESULT", "DETAILS"], rows);
    console.log(header);
    // Why one has failed is above in full; an address is of use only as a whole.
    lines.forEach((line, index) =>
      console.log(shortened(printable(line), results[index]?.deployed ? undefined : columns)),
    );
  }
  if (unexpected) throw unexpected.error;
}

/** What several have in common, such as a server that cannot be reached, is said once. */
function problemsIn(
  failed: readonly DeployResult[],
): Map<string, { names: string[]; wayOut: string | undefined }> {
  const found = new Map<string, { names: string[]; wayOut: string | undefined }>();
  for (const { name, error } of failed) {
    const text = messageOf(error);
    const wayOut = error instanceof UserError ? error.wayOut : undefined;
    const same = found.get(text) ?? { names: [], wayOut };
    same.names.push(name);
    found.set(text, same);
  }
  return found;
}
