/** What one APIRule may contain: generous for people, and a limit for what others have to compute. */
export const bounds = {
  /** The original has one. */
  hosts: 20,
  hostLength: 255,
  rules: 1_000,
  pathLength: 2_048,
  methods: 9,
  authentications: 10,
  authorizations: 20,
  fromHeaders: 8,
  fromParams: 8,
  scopes: 64,
  audiences: 64,
  claimLength: 512,
  uriLength: 2_048,
  origins: 100,
  originLength: 512,
  corsItems: 100,
  corsItemLength: 256,
  headers: 64,
  headerNameLength: 256,
  headerValueLength: 4_096,
  timeoutSeconds: 3_900,
} as const;

/** Seconds, for rules that name none (`defaultHttpTimeout` of the original). */
export const defaultTimeoutSeconds = 180;

export const methods = [
  "GET",
  "HEAD",
  "POST",
  "PUT",
  "DELETE",
  "CONNECT",
  "OPTIONS",
  "TRACE",
  "PATCH",
] as const;
