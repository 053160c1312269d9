import { type ApiRule, apiRules, istioGateways } from "@spry/function";
import { apiVersionOf, dumpYaml, type KubeClient } from "@spry/kube";
import { connect, type GlobalOptions } from "../connection.ts";
import { hostUrls } from "../expose/host-urls.ts";
import { keysOf } from "../expose/issuer-keys.ts";
import { untilTrue } from "../until-true.ts";
import { findFunction } from "../find-function.ts";
import { ownerReference } from "../owner-reference.ts";
import { UserError } from "../user-error.ts";

export interface ExposeOptions extends GlobalOptions {
  /** Labels in the Gateway's domain, or domain names. */
  host?: string[];
  /** `namespace/name` */
  gateway: string;
  path: string;
  method?: string[];
  jwtIssuer?: string;
  jwksUri?: string;
  audience?: string[];
  scope?: string[];
  /** Origins; `*` for all. */
  cors?: string[];
  /** Seconds that a request may take. */
  requestTimeout?: number;
  dryRun?: boolean;
  wait: boolean;
}

const allMethods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];
const waitMs = 15_000;

/** Writes the APIRule with a Function's name, and prints under which URL the Function answers, and to whom. */
export async function expose(name: string, options: ExposeOptions): Promise<void> {
  const { client, namespace, gatewayTls } = await connect(options);
  const fn = await findFunction(client, namespace, name);
  const rule = await apiRuleFor(name, namespace, options);
  if (options.dryRun) return console.log(dumpYaml(rule).trimEnd());
  // Deleted with the Function: its host is free again.
  const owned = { ...rule, metadata: { ...rule.metadata, ownerReferences: [ownerReference(fn)] } };
  const stored = await client.apply(apiRules, owned, { fieldManager: "spry-expose", force: false });
  console.error(`apirule/${name} applied`);
  if (!options.wait) return;
  const { status } = await untilProcessed(client, { namespace, name }, stored.metadata.generation);
  if (status?.state === "Error") throw new UserError(status.description ?? "it is not served");
  if (status?.state === "Warning") console.error(`warning: ${status.description}`);
  const [inNamespace, gatewayName = ""] = options.gateway.split("/");
  const where = { namespace: inNamespace, name: gatewayName };
  const found = await client.get(istioGateways, where);
  for (const url of hostUrls(rule.spec.hosts ?? [], found, gatewayTls))
    console.log(`${url}  ${audienceOf(options)}`);
}

/** @throws UserError if an option is not valid, or the issuer's keys cannot be found */
export async function apiRuleFor(
  name: string,
  namespace: string,
  options: Omit<ExposeOptions, "wait">,
): Promise<ApiRule> {
  const { host = [name], gateway, path, method, cors, requestTimeout } = options;
  const methods = (method ?? allMethods).map((each) => each.toUpperCase());
  // Browsers ask before they call (the original needs the method in a rule for that).
  if (cors && !methods.includes("OPTIONS")) methods.push("OPTIONS");
  return {
    apiVersion: apiVersionOf(apiRules),
    kind: apiRules.kind,
    metadata: { name, namespace },
    spec: {
      hosts: host,
      gateway,
      service: { name, port: 80 },
      ...(cors ? { corsPolicy: corsPolicyFor(cors, methods) } : {}),
      ...(requestTimeout === undefined ? {} : { timeout: requestTimeout }),
      rules: [{ path, methods, ...(await accessFor(options)) }],
    },
  };
}

async function accessFor(options: Omit<ExposeOptions, "wait">) {
  const { jwtIssuer: issuer, jwksUri, audience: audiences, scope: requiredScopes } = options;
  if (issuer === undefined) {
    const [needless] = [
      jwksUri && "--jwks-uri",
      audiences && "--audience",
      requiredScopes && "--scope",
    ].filter(Boolean);
    if (needless)
      throw new UserError(
        `${needless} has no effect without an issuer`,
        "name who issues the tokens with --jwt-issuer URL",
      );
    return { noAuth: true };
  }
  const authorization = {
    ...(requiredScopes ? { requiredScopes } : {}),
    ...(audiences ? { audiences } : {}),
  };
  const isLimited = Object.keys(authorization).length > 0;
  return {
    jwt: {
      authentications: [{ issuer, jwksUri: jwksUri ?? (await keysOf(issuer)) }],
      ...(isLimited ? { authorizations: [authorization] } : {}),
    },
  };
}

function corsPolicyFor(origins: string[], allowMethods: string[]) {
  return {
    allowOrigins: origins.map((origin) => (origin === "*" ? { regex: ".*" } : { exact: origin })),
    allowMethods,
    allowHeaders: ["Authorization", "Content-Type"],
  };
}

function audienceOf({ jwtIssuer, audience, scope }: ExposeOptions): string {
  if (jwtIssuer === undefined) return "open to everyone";
  const parts = [
    `with a token of ${jwtIssuer}`,
    ...(scope ? [`scope ${scope.join(" ")}`] : []),
    ...(audience ? [`audience ${audience.join(" ")}`] : []),
  ];
  return parts.join(", ");
}

/** The object once its status is about this generation of it. */
async function untilProcessed(
  client: KubeClient,
  target: { namespace: string; name: string },
  generation: number | undefined,
): Promise<ApiRule> {
  let current: ApiRule | undefined;
  await untilTrue("the APIRule has a status", waitMs, async () => {
    current = await client.get(apiRules, target);
    if (!current.status) return "are APIRules served in this cluster?";
    // Another installation does not say which generation its status is about.
    const { observedGeneration = generation } = current.status;
    return observedGeneration === generation;
  });
  return current!;
}
