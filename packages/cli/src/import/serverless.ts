/** The Serverless Framework's `serverless.yml`. */
import { UserError } from "../user-error.ts";
import { type Document, isRecord, recordIn, textIn } from "./aws-yaml.ts";
import { type Imported } from "./imported.ts";
import { lambdaConfig } from "./lambda-function.ts";

/** Whether it is one: OpenFaaS' stack.yml has functions, too, and no service. */
export function isServerless(document: Document): boolean {
  const provider = textIn(document, "provider") ?? textIn(document["provider"], "name");
  return (
    isRecord(document["functions"]) && (document["service"] !== undefined || provider === "aws")
  );
}

export function ofServerless(given: Document, file: string, directory: string): Imported[] {
  const document = resolved(given, given) as Document;
  const provider = recordIn(document, "provider");
  const kind = textIn(document, "provider") ?? textIn(provider, "name") ?? "aws";
  if (kind !== "aws")
    throw new UserError(
      `${file} is for the provider ${kind}, and only those for aws are imported`,
      "write a spry.yaml by hand (docs/spry-yaml.md)",
    );
  const common = [
    ...(document["plugins"] === undefined ? [] : pluginRemarks(document["plugins"])),
    ...(document["resources"] === undefined
      ? []
      : ["resources are not created: what the code uses of AWS has to exist"]),
  ];
  return Object.entries(recordIn(document, "functions")).map(([name, entry], index) => {
    const handler = textIn(entry, "handler");
    if (handler === undefined)
      throw new UserError(
        `${file} has no handler for ${name}: images of others cannot become Functions`,
        "remove that function from a copy of the file, and import the copy",
      );
    const events = isRecord(entry) && Array.isArray(entry["events"]) ? entry["events"] : [];
    const region = textIn(provider, "region");
    const remarks = index === 0 ? [...common] : [];
    if (isRecord(entry) && (entry["layers"] ?? provider["layers"]) !== undefined)
      remarks.push("layers are not used: declare what they have as dependencies");
    const { config, remarks: all } = lambdaConfig({
      name,
      handler,
      runtime: textIn(entry, "runtime") ?? textIn(provider, "runtime"),
      region: region?.includes("${") ? undefined : region,
      environment: { ...recordIn(provider, "environment"), ...recordIn(entry, "environment") },
      memory: textIn(entry, "memorySize") ?? textIn(provider, "memorySize"),
      timeout: textIn(entry, "timeout") ?? textIn(provider, "timeout"),
      schedules: events.flatMap((event) => schedulesIn(event)),
      events: events.map(kindOf).filter((each) => !/^(?:http|httpApi|schedule|url)$/.test(each)),
      remarks,
    });
    return { directory, config, remarks: all };
  });
}

/** Local servers and bundlers, which `spry dev` and `spry deploy` make unnecessary, need no word. */
function pluginRemarks(plugins: unknown): string[] {
  const names = Array.isArray(plugins) ? plugins.map(String) : [];
  const needless =
    /offline|esbuild|webpack|bundle|typescript|python-requirements|wsgi|dotenv|prune|deployment-bucket/;
  const others = names.filter((name) => !needless.test(name));
  return others.length > 0 ? [`the plugins ${others.join(", ")} have no effect`] : [];
}

const kindOf = (event: unknown) =>
  typeof event === "string" ? event : (Object.keys(event ?? {})[0] ?? "");

function schedulesIn(event: unknown): string[] {
  const found = isRecord(event) ? event["schedule"] : undefined;
  const rate = isRecord(found) ? found["rate"] : found;
  return [rate].flat().filter((each) => typeof each === "string");
}

const maxDepth = 8;

/** With the variables that the file itself gives values: `${self:custom.table}`, `${opt:stage, 'dev'}`, `${sls:stage}`. */
function resolved(value: unknown, document: Document, depth = 0): unknown {
  if (typeof value === "string")
    return depth > maxDepth
      ? value
      : value.replaceAll(/\$\{([^${}]+)\}/g, (whole, inner: string) => {
          const found = inner
            .split(",")
            .map((each) => valueOf(each.trim(), document))
            .find((each) => each !== undefined);
          return found === undefined ? whole : String(resolved(found, document, depth + 1));
        });
  if (Array.isArray(value)) return value.map((each) => resolved(each, document, depth));
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [key, resolved(each, document, depth)]),
  );
}

function valueOf(name: string, document: Document): string | undefined {
  const [, literal] = /^(?:'([^']*)'|"[^"]*")$/.exec(name) ?? [];
  if (literal !== undefined) return literal;
  const stage = textIn(document["provider"], "stage");
  if (/^(?:sls|opt|self:provider)[:.]stage$/.test(name))
    return stage === undefined || stage.includes("${opt:stage") ? "dev" : stage;
  if (name === "self:service") {
    const service = document["service"];
    return textIn(document, "service") ?? textIn(service, "name");
  }
  const [, path] = /^self:(.+)$/.exec(name) ?? [];
  if (path === undefined) return undefined;
  const found = path
    .split(".")
    .reduce<unknown>((holder, key) => (isRecord(holder) ? holder[key] : undefined), document);
  return typeof found === "string" ? found : undefined;
}
