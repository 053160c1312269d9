import { createHmac, timingSafeEqual } from "node:crypto";
import { type BuildGrant, type Grant } from "./grants.ts";

/** As HTTP Basic and docker configurations have it. */
export interface Login {
  username: string;
  password: string;
}

/** Makes logins and recognizes them. Nothing is kept: the password says, signed, what it is good for. */
export interface Logins {
  platform(): Login;
  node(): Login;
  namespace(of: { namespace: string; uid: string }): Login;
  build(of: Omit<BuildGrant, "for">): Login;
  /** Undefined for a login that was not made with this key. Whether it is still good is not looked at. */
  grantOf(login: Login): Grant | undefined;
}

/** Changes when the password's form does: a password of another form is not a password. */
const version = "spry1";
/** Longer than any that is made here: names have 63 characters at most. */
const maxPasswordLength = 2048;

/** `key` is the secret that registry and controller share, 32 random bytes or more; with another one all logins end. */
export function createLogins(key: string): Logins {
  if (key.length < 32) throw new Error("the registry's key is too short: 32 characters at least");
  const sign = (text: string) => createHmac("sha256", key).update(text).digest();
  const loginOf = (grant: Grant): Login => {
    const text = `${version}.${Buffer.from(JSON.stringify(grant)).toString("base64url")}`;
    return { username: usernameOf(grant), password: `${text}.${sign(text).toString("base64url")}` };
  };
  return {
    platform: () => loginOf({ for: "platform" }),
    node: () => loginOf({ for: "node" }),
    namespace: ({ namespace, uid }) => loginOf({ for: "namespace", namespace, uid }),
    build: (of) => loginOf({ for: "build", ...of }),
    grantOf({ username, password }) {
      const end = password.lastIndexOf(".");
      if (password.length > maxPasswordLength || !password.startsWith(`${version}.`))
        return undefined;
      const text = password.slice(0, end);
      const signature = Buffer.from(password.slice(end + 1), "base64url");
      const expected = sign(text);
      if (signature.length !== expected.length || !timingSafeEqual(signature, expected))
        return undefined;
      // Signed: it has the form that it was given above.
      const payload = Buffer.from(text.slice(version.length + 1), "base64url").toString();
      const grant = JSON.parse(payload) as Grant;
      return username === usernameOf(grant) ? grant : undefined;
    },
  };
}

/** For people and logs; the password alone decides. */
function usernameOf(grant: Grant): string {
  if (grant.for === "namespace") return `namespace-${grant.namespace}`;
  if (grant.for === "build") return `build-${grant.namespace}-${grant.function}`;
  return grant.for;
}
