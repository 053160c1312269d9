import { type Login, type Logins } from "../index.ts";

/** One login that may do everything. */
export function onlyLogin(login: Login): Pick<Logins, "grantOf"> {
  const isIt = ({ username, password }: Login) =>
    username === login.username && password === login.password;
  return { grantOf: (given) => (isIt(given) ? { for: "platform" } : undefined) };
}
