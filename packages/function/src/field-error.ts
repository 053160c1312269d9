/** One thing wrong with one field. */
export interface FieldError {
  /** As in `spec.env[0].name`. */
  path: string;
  /** What is wrong, as a sentence; it makes sense without the path. */
  message: string;
}
