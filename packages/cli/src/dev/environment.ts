/** The environment of a directory's process: what a Pod of the Function would have. */
import { existsSync } from "node:fs";
import path from "node:path";
import { environmentOf, type Function, resolveResources } from "@spry/function";
import { type KubeClient, resources } from "@spry/kube";
import { parseDotEnv } from "../dot-env.ts";
import { functionOf, type Project } from "../project/project.ts";
import { shownPath } from "../project/shown-path.ts";
import { readText } from "../text-file.ts";
import { UserError } from "../user-error.ts";

export interface EnvironmentOptions {
  namespace: string;
  /** Directory with a `.env` for several Functions, before that of the Function's own. */
  above?: string | undefined;
  /** Directory for `HOME` and `TMPDIR`. */
  scratch: string;
  /** Directory with the interpreter. */
  bin: string;
  /** Where the Function publishes events. */
  publisher: string;
  /** Python packages. */
  modules: string | undefined;
  /** Value of `FUNC_INSPECT`. */
  inspect: string | undefined;
  /** Resolves values from Secrets and ConfigMaps, if a cluster can be reached. */
  client: KubeClient | undefined;
  report: (line: string) => void;
}

const lookupMs = 3000;
const defaultMemory = "L";

/** Variables of `.env` take precedence over those of `spry.yaml`, and the contract's over both. */
export async function environmentFor(
  project: Project,
  options: EnvironmentOptions,
): Promise<Record<string, string>> {
  const { namespace, scratch, bin, publisher, modules, inspect } = options;
  const fn = functionOf(project, namespace, { inline: { source: "" } });
  const { above = project.root } = options;
  const roots = new Set([above, project.root]);
  const local = Object.assign({}, ...[...roots].map((root) => readDotEnv(root, options.report)));
  const own = await resolved(fn, local, options);
  fn.spec.env = Object.entries(own).map(([name, value]) => ({ name, value }));
  const { resources: amounts } = resolveResources(
    "function",
    fn.spec.resourceConfiguration?.function,
    defaultMemory,
  );
  const memoryLimit = amounts.limits?.["memory"];
  const variables = environmentOf(fn, {
    traceCollectorEndpoint: "",
    publisherProxyAddress: publisher,
    isDevelopment: true,
    ...(memoryLimit !== undefined && { memoryLimit }),
  });
  return {
    PATH: [bin, "/usr/local/bin", "/usr/bin", "/bin"].join(path.delimiter),
    HOME: scratch,
    TMPDIR: scratch,
    ...Object.fromEntries(variables.map(({ name, value = "" }) => [name, value])),
    ...(project.runtime.language === "python" && {
      // The runtime puts the directory there once it has loaded what it needs itself: a `json.py` is the user's.
      PYTHONPATH: [modules, own["PYTHONPATH"]].filter((each) => each).join(path.delimiter),
    }),
    // Requests no longer come to a process that is to end.
    FUNC_SHUTDOWN_DELAY_MS: "0",
    ...(inspect !== undefined && { FUNC_INSPECT: inspect }),
  };
}

function readDotEnv(root: string, report: (line: string) => void): Record<string, string> {
  const file = path.join(root, ".env");
  if (!existsSync(file)) return {};
  const shown = shownPath(file);
  try {
    const { values, problems } = parseDotEnv(readText(file, shown));
    for (const { line, message } of problems) report(`${shown}:${line}: ${message}`);
    return values;
  } catch (error) {
    // A virtual environment may have this name, too: the Function runs without the file.
    if (!(error instanceof UserError)) throw error;
    report(`${error.message}: its variables are not set`);
    return {};
  }
}

/** The Function's own variables, with values from Secrets and ConfigMaps. */
async function resolved(
  fn: Function,
  local: Record<string, string>,
  { client, namespace, report }: EnvironmentOptions,
): Promise<Record<string, string>> {
  const values: Record<string, string> = {};
  for (const { name, value, valueFrom } of fn.spec.env ?? []) {
    if (!valueFrom) {
      values[name] = value ?? "";
      continue;
    }
    if (Object.hasOwn(local, name)) continue;
    const { secretKeyRef, configMapKeyRef } = valueFrom;
    const reference = secretKeyRef ?? configMapKeyRef;
    const found =
      client && reference && (await lookUp(client, namespace, !!secretKeyRef, reference));
    if (typeof found === "string") values[name] = found;
    else if (!reference?.optional)
      report(
        `${name} is not set: ${secretKeyRef ? "Secret" : "ConfigMap"} ${reference?.name} ` +
          `${client ? `has no key ${reference?.key} that you may read` : "needs a platform"}; set it in .env`,
      );
  }
  return { ...values, ...local };
}

async function lookUp(
  client: KubeClient,
  namespace: string,
  isSecret: boolean,
  { name = "", key }: { name?: string; key: string },
): Promise<string | undefined> {
  const target = { namespace, name, signal: AbortSignal.timeout(lookupMs) };
  try {
    if (!isSecret) return (await client.get(resources.configMaps, target)).data?.[key];
    const value = (await client.get(resources.secrets, target)).data?.[key];
    return value === undefined ? undefined : Buffer.from(value, "base64").toString();
  } catch {
    return undefined;
  }
}
