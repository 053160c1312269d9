import { createHash } from "node:crypto";

interface Index {
  paths?: Record<string, { serverRelativeURL?: string }>;
}

/**
 * What stands for the document of a group and version in a server's `/openapi/v3`: the hash that its URL has there, or one of
 * that URL. Undefined when the server lists none. Throws for a text that is not JSON.
 */
export function openApiHashIn(index: string, key: string): string | undefined {
  const url = (JSON.parse(index) as Index | null)?.paths?.[key]?.serverRelativeURL;
  if (typeof url !== "string") return undefined;
  const hash = URL.parse(url, "https://server")?.searchParams.get("hash");
  if (hash && /^[0-9A-Za-z]{1,128}$/.test(hash)) return hash;
  return createHash("sha256").update(url).digest("hex").toUpperCase();
}
