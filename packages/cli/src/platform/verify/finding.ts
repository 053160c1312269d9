/** One line of what a look at a data directory comes to. */
export interface Finding {
  /** What was looked at, and with a problem: at which of it. */
  what: string;
  /** Absent when all is well. */
  problem?: string;
  /** What to do about it. */
  wayOut?: string;
}
