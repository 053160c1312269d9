/** Failures of the page itself, for the log of the dashboard's server, where its operator can see them. */
import { messageOf } from "@spry/kube/browser";
import { asUser } from "./client.ts";

/** A page that fails again and again does not flood the log. */
const maxReports = 20;
const maxLength = 2_000;
let reports = 0;

export function reportProblem(where: string, failure: unknown): void {
  console.warn(`${where}:`, failure);
  if (++reports > maxReports) return;
  const stack = failure instanceof Error ? (failure.stack ?? "") : "";
  const body = JSON.stringify({
    where,
    message: messageOf(failure).slice(0, maxLength),
    stack: stack.slice(0, maxLength),
  });
  void asUser("/problems", { method: "POST", body }).catch(() => undefined);
}
