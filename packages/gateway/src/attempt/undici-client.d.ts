/** The one class of undici that the gateway needs: the whole package costs 12 MB more of memory. */
declare module "undici/lib/dispatcher/client.js" {
  import { type Client } from "undici";
  const UndiciClient: typeof Client;
  // oxlint-disable-next-line import/no-default-export -- it is a CommonJS module
  export default UndiciClient;
}
