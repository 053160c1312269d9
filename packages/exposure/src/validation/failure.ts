/** What is wrong with one field: `spec.rules[0].path`, and a sentence. */
export interface Failure {
  path: string;
  message: string;
}

export const failure = (path: string, message: string): Failure => ({ path, message });
