/** No secret in what the platform's programs have written: API server, gateway, controllers, builders. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { contentOf, filesBelow } from "./files-below.ts";

/** What a platform itself keeps secret: keys, and the logins of its registry. Long texts by a line of theirs. */
export function ownSecrets(dataDir: string): string[] {
  const keys = filesBelow(path.join(dataDir, "pki"))
    .filter((file) => file.endsWith(".key"))
    .concat(path.join(dataDir, "api/service-account.key"))
    .map((file) => readFileSync(file, "utf8").split("\n")[1] ?? "");
  const login = JSON.parse(readFileSync(path.join(dataDir, "registry.json"), "utf8")) as object;
  const passwords = Object.entries(login).flatMap(([name, value]: [string, unknown]) =>
    /password|secret|key/i.test(name) && typeof value === "string" ? [value] : [],
  );
  return [...keys, ...passwords].filter((text) => text.length >= 8);
}

/** Where one of the secrets stands, as text, in base64 or as in a URL: `<file>: <form>`. */
export function secretsInLogs(
  dataDir: string,
  output: string,
  secrets: readonly string[],
): string[] {
  const forms = secrets.flatMap((secret) => [
    secret,
    Buffer.from(secret).toString("base64").replace(/=+$/, ""),
    encodeURIComponent(secret),
  ]);
  const logs = [
    ...filesBelow(path.join(dataDir, "logs")),
    // Of Pods, builds among them.
    ...filesBelow(path.join(dataDir, "node")).filter((file) => file.endsWith(".log")),
  ];
  const texts = logs.map((file) => [file, contentOf(file).toString("latin1")] as const);
  return [...texts, ["standard output", output] as const].flatMap(([file, text]) =>
    forms.filter((form) => text.includes(form)).map((form) => `${file}: ${form}`),
  );
}
