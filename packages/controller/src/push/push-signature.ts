import { createHmac, timingSafeEqual } from "node:crypto";

/** Headers with an HMAC-SHA256 of the body: GitHub and Gitea, Bitbucket, and a generic one. */
const signatureHeaders = ["x-hub-signature-256", "x-hub-signature", "x-signature-256"];

/** Whether a request shows one of the secrets, as a signature of its body or, from GitLab, as it is. */
export function isSigned(headers: Headers, body: Uint8Array, secrets: readonly string[]): boolean {
  const shown = signatureHeaders.flatMap((name) => headers.get(name) ?? []);
  const token = headers.get("x-gitlab-token");
  let found = false;
  // Every secret is tried, whichever fits: the time that it takes reveals nothing.
  for (const secret of secrets) {
    const hmac = createHmac("sha256", secret).update(body).digest("hex");
    for (const signature of shown) found = isSame(signature, `sha256=${hmac}`) || found;
    if (token !== null) found = isSame(token, secret) || found;
  }
  return found;
}

/** Of the same length in every case, so that the length reveals nothing either. */
function isSame(a: string, b: string): boolean {
  const digest = (text: string) => createHmac("sha256", "compare").update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}
