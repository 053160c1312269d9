/** Milliseconds since some moment. `performance` would have to be loaded first: 1 MB of the process. */
export function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1000 + nanoseconds / 1e6;
}
