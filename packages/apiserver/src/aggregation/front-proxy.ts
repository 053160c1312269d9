/** By which aggregated servers recognize this API server, and trust whom it names in `X-Remote-User`. */
export interface FrontProxy {
  /** PEM of an authority of its own: a client certificate of the platform must not pass for the API server's. */
  ca: string;
  /** PEM, of a client. */
  cert: string;
  key: string;
}

export const userHeader = "X-Remote-User";
export const uidHeader = "X-Remote-Uid";
export const groupHeader = "X-Remote-Group";
export const extraPrefix = "X-Remote-Extra-";
