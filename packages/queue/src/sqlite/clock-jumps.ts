import { type Clock } from "@spry/kube";

/** Less is a clock that is being adjusted, not set. */
const leastMs = 500;

/** As in `@spry/kube`, whose other parts would only cost the thread memory: each call returns by how much the clock has been set. */
export function clockJumps(clock: Clock): () => number {
  let offset = clock.now() - clock.elapsed();
  return () => {
    const present = clock.now() - clock.elapsed();
    const byMs = Math.round(present - offset);
    offset = present;
    return Math.abs(byMs) < leastMs ? 0 : byMs;
  };
}
