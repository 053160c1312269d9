/** The dashboard: a page in the browser, and the small server behind it that passes the user's credential on. */
export { type Dashboard, type DashboardOptions, startDashboard } from "./server/start.ts";
export { metricsAt, type ReadGatewayMetrics } from "./server/function-metrics.ts";
export { type Access, loginTokenPrefix } from "./server/access.ts";
export { buildWeb, bundleInto as bundleWeb } from "./server/build-web.ts";
export { type OidcOptions } from "./server/oidc.ts";
export { readWeb, type WebFiles } from "./server/web-files.ts";
export { codeProof } from "./server/sessions.ts";
