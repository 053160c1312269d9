/** What a file system can do while a directory is read. */
import { BuildError } from "@spry/image";
import { messageOf } from "@spry/kube";
import { UserError } from "../user-error.ts";

/** An operation on a file has failed. */
export const isFileError = (error: unknown): boolean =>
  error instanceof Error && "syscall" in error && "code" in error;

/** For the user; an error of ours is thrown on. */
export function explained(error: unknown): UserError | BuildError {
  if (error instanceof UserError || error instanceof BuildError) return error;
  if (!isFileError(error)) throw error;
  return new UserError(`the directory cannot be read: ${messageOf(error)}`);
}
