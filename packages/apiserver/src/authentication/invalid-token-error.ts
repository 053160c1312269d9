/** The token is not one of ours, or no longer good. The message is for who asks, and holds no secret. */
export class InvalidTokenError extends Error {
  constructor(why?: string) {
    super(why ? `[invalid bearer token, ${why}]` : "invalid bearer token");
  }
}
