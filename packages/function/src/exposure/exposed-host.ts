import { type ObjectKey } from "@spry/kube/browser";
import { type CorsPolicy, type JwtAuthentication, type JwtAuthorization } from "./api-rule.ts";

/**
 * What the gateway serves for one host of one APIRule: computed by the room exposure (`routesOf`), consumed by the
 * gateway. A host belongs to one APIRule.
 */
export interface ExposedHost {
  /** A domain name in lower case, or `*.` and one: any name below it. */
  host: string;
  /** The APIRule that it belongs to. */
  apiRule: ObjectKey;
  certificate: HostCertificate;
  /** What plain HTTP gets. */
  plainHttp: "serve" | "redirect" | "refuse";
  /** Undefined: the Service's own CORS headers are removed, and none are added. */
  cors?: CorsPolicy;
  rules: ExposedRule[];
}

export type HostCertificate =
  /** `<name>.crt` and `<name>.key` in the Secret of collected certificates. */
  | { kind: "collected"; name: string }
  /** Issued by the platform's own authority. */
  | { kind: "own" }
  /** HTTPS cannot be served: the APIRule's status says why. */
  | { kind: "missing" };

/** In the order in which they are tried. */
export interface ExposedRule {
  path: PathPattern;
  methods: readonly string[];
  authentication: Authentication;
  target: RouteTarget;
  timeoutMs: number;
  /** Set on the request that the Service gets. */
  requestHeaders: Readonly<Record<string, string>>;
  /** If there are any, they are its `Cookie` header. */
  requestCookies: Readonly<Record<string, string>>;
}

export type PathPattern =
  /** As APIRules have it, with `/{**}` for `/*`. */
  | { kind: "template"; template: string }
  /** RE2, for the whole path (v1beta1). */
  | { kind: "regex"; regex: string };

/** `issuer` is undefined in a v1beta1 rule that accepts any issuer with these keys. */
export type TokenAuthentication = Omit<JwtAuthentication, "issuer"> & {
  issuer: string | undefined;
};

export type Authentication =
  | { kind: "none" }
  | {
      kind: "jwt";
      authentications: readonly TokenAuthentication[];
      authorizations: readonly JwtAuthorization[];
      /** What a request without a token gets: 403 as with Istio, or 401 as with Ory; 403 by default. */
      withoutToken?: 401 | 403;
    }
  /** The rule asks for something that is not served: no request passes. */
  | { kind: "refused"; reason: string };

export interface RouteTarget {
  namespace: string;
  name: string;
  port: number;
  /** Whether the Service exists, and has that port. */
  exists: boolean;
}

/** The Secret, in the platform's namespace, that has the certificates of all Gateways; the only one that the gateway reads. */
export const certificatesSecretName = "serverless-gateway-certificates";

/** In that Secret, what begins with this is issued by the platform's own authority; the names in it say for which hosts. */
export const ownCertificatePrefix = "own-";
