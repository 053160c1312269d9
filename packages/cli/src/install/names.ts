/** What several parts of an installation know of each other. */
export const gatewayName = "serverless-gateway";
/** A headless Service: its name has the addresses of all gateways. */
export const gatewayPodsName = `${gatewayName}-pods`;
export const dashboardName = "serverless-dashboard";
export const dashboardLabels = { "app.kubernetes.io/name": dashboardName };
export const gatewayLabels = { "app.kubernetes.io/name": gatewayName };
