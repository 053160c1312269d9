/** Tokens and codes travel there: in plain text only within one machine. */
export const isSafeUrl = ({ protocol, hostname }: URL): boolean =>
  protocol === "https:" ||
  (protocol === "http:" && ["127.0.0.1", "[::1]", "localhost"].includes(hostname));
