/** What a tab keeps of a login. */
export interface StoredLogin {
  token: string;
  /** Milliseconds since 1970; absent for a token of the API server, whose expiry is not known. */
  expires?: number;
  /** With it, a login at an identity provider is renewed. */
  refresh?: string;
}
