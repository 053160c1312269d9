/** What the tests use of `oidc-provider`, which brings no types. */
declare module "oidc-provider" {
  import { type RequestListener } from "node:http";

  export class Provider {
    constructor(issuer: string, configuration: object);
    callback(): RequestListener;
  }
}
