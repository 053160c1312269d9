/** One line of what a look at a data directory comes to. */
export interface Finding {
  /** What was looked at, and with a problem: at which of it. */
  what: string;
  /** Absent when all is well. */
  problem?: string;
  /** Worth knowing, and neither good nor bad by itself: what is missing may never be needed. */
  isNote?: boolean;
  /** What to do about it. */
  wayOut?: string;
}
