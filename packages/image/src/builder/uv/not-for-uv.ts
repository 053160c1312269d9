/** pip has to install these packages; the message says why, and holds no secret. */
export class NotForUv extends Error {
  override readonly name = "NotForUv";
}
