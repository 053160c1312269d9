/** The parts of undici that the gateway needs: the whole package costs 12 MB more of memory. */
declare module "undici/lib/dispatcher/client.js" {
  import { type Client } from "undici";
  const UndiciClient: typeof Client;
  // oxlint-disable-next-line import/no-default-export -- it is a CommonJS module
  export default UndiciClient;
}

declare module "undici/lib/core/connect.js" {
  import { type buildConnector } from "undici";
  export type Connector = buildConnector.connector;
  const build: (
    options: buildConnector.BuildOptions & { allowHalfOpen?: boolean; useH2c?: boolean },
  ) => Connector;
  // oxlint-disable-next-line import/no-default-export -- it is a CommonJS module
  export default build;
}
