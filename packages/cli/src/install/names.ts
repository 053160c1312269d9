/** What several parts of an installation know of each other. */
export const gatewayName = "serverless-gateway";
export const gatewayLabels = { "app.kubernetes.io/name": gatewayName };
