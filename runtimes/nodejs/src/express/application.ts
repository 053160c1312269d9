/** What handlers ask of `req.app`, Express' application, which does not exist: its settings and `locals`. */

const settings: Record<string, unknown> = {
  env: process.env["NODE_ENV"] || "development",
  etag: false,
  "query parser": "extended",
  "subdomain offset": 2,
  "x-powered-by": false,
};

function unsupported(name: string): () => never {
  return () => {
    throw new Error(
      `req.app.${name} needs an application of Express: depend on express, and export the application`,
    );
  };
}

/** The same for all requests, as in Express. */
export const application = {
  locals: {} as Record<string, unknown>,
  settings,
  mountpath: "/",
  path: () => "",
  get: (name: string) => settings[name],
  set(name: string, value: unknown) {
    settings[name] = value;
    return application;
  },
  enable: (name: string) => application.set(name, true),
  disable: (name: string) => application.set(name, false),
  enabled: (name: string) => Boolean(settings[name]),
  disabled: (name: string) => !settings[name],
  render: unsupported("render"),
  use: unsupported("use"),
  listen: unsupported("listen"),
};
