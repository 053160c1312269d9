/** Random numbers that are the same for the same seed; `SPRY_TEST_SEED` asks for others, `random` for ones never used before. */
export function seeded(usual: number): { random: () => number; seed: number } {
  const asked = process.env["SPRY_TEST_SEED"];
  const seed = asked === "random" ? Math.floor(Math.random() * 2 ** 31) : Number(asked ?? usual);
  let state = seed >>> 0;
  // mulberry32
  const random = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let bits = Math.imul(state ^ (state >>> 15), state | 1);
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61);
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
  };
  return { random, seed };
}
