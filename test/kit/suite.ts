/** Whether the full suite runs (`npm run test:full`), which has hours; `npm test` has minutes. */
export const isFullSuite = process.env["SPRY_TEST_FULL"] === "1";

/** How often a row repeats what it does: as often as shows the fact in `npm test`, and as often as finds rare races in the full suite. */
export const rounds = ({ quick, full }: { quick: number; full: number }): number =>
  isFullSuite ? full : quick;
