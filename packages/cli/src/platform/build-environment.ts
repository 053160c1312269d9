const proxies = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"];
const carried = [
  ...proxies.flatMap((name) => [name, name.toLowerCase()]),
  "GIT_SSL_CAINFO",
  "GIT_PROXY_SSL_CAINFO",
];

/**
 * This machine's way to Git servers and package registries, as builds get it: proxies, and whose certificates Git
 * trusts. A proxy with a password is left out, because all who can read Jobs would see it.
 */
export function buildEnvironmentOf(env: NodeJS.ProcessEnv): Record<string, string> {
  const entries = carried.flatMap((name): [string, string][] => {
    const value = env[name];
    return value && !value.includes("@") ? [[name, value]] : [];
  });
  return Object.fromEntries(entries);
}
