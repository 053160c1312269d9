/** The keys by which browsers encrypt what their users type: only a login of the same user on the same platform gives the key again. */
import { createHmac } from "node:crypto";
import { type Transport, transportOrigin } from "@spry/kube";
import { RequestError } from "./http.ts";

/** Under which names the browser stores what is typed, and with which key. */
export interface DraftKey {
  /** The uid of the namespace `kube-system`; empty for users who may not read it, whose key differs by platform all the same. */
  platform: string;
  /** Names the user without revealing who it is to a reader of the browser's storage. */
  user: string;
  /** 32 bytes in base64. */
  key: string;
}

const timeoutMs = 10_000;
const review = { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" };

/** @param secret of this installation. Each login of a user gets the same key until the secret changes. */
export async function draftKeyOf(transport: Transport, secret: string | Buffer): Promise<DraftKey> {
  const [user, system] = await Promise.all([
    read(transport, "/apis/authentication.k8s.io/v1/selfsubjectreviews", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(review),
    }),
    read(transport, "/api/v1/namespaces/kube-system"),
  ]);
  const { username, uid = "" } = fields(fields(fields(user)["status"])["userInfo"]);
  if (typeof username !== "string" || username === "")
    throw new RequestError(503, "the API server does not say who is logged in");
  const platform = String(fields(fields(system)["metadata"])["uid"] ?? "");
  const derive = (...what: string[]) =>
    createHmac("sha256", secret)
      .update(JSON.stringify(["drafts", ...what, username, uid]))
      .digest();
  return {
    platform,
    // Without the platform: a user who may read its uid from now on is still the same one.
    user: derive("user").toString("base64url"),
    key: derive("key", platform).toString("base64"),
  };
}

async function read(transport: Transport, path: string, init: RequestInit = {}): Promise<unknown> {
  const signal = AbortSignal.timeout(timeoutMs);
  const request = new Request(transportOrigin + path, { ...init, signal });
  try {
    const response = await transport(request);
    if (response.ok) return await response.json();
    await response.body?.cancel();
  } catch {
    throw new RequestError(502, "the API server cannot be reached");
  }
  return undefined;
}

const fields = (value: unknown): Record<string, unknown> =>
  typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
