/** Whether processes can be kept apart could not be found out, for a reason that may pass. */
export class TrialFailed extends Error {
  override readonly name = "TrialFailed";
  /** What to do about it. */
  readonly wayOut =
    "start again when the cause is gone (space in /dev/shm and in the data directory, free processes and memory); " +
    "Pods are not run as plain processes for such a reason";

  constructor(why: string, attempts: number) {
    super(`the sandbox process could not be tried (${attempts} attempts): ${why}`);
  }
}
