const commonHeaders = {
  "cache-control": "no-store",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=()",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
};

const policy = {
  "default-src": "'none'",
  "script-src": "'self'",
  "style-src": "'self'",
  "img-src": "'self' data:",
  "connect-src": "'self'",
  "base-uri": "'none'",
  "form-action": "'none'",
  "frame-ancestors": "'none'",
  "require-trusted-types-for": "'script'",
  "trusted-types": "'none'",
};

/** On every response. The page loads and runs only what this server serves, talks only to this server, and cannot be framed. */
export const securityHeaders: Record<string, string> = {
  "content-security-policy": Object.entries(policy)
    .map(([name, value]) => `${name} ${value}`)
    .join("; "),
  ...commonHeaders,
};

/** On content that others have written (objects, Functions' responses): as a page in a browser, it could do nothing. */
export const foreignHeaders = {
  ...commonHeaders,
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
};
