/** The token is not one of ours, or no longer valid. The message is for the client, and holds no secret. */
export class InvalidTokenError extends Error {
  constructor(why?: string) {
    super(why ? `[invalid bearer token, ${why}]` : "invalid bearer token");
  }
}
