import { type UnknownObject } from "@spry/kube";
import { type Engine } from "../engine.ts";
import { type ResourceRequest } from "../request.ts";
import { badRequest, conflict, notFound } from "../errors.ts";
import { FieldErrors } from "../field-errors.ts";
import { type ResourceType } from "../resources/resource-type.ts";
import { checkBody } from "../schema/field-validation.ts";
import { builtin } from "../schema/schema.ts";
import { type Place } from "../store/store.ts";
import { timestampOf } from "../timestamp.ts";
import { type BoundClaims, type ObjectRef } from "./bound-claims.ts";
import { serviceAccountUsername } from "./service-account-user.ts";
import { issuer } from "./issuer.ts";

interface TokenRequestSpec {
  audiences?: string[];
  expirationSeconds?: number;
  boundObjectRef?: { kind?: string; apiVersion?: string; name?: string; uid?: string } | null;
}

const group = "authentication.k8s.io";
const defaultSeconds = 3600;
const minSeconds = 600;
const maxSeconds = 2 ** 32;
/** As kube-apiserver with `--service-account-max-token-expiration=8760h`: a year. */
const longestSeconds = 365 * 24 * 3600;

/**
 * `POST serviceaccounts/<name>/token`: a token of the ServiceAccount, for a time and perhaps for as long
 * as an object is there (`pkg/registry/core/serviceaccount/storage/token.go`). Throws a `StatusError`.
 */
export async function requestToken(
  engine: Engine,
  request: ResourceRequest,
  body: UnknownObject,
): Promise<object> {
  const { namespace, name } = request;
  request.warnings.push(...checkBody(tokenRequestType(request.type), body, request.query));
  const stored = engine.store.get({ collection: "/serviceaccounts", namespace, name });
  checkPlace(body, request);
  if (!stored) throw notFound(request.type, name);
  const uid = stored.object.metadata.uid ?? "";
  const expected = body.metadata?.uid;
  if (expected && expected !== uid) {
    throw conflict(
      { group, plural: "TokenRequest" },
      name,
      `the UID in the token request (${expected}) does not match the UID of the service account (${uid})`,
    );
  }
  const spec = (body.spec ?? {}) as TokenRequestSpec;
  const audiences = spec.audiences?.length ? spec.audiences : [issuer];
  const wantedSeconds = spec.expirationSeconds ?? defaultSeconds;
  checkExpiration(wantedSeconds);
  const expirationSeconds = Math.min(wantedSeconds, longestSeconds);
  if (wantedSeconds > longestSeconds) {
    request.warnings.push(
      `requested expiration of ${wantedSeconds} seconds shortened to ${longestSeconds} seconds`,
    );
  }
  const claims: BoundClaims["kubernetes.io"] = {
    namespace,
    serviceaccount: { name, uid },
    ...(spec.boundObjectRef && boundTo(engine, request, spec.boundObjectRef)),
  };
  const now = engine.clock.now();
  const sub = serviceAccountUsername(namespace, name);
  const token = await engine.authenticator.tokens.issue(
    { sub, aud: audiences, "kubernetes.io": claims },
    expirationSeconds,
  );
  return {
    kind: "TokenRequest",
    apiVersion: `${group}/v1`,
    metadata: { name, namespace, uid, creationTimestamp: timestampOf(now) },
    spec: { audiences, expirationSeconds, boundObjectRef: spec.boundObjectRef ?? null },
    status: { token, expirationTimestamp: timestampOf(now + expirationSeconds * 1000) },
  };
}

/** For the check of fields alone: TokenRequests are not stored. */
function tokenRequestType(type: ResourceType): ResourceType {
  const schema = builtin.definitions["io.k8s.api.authentication.v1.TokenRequest"] ?? {};
  return { ...type, group, version: "v1", kind: "TokenRequest", schema };
}

function checkPlace({ metadata }: UnknownObject, { namespace, name }: ResourceRequest): void {
  const errors = new FieldErrors();
  if (metadata?.name && metadata.name !== name) {
    const detail = "must match the service account name if specified";
    errors.invalid("metadata.name", metadata.name, detail);
  } else if (metadata?.namespace && metadata.namespace !== namespace) {
    const detail = "must match the service account namespace if specified";
    errors.invalid("metadata.namespace", metadata.namespace, detail);
  }
  errors.throwIfAny("TokenRequest", group, name);
}

function checkExpiration(seconds: number): void {
  const errors = new FieldErrors();
  const field = "spec.expirationSeconds";
  if (seconds < minSeconds) {
    errors.invalid(field, seconds, "may not specify a duration less than 10 minutes");
  }
  if (seconds > maxSeconds) {
    errors.invalid(field, seconds, "may not specify a duration larger than 2^32 seconds");
  }
  errors.throwIfAny("TokenRequest", group, "");
}

type Holders = Pick<BoundClaims["kubernetes.io"], "pod" | "secret" | "node">;

/** The claims about the object that the token is bound to; it has to be there. */
function boundTo(
  { store }: Engine,
  { namespace, name: account }: ResourceRequest,
  { kind = "", apiVersion = "", name = "", uid }: NonNullable<TokenRequestSpec["boundObjectRef"]>,
): Holders {
  const find = (plural: string): UnknownObject => {
    const home = plural === "nodes" ? "" : namespace;
    const place: Place = { collection: `/${plural}`, namespace: home, name };
    const found = store.get(place)?.object;
    if (!found) throw notFound({ group: "", plural }, name);
    return found;
  };
  const checked = ({ metadata }: UnknownObject): ObjectRef => {
    if (uid && metadata.uid !== uid) {
      throw conflict(
        { group: "", plural: kind },
        name,
        `the UID in the bound object reference (${uid}) does not match the UID in record. The object might have been deleted and then recreated`,
      );
    }
    return { name, uid: metadata.uid ?? "" };
  };
  const isCore = !apiVersion.includes("/");
  if (isCore && kind === "Secret") return { secret: checked(find("secrets")) };
  if (isCore && kind === "Node") return { node: checked(find("nodes")) };
  if (!isCore || kind !== "Pod") {
    const [ofGroup, version] = isCore ? ["", apiVersion] : apiVersion.split("/");
    throw badRequest(`cannot bind token to object of type ${ofGroup}/${version}, Kind=${kind}`);
  }
  const pod = find("pods");
  const { serviceAccountName, nodeName } = (pod.spec ?? {}) as {
    serviceAccountName?: string;
    nodeName?: string;
  };
  if (serviceAccountName !== account) {
    throw badRequest(
      `cannot bind token for serviceaccount "${account}" to pod running with different serviceaccount name.`,
    );
  }
  const node = nodeName
    ? store.get({ collection: "/nodes", namespace: "", name: nodeName })?.object
    : undefined;
  return {
    pod: checked(pod),
    ...(nodeName && { node: { name: nodeName, uid: node?.metadata.uid ?? "" } }),
  };
}
